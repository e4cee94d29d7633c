"""The ops: one file per family, one row of the table per op (`gradtape._src.ops.table`).

Importing this package fills the table with what nearly every program needs; the other families are imported when one of
their names is first used (`late.py`). The names below are for use inside gradtape; users find the same ops under
TensorFlow's names in `gradtape`, `gradtape.math`, `gradtape.nn`, ...
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gradtape._src.ops.late import inside
from gradtape._src.tensors import above, hooks


class _Package(ModuleType):
    """This package, in which an op hides the family of the same name: `ops.softmax` is the op."""

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) and name in getattr(value, "__all__", ()):
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
above.ops = sys.modules[__name__]
hooks.install()

from gradtape._src.ops import engine  # noqa: E402
from gradtape._src.ops.arithmetic import *  # noqa: E402, F403
from gradtape._src.ops.casting import *  # noqa: E402, F403
from gradtape._src.ops.comparison import *  # noqa: E402, F403
from gradtape._src.ops.contraction import *  # noqa: E402, F403
from gradtape._src.ops.creation import *  # noqa: E402, F403
from gradtape._src.ops.diagonals import *  # noqa: E402, F403
from gradtape._src.ops.exponential import *  # noqa: E402, F403
from gradtape._src.ops.indexed import *  # noqa: E402, F403
from gradtape._src.ops.join import *  # noqa: E402, F403
from gradtape._src.ops.movement import *  # noqa: E402, F403
from gradtape._src.ops.operators import *  # noqa: E402, F403
from gradtape._src.ops.reduction import *  # noqa: E402, F403
from gradtape._src.ops.slicing import *  # noqa: E402, F403
from gradtape._src.ops.table import PUBLIC, TABLE  # noqa: E402

if TYPE_CHECKING:
    from gradtape._src.ops.activations import *  # noqa: F403
    from gradtape._src.ops.attention import *  # noqa: F403
    from gradtape._src.ops.batchnorm import *  # noqa: F403
    from gradtape._src.ops.candidates import *  # noqa: F403
    from gradtape._src.ops.clipping import *  # noqa: F403
    from gradtape._src.ops.combinations import *  # noqa: F403
    from gradtape._src.ops.conv import *  # noqa: F403
    from gradtape._src.ops.conv_general import *  # noqa: F403
    from gradtape._src.ops.convolutions import *  # noqa: F403
    from gradtape._src.ops.ctc import *  # noqa: F403
    from gradtape._src.ops.ctc_decode import *  # noqa: F403
    from gradtape._src.ops.einsum import *  # noqa: F403
    from gradtape._src.ops.embedding import *  # noqa: F403
    from gradtape._src.ops.fft import *  # noqa: F403
    from gradtape._src.ops.fractional import *  # noqa: F403
    from gradtape._src.ops.generator import *  # noqa: F403
    from gradtape._src.ops.linalg_banded import *  # noqa: F403
    from gradtape._src.ops.linalg_factor import *  # noqa: F403
    from gradtape._src.ops.linalg_functions import *  # noqa: F403
    from gradtape._src.ops.linalg_lstsq import *  # noqa: F403
    from gradtape._src.ops.linalg_solve import *  # noqa: F403
    from gradtape._src.ops.linalg_spectral import *  # noqa: F403
    from gradtape._src.ops.losses import *  # noqa: F403
    from gradtape._src.ops.moments import *  # noqa: F403
    from gradtape._src.ops.nn import *  # noqa: F403
    from gradtape._src.ops.normalization import *  # noqa: F403
    from gradtape._src.ops.norms import *  # noqa: F403
    from gradtape._src.ops.patches import *  # noqa: F403
    from gradtape._src.ops.pooling import *  # noqa: F403
    from gradtape._src.ops.quantization import *  # noqa: F403
    from gradtape._src.ops.random import *  # noqa: F403
    from gradtape._src.ops.runs import *  # noqa: F403
    from gradtape._src.ops.scan import *  # noqa: F403
    from gradtape._src.ops.segments import *  # noqa: F403
    from gradtape._src.ops.selection import *  # noqa: F403
    from gradtape._src.ops.sequences import *  # noqa: F403
    from gradtape._src.ops.sobol import *  # noqa: F403
    from gradtape._src.ops.softmax import *  # noqa: F403
    from gradtape._src.ops.sort import *  # noqa: F403
    from gradtape._src.ops.sparse_products import *  # noqa: F403
    from gradtape._src.ops.special import *  # noqa: F403
    from gradtape._src.ops.stateless import *  # noqa: F403
    from gradtape._src.ops.statistics import *  # noqa: F403

engine.install()


def __getattr__(name: str) -> Any:
    return inside(name)
