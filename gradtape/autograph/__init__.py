"""AutoGraph: Python control flow over tensors inside `tf.function`.

`convert(f)` rewrites the source of a function (`transform`), after its jumps were taken out
(`jumps`), with what is known about its variables (`variables`). The rewritten code calls
`operators`, which trace where a tensor decides. `conversion` says which functions that is done to.
"""

import sys as _sys
import types as _types

from gradtape.autograph.conversion import annotate as annotate
from gradtape.autograph.conversion import conv as conv
from gradtape.autograph.conversion import convert as convert
from gradtape.autograph.conversion import do_not_convert


def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """Accepted: warnings go through Python's logging, logger "gradtape"."""


def set_loop_options(
    parallel_iterations: object = None,
    swap_memory: object = None,
    maximum_iterations: object = None,
    shape_invariants: object = None,
) -> None:
    """Accepted inside of loops; the shapes of loop variables must not change all the same."""


experimental = _types.ModuleType(
    "gradtape.autograph.experimental", "TensorFlow's namespace `tf.autograph.experimental`."
)
experimental.do_not_convert = do_not_convert
experimental.set_loop_options = set_loop_options
_sys.modules[experimental.__name__] = experimental
