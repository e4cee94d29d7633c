"""Settings that the engine reads. Users change them through `tf.config`."""

from __future__ import annotations

from gradtape import _core

jacobian_memory: int = 1 << 30  # bytes that a Jacobian may use for intermediate values
run_functions_eagerly: bool = False
soft_device_placement: bool = True  # whether the CPU replaces a device that does not exist
logical_cpus: int = 1  # how many devices the CPU is split into
progress: bool | None = None  # whether long work shows a bar; None: in interactive output (progress.py)
log_device_placement: bool = False  # whether to log where functions run
raise_compile_errors: bool = False  # for tests: raise if a backward pass cannot be compiled


def functions_run_eagerly() -> bool:
    """Whether a `tf.function` runs its Python code at each call."""
    return run_functions_eagerly or _core.is_watching()
