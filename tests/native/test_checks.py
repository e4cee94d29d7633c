"""The checks written in C++, of code that Python cannot reach: loops, the allocator, threads, ops without Python tensors.

`make dev` builds them with the core; in a core that was installed in another way there are none.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import scipy_openblas32

_ROOT = Path(__file__).resolve().parents[2]
_BLAS = Path(scipy_openblas32.get_lib_dir()) / scipy_openblas32.get_library(fullname=True)
_ARGUMENTS = {"kernel_check": [], "runtime_check": [], "ops_check": [_BLAS]}


@pytest.mark.parametrize("name", _ARGUMENTS)
def test_check(name):
    version = f"cp{sys.version_info.major}{sys.version_info.minor}"
    built = list(_ROOT.glob(f"build/{version}-*/tests/native/{name}"))
    if not built:
        pytest.skip("this core was built without its checks")
    done = subprocess.run([*built[:1], *_ARGUMENTS[name]], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.parametrize("level", ["2", "3", "4"])
def test_functions_of_double(level):
    """A sample of `double_check 100000000`. A level that the processor lacks repeats its highest one."""
    version = f"cp{sys.version_info.major}{sys.version_info.minor}"
    built = list(_ROOT.glob(f"build/{version}-*/tests/native/double_check"))
    if not built:
        pytest.skip("this core was built without its checks")
    environment = {**os.environ, "GRADTAPE_ISA": level}
    done = subprocess.run([*built[:1], "100000"], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def test_functions_of_float():
    """A sample of `float_check`, which checks every float; on all levels of the processor."""
    version = f"cp{sys.version_info.major}{sys.version_info.minor}"
    built = list(_ROOT.glob(f"build/{version}-*/tests/native/float_check"))
    if not built:
        pytest.skip("this core was built without its checks")
    done = subprocess.run([*built[:1], "1024"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert done.stdout.count("ulp") % 21 == 0 and done.stdout
