"""`keras.distribution` on this backend: variables and batches on a mesh of devices, steps on the XLA engine.

The backend's part of `keras.src.distribution`: devices, processes, meshes, layouts. While a distribution is set,
variables are created on its mesh (`ops/core.py`), and the steps of a model run on the engine of the mesh
(`trainer.py`, `mesh` of `gradtape/backend.py`). JAX, the extra `gradtape[xla]`, is imported when one of these is
first called.
"""

from __future__ import annotations

import contextlib
from importlib.util import find_spec
from typing import Any

import numpy as np
from keras.src import tree
from keras.src.backend.common import global_state

import gradtape as tf
from gradtape import backend
from gradtape.backend import is_symbolic

Tensor = tf.Tensor


def _jax() -> Any:
    """JAX, with as many CPU devices as set by `tf.config.set_logical_device_configuration`."""
    backend.need_jax("keras.distribution")
    import jax

    count = len(tf.config.list_logical_devices("CPU"))
    if count > 1 and jax.config.jax_num_cpu_devices != count:
        with contextlib.suppress(RuntimeError):  # JAX has started, so its devices cannot be changed
            jax.config.update("jax_num_cpu_devices", count)
    return jax


# ---- devices and processes ------------------------------------------------------------------------


def list_devices(device_type: str | None = None) -> list[str]:
    """The names of all devices of a kind, as "cpu:0", in all processes."""
    devices = _jax().devices(device_type.lower() if device_type else None)
    return [f"{d.platform}:{d.id}" for d in devices]


def get_device_count(device_type: str | None = None) -> int:
    """How many devices of a kind there are."""
    return len(list_devices(device_type))


def initialize(
    job_addresses: str | None = None, num_processes: int | None = None, process_id: int | None = None
) -> None:
    """Joins the processes that work together; before anything else is computed."""
    coordinator = job_addresses
    if job_addresses and "," in job_addresses:
        jobs = job_addresses.split(",")
        if num_processes is not None and num_processes != len(jobs):
            raise ValueError(
                f"keras.distribution.initialize: job_addresses has {len(jobs)} jobs, but num_processes is "
                f"{num_processes}; got {job_addresses!r}."
            )
        coordinator = jobs[0]  # the first one is JAX's coordinator
    _jax().distributed.initialize(
        coordinator_address=coordinator, num_processes=num_processes, process_id=process_id
    )
    initialize_rng()


def initialize_rng() -> None:
    """Gives all processes the same seed, unless `keras.utils.set_random_seed` was called."""
    from keras.src.utils import rng_utils

    if rng_utils.get_random_seed() is None:
        jax = _jax()
        seed = np.random.default_rng().integers(0, 2**31, dtype=np.uint32)
        if jax.process_count() > 1:
            from jax.experimental import multihost_utils

            seed = multihost_utils.broadcast_one_to_all(seed)
        rng_utils.set_random_seed(int(seed))


def num_processes() -> int:
    """How many processes work together."""
    return _jax().process_count() if find_spec("jax") is not None else 1


def process_id() -> int:
    """Which of them this one is."""
    return _jax().process_index() if find_spec("jax") is not None else 0


# ---- meshes and layouts -----------------------------------------------------------------------------


def _to_backend_device(device_name: Any) -> Any:
    jax = _jax()
    if isinstance(device_name, jax.Device):
        return device_name
    kind, _, number = str(device_name).partition(":")
    for device in jax.devices(kind):
        if device.id == int(number or 0):
            return device
    raise ValueError(f"Device not found: {device_name}. Hint: keras.distribution.list_devices().")


def _to_backend_mesh(device_mesh: Any) -> Any:
    devices = [_to_backend_device(d) for d in device_mesh.devices.flatten()]
    shape = device_mesh.devices.shape
    return _jax().sharding.Mesh(np.array(devices).reshape(shape), tuple(device_mesh.axis_names))


def _to_backend_layout(tensor_layout: Any) -> Any:
    if tensor_layout.device_mesh is None:
        raise ValueError("Cannot create sharding when device mesh is not set for TensorLayout.")
    spec = _jax().sharding.PartitionSpec(*tensor_layout.axes)
    return _jax().sharding.NamedSharding(tensor_layout.device_mesh.backend_mesh, spec)


def _sharding(layout: Any) -> Any:
    """A layout of Keras or JAX, as a JAX sharding."""
    return getattr(layout, "backend_layout", layout)


# ---- values -----------------------------------------------------------------------------------------


def distribute_tensor(tensor: Any, layout: Any) -> Any:
    """The tensor, cut over the devices of a mesh; inside of a step, from this point on.

    Args:
      tensor: a tensor, or a JAX array, for which the result is a JAX array.
      layout: a `TensorLayout`, or a JAX sharding.
    """
    sharding = _sharding(layout)
    if find_spec("jax") is not None and isinstance(tensor, _jax().Array):
        return _jax_distributed(tensor, sharding)
    if is_symbolic(tensor):
        return backend.mesh.relaid(tensor, sharding)
    result = tensor._detach() if isinstance(tensor, Tensor) else tf.convert_to_tensor(tensor)
    backend.mesh.put(result, sharding)
    return result


def _jax_distributed(array: Any, sharding: Any) -> Any:
    jax = _jax()
    if isinstance(array, jax.core.Tracer):
        return jax.lax.with_sharding_constraint(array, sharding)
    return jax.device_put(array, sharding)


def distribute_data_input(per_process_batch: Any, layout: Any, batch_dim_name: str | None = None) -> Any:
    """A batch of this process as its part of the batch of all, cut over the mesh.

    A batch that cannot be divided into equal parts is copied to all devices.
    """
    jax, sharding = _jax(), _sharding(layout)
    if isinstance(per_process_batch, jax.Array):
        return jax.make_array_from_process_local_data(sharding, per_process_batch)
    x = per_process_batch
    x = x if isinstance(x, Tensor) else tf.convert_to_tensor(x)
    if jax.process_count() == 1:
        result = x._detach()
        if _is_divisible(x._dims, sharding):
            backend.mesh.put(result, sharding)
        else:
            backend.mesh.put_everywhere(result, sharding.mesh)
        return result
    return backend.mesh.from_parts(x, sharding)


def _is_divisible(shape: tuple[int, ...], sharding: Any) -> bool:
    for size, axes in zip(shape, sharding.spec, strict=False):
        names = () if axes is None else (axes,) if isinstance(axes, str) else axes
        if size % int(np.prod([sharding.mesh.shape[n] for n in names])):
            return False
    return True


def distribute_variable(value: Any, layout: Any) -> Any:
    """Puts the value of a `tf.Variable` on a mesh, where it stays."""
    if layout is not None:
        backend.mesh.put(value, _sharding(layout))
    return value


# ---- steps ------------------------------------------------------------------------------------------


def current() -> Any:
    """The distribution that is set; None."""
    return global_state.get_global_attribute("distribution")


def on_mesh(distribution: Any) -> Any:
    """A scope in which functions run on the mesh of a distribution."""
    backend.need_jax("keras.distribution")
    return backend.mesh.on_mesh(distribution.device_mesh.backend_mesh)


def gathered(results: Any) -> Any:
    """The results of a step, complete in each process: parts of predictions are on devices of other processes."""
    jax = _jax()
    if jax.process_count() == 1:
        return results
    from jax.experimental import multihost_utils

    def whole(x: Any) -> Any:
        array = backend.mesh.array_of(x) if isinstance(x, Tensor) else None
        if not isinstance(array, jax.Array) or array.is_fully_addressable or array.is_fully_replicated:
            return x
        return tf.convert_to_tensor(multihost_utils.process_allgather(array, tiled=True))

    return tree.map_structure(whole, results)


def distributed_batch(distribution: Any, data: Any) -> Any:
    """A batch whose tensors are cut over the mesh of a distribution."""

    def cut(x: Any) -> Any:
        if x is None or not x._dims:
            return x
        layout = distribution.get_data_layout(x._dims)
        return distribute_data_input(x, layout, distribution.batch_dim_name)

    return tree.map_structure(cut, data)
