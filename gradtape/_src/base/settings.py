"""Settings that the engine reads. Users change them through `tf.config`."""

from __future__ import annotations

from gradtape import _core

jacobian_memory: int = 1 << 30  # bytes that a Jacobian may use for what it computes on its way
run_functions_eagerly: bool = False
soft_device_placement: bool = True  # whether a device that does not exist is the CPU
logical_cpus: int = 1  # how many devices the CPU was split into
progress: bool | None = None  # whether long work has a bar; None: where somebody looks (progress.py)
log_device_placement: bool = False  # whether the log says where functions run
raise_compile_errors: bool = (
    False  # for tests: a pass that cannot be compiled is no reason to go on more slowly
)


def functions_run_eagerly() -> bool:
    """Whether a `tf.function` runs its Python code at each call."""
    return run_functions_eagerly or _core.is_watching()
