"""The ops: one file a family, every op one row of the table (`gradtape.ops.table`).

Importing this package fills the table. The names below are for use inside gradtape; users
find the same ops under TensorFlow's names in `gradtape`, `gradtape.math`, `gradtape.nn`, ...
"""

from gradtape import _hooks

_hooks.install()

from gradtape.ops import engine  # noqa: E402
from gradtape.ops.activations import *  # noqa: E402, F403
from gradtape.ops.arithmetic import *  # noqa: E402, F403
from gradtape.ops.attention import *  # noqa: E402, F403
from gradtape.ops.batchnorm import *  # noqa: E402, F403
from gradtape.ops.candidates import *  # noqa: E402, F403
from gradtape.ops.casting import *  # noqa: E402, F403
from gradtape.ops.clipping import *  # noqa: E402, F403
from gradtape.ops.combinations import *  # noqa: E402, F403
from gradtape.ops.comparison import *  # noqa: E402, F403
from gradtape.ops.contraction import *  # noqa: E402, F403
from gradtape.ops.conv import *  # noqa: E402, F403
from gradtape.ops.convolutions import *  # noqa: E402, F403
from gradtape.ops.creation import *  # noqa: E402, F403
from gradtape.ops.ctc import *  # noqa: E402, F403
from gradtape.ops.ctc_decode import *  # noqa: E402, F403
from gradtape.ops.diagonals import *  # noqa: E402, F403
from gradtape.ops.einsum import *  # noqa: E402, F403
from gradtape.ops.embedding import *  # noqa: E402, F403
from gradtape.ops.exponential import *  # noqa: E402, F403
from gradtape.ops.fft import *  # noqa: E402, F403
from gradtape.ops.fractional import *  # noqa: E402, F403
from gradtape.ops.indexed import *  # noqa: E402, F403
from gradtape.ops.join import *  # noqa: E402, F403
from gradtape.ops.linalg_banded import *  # noqa: E402, F403
from gradtape.ops.linalg_factor import *  # noqa: E402, F403
from gradtape.ops.linalg_functions import *  # noqa: E402, F403
from gradtape.ops.linalg_lstsq import *  # noqa: E402, F403
from gradtape.ops.linalg_solve import *  # noqa: E402, F403
from gradtape.ops.linalg_spectral import *  # noqa: E402, F403
from gradtape.ops.losses import *  # noqa: E402, F403
from gradtape.ops.moments import *  # noqa: E402, F403
from gradtape.ops.movement import *  # noqa: E402, F403
from gradtape.ops.nn import *  # noqa: E402, F403
from gradtape.ops.normalization import *  # noqa: E402, F403
from gradtape.ops.norms import *  # noqa: E402, F403
from gradtape.ops.operators import *  # noqa: E402, F403
from gradtape.ops.patches import *  # noqa: E402, F403
from gradtape.ops.pooling import *  # noqa: E402, F403
from gradtape.ops.quantization import *  # noqa: E402, F403
from gradtape.ops.random import *  # noqa: E402, F403
from gradtape.ops.reduction import *  # noqa: E402, F403
from gradtape.ops.scan import *  # noqa: E402, F403
from gradtape.ops.segments import *  # noqa: E402, F403
from gradtape.ops.selection import *  # noqa: E402, F403
from gradtape.ops.sequences import *  # noqa: E402, F403
from gradtape.ops.slicing import *  # noqa: E402, F403
from gradtape.ops.sobol import *  # noqa: E402, F403
from gradtape.ops.softmax import *  # noqa: E402, F403
from gradtape.ops.sort import *  # noqa: E402, F403
from gradtape.ops.sparse import *  # noqa: E402, F403
from gradtape.ops.special import *  # noqa: E402, F403
from gradtape.ops.stateless import *  # noqa: E402, F403
from gradtape.ops.statistics import *  # noqa: E402, F403
from gradtape.ops.table import PUBLIC, TABLE  # noqa: E402

engine.install()
