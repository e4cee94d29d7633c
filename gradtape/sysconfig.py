"""`tf.sysconfig`: where TensorFlow's headers and library would be; there are none."""

from __future__ import annotations

from typing import Any

from gradtape._src.public import absent as _absent

CXX11_ABI_FLAG = 1
CXX_VERSION = 202002
MONOLITHIC_BUILD = 1


def get_build_info() -> dict[str, Any]:
    """The build options that TensorFlow reports: no CUDA, no ROCm."""
    return {"is_cuda_build": False, "is_rocm_build": False, "is_tensorrt_build": False}


def _none(what: str) -> NotImplementedError:
    return NotImplementedError(
        f"tf.sysconfig.{what}: gradtape has no C++ interface for custom ops. Hint: tf.custom_gradient, or "
        "docs/add_an_op.md."
    )


def get_include() -> str:
    """Raises NotImplementedError."""
    raise _none("get_include")


def get_lib() -> str:
    """Raises NotImplementedError."""
    raise _none("get_lib")


def get_compile_flags() -> list[str]:
    """Raises NotImplementedError."""
    raise _none("get_compile_flags")


def get_link_flags() -> list[str]:
    """Raises NotImplementedError."""
    raise _none("get_link_flags")


__getattr__, __dir__ = _absent.of("sysconfig")
