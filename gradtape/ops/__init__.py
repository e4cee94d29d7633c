"""The ops: one file a family, every op one row of the table (`gradtape.ops.table`).

Importing this package fills the table. The names below are for use inside gradtape; users
find the same ops under TensorFlow's names in `gradtape`, `gradtape.math`, `gradtape.nn`, ...
"""

from gradtape import _hooks

_hooks.install()

from gradtape.ops.activations import *  # noqa: E402, F403
from gradtape.ops.arithmetic import *  # noqa: E402, F403
from gradtape.ops.comparison import *  # noqa: E402, F403
from gradtape.ops.exponential import *  # noqa: E402, F403
from gradtape.ops.table import PUBLIC, TABLE  # noqa: E402

from gradtape.ops import engine  # noqa: E402, F401  (last: it looks ops up in the complete table)
