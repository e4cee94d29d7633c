"""The ops: one file a family, every op one row of the table (`gradtape._src.ops.table`).

Importing this package fills the table. The names below are for use inside gradtape; users
find the same ops under TensorFlow's names in `gradtape`, `gradtape.math`, `gradtape.nn`, ...
"""

import sys

from gradtape._src.tensors import above, hooks

above.ops = sys.modules[__name__]
hooks.install()

from gradtape._src.ops import engine  # noqa: E402
from gradtape._src.ops.activations import *  # noqa: E402, F403
from gradtape._src.ops.arithmetic import *  # noqa: E402, F403
from gradtape._src.ops.attention import *  # noqa: E402, F403
from gradtape._src.ops.batchnorm import *  # noqa: E402, F403
from gradtape._src.ops.candidates import *  # noqa: E402, F403
from gradtape._src.ops.casting import *  # noqa: E402, F403
from gradtape._src.ops.clipping import *  # noqa: E402, F403
from gradtape._src.ops.combinations import *  # noqa: E402, F403
from gradtape._src.ops.comparison import *  # noqa: E402, F403
from gradtape._src.ops.contraction import *  # noqa: E402, F403
from gradtape._src.ops.conv import *  # noqa: E402, F403
from gradtape._src.ops.conv_general import *  # noqa: E402, F403
from gradtape._src.ops.convolutions import *  # noqa: E402, F403
from gradtape._src.ops.creation import *  # noqa: E402, F403
from gradtape._src.ops.ctc import *  # noqa: E402, F403
from gradtape._src.ops.ctc_decode import *  # noqa: E402, F403
from gradtape._src.ops.diagonals import *  # noqa: E402, F403
from gradtape._src.ops.einsum import *  # noqa: E402, F403
from gradtape._src.ops.embedding import *  # noqa: E402, F403
from gradtape._src.ops.exponential import *  # noqa: E402, F403
from gradtape._src.ops.fft import *  # noqa: E402, F403
from gradtape._src.ops.fractional import *  # noqa: E402, F403
from gradtape._src.ops.generator import *  # noqa: E402, F403
from gradtape._src.ops.indexed import *  # noqa: E402, F403
from gradtape._src.ops.join import *  # noqa: E402, F403
from gradtape._src.ops.linalg_banded import *  # noqa: E402, F403
from gradtape._src.ops.linalg_factor import *  # noqa: E402, F403
from gradtape._src.ops.linalg_functions import *  # noqa: E402, F403
from gradtape._src.ops.linalg_lstsq import *  # noqa: E402, F403
from gradtape._src.ops.linalg_solve import *  # noqa: E402, F403
from gradtape._src.ops.linalg_spectral import *  # noqa: E402, F403
from gradtape._src.ops.losses import *  # noqa: E402, F403
from gradtape._src.ops.moments import *  # noqa: E402, F403
from gradtape._src.ops.movement import *  # noqa: E402, F403
from gradtape._src.ops.nn import *  # noqa: E402, F403
from gradtape._src.ops.normalization import *  # noqa: E402, F403
from gradtape._src.ops.norms import *  # noqa: E402, F403
from gradtape._src.ops.operators import *  # noqa: E402, F403
from gradtape._src.ops.patches import *  # noqa: E402, F403
from gradtape._src.ops.pooling import *  # noqa: E402, F403
from gradtape._src.ops.quantization import *  # noqa: E402, F403
from gradtape._src.ops.random import *  # noqa: E402, F403
from gradtape._src.ops.reduction import *  # noqa: E402, F403
from gradtape._src.ops.runs import *  # noqa: E402, F403
from gradtape._src.ops.scan import *  # noqa: E402, F403
from gradtape._src.ops.segments import *  # noqa: E402, F403
from gradtape._src.ops.selection import *  # noqa: E402, F403
from gradtape._src.ops.sequences import *  # noqa: E402, F403
from gradtape._src.ops.slicing import *  # noqa: E402, F403
from gradtape._src.ops.sobol import *  # noqa: E402, F403
from gradtape._src.ops.softmax import *  # noqa: E402, F403
from gradtape._src.ops.sort import *  # noqa: E402, F403
from gradtape._src.ops.sparse_products import *  # noqa: E402, F403
from gradtape._src.ops.special import *  # noqa: E402, F403
from gradtape._src.ops.stateless import *  # noqa: E402, F403
from gradtape._src.ops.statistics import *  # noqa: E402, F403
from gradtape._src.ops.table import PUBLIC, TABLE  # noqa: E402

engine.install()
