"""What a backend of another library builds on: names beyond those of `import gradtape as tf`.

`keras_gradtape`, the backend of Keras, imports from `gradtape` and from this module, and so can others. TensorFlow has
none of these names. They change only with a line in the changelog; everything else below `gradtape/_src` may change at
any time.

**Ops and calls**

- `op(name)`: the op of a row of the op table by its name there ("clip", "select", "conv"), which public functions call; the
  attribute `op_name` of an op is that name.
- `PUBLIC`: every public function that comes from the op table, by its name below `tf`.
- `one_call(f)`: `f` recorded as a single call where a function is traced with unknown sizes; `f` itself then runs with
  known sizes and may look at them.
- `one_call_each(namespace)`: the same for every public function of a module, `one_call_each(globals())`.
- `OneCall`: the type that `one_call` returns.
- `take_calls(cls, f)`: public functions with an instance of `cls` among their arguments return `f(function, args, kwargs)`,
  unless that is NotImplemented.
- `einsum_of_bytes(equation, *tensors)`: `tf.einsum` of int8 accumulated in int32, without copies for matrix products.
- `to_first(x)`, `to_last(x)`: images with channels last as images with channels first, and back.

**Tensors**

- `BY_CODE`: the element types, by their codes: `BY_CODE[x.dtype._code] is x.dtype`.
- `CompositeTensor`: the base of values that are made of tensors: ragged, sparse, `tf.IndexedSlices`.
- `NativeVariable`: the base of `tf.Variable`; `isinstance` is faster with it than with a class that has a metaclass.
- `read(x)`: the value of a variable, recorded on tapes; anything else unchanged.
- `array_of(x)`: the elements, for results whose shape depends on them; raises `Untraceable` for a symbolic tensor.
- `from_buffer(array, code)`: a tensor that shares a contiguous array of the element type with that code, unchecked.
- `from_strings(array)`, `strings_of(tensor)`: an array of bytes objects as a tensor, and back, without a copy.

**Traces**

- `current_trace()`: the trace of the function that is being traced; None in eager mode.
- `Trace(outer=None)`, `symbolic(trace.input(dims, code))`: a separate trace, and an operand in it: shapes are
inferred, nothing is computed.
- `is_symbolic(x)`: whether `x` is a tensor of a trace, without elements.
- `aside(trace=None)`: a scope outside of every trace but the given one, and of every tape: what is created there
  outlives the trace.
- `Untraceable`: raised where code asks a symbolic tensor for its elements.
- `assign_tracker()`: the tape that follows assignments, or None.
- `Function(f, **options)`: the class of the objects that `tf.function` returns.
- `with_autograph(f)`: `f` with its `if`, `for` and `while` over tensors converted, also outside of `tf.function`.
- `users_level()`: the `stacklevel` of a warning that names the line of the user's program.
- `is_library(module)`: whether AutoGraph leaves functions of a module unconverted.
- `Setting(value)`: a value that can be set for a block of code: `with setting.to(x)`, `setting.now()`.

**Random numbers**

- `Seeds(given)`, `isolated_seeds()`: a sequence of seeds; one that continues from `tf.random.set_seed`.
- `isolated(seeds)`: a scope in which random ops draw from these.
- `seed_initializers_by(f)`: initializers without a seed take theirs from `f()`; None leaves them to `tf.random`.

**Steps of optimizers**

- `Programs()`: steps over lists of variables, each traced once and then run as one program: `find`, `make`, `run`, and
  `last.step(pairs)` for the usual case.
- `flattened(grads)`: gradients as a flat list of tensors, two for each sparse one, as programs take them.
- `held(variable)`: the `tf.Variable` inside a variable of another library.
- `present(grads, variables)`: the gradients that are not None, cast to the types of their variables, and those variables.
- `summed_rows(g)`: `tf.IndexedSlices` with duplicate rows summed.
- `set_all(variables, values)`: assigns all values, or none.
- `step_in_replica(replica, grads, clip, apply, aggregate)`: one step of all replicas, with the sums of their gradients.
- `unzip(pairs)`: the gradients and the variables of `apply_gradients`, or an error that says what it takes.
- `want_scale(name, value)`: raises a ValueError for a loss scale that gradients cannot be divided by.

**Replicas and meshes**

- `strategy_is_set()`: whether the scope of a strategy is open.
- `current_replica()`: the context of the replica that runs, if it is one of several; otherwise None.
- `between_replicas()`: a scope in which a replica creates what is shared by all of them.
- `settling()`: a scope for creating variables that replicas aggregate after each run: the state of layers besides
  weights.
- `carriers`: functions called where replicas start; each returns a context manager that replicas enter, which carries
  the state of the starting thread over.
- `cut(strategy, batch)`: a batch split into the parts of the replicas.
- `need_jax(what)`: raises an ImportError that says how to install JAX, if it is not installed.
- `mesh`: programs over a mesh of JAX's devices: `put`, `put_everywhere`, `from_parts`,
  `array_of`, `sharding_of`, `relaid`, `on_mesh`.

**Sparse tensors and images**

- `sparse_calls`: a table to add to: the implementation of a public function for arguments with a `tf.SparseTensor`.
- `make_sparse(places, values, sizes)`, `places_of(x)`, `sizes_of(x)`: a sparse tensor from arrays, and its arrays.
- `keys_of(places, sizes)`, `places_at(keys, sizes)`: indices as flat numbers in row-major order, and back.
- `resized(images, height, width, method, antialias)`, `nearest(images, height, width)`: resized images.
- `read_between(pixels, sizes, places, order, mode, fill, start=None)`: arrays interpolated at fractional positions.
- `read_planes(planes, rows, columns, order, mode, fill)`: the same for planes of images.
- `projected(transform, batch, height, width)`, `pixel_grid(height, width, dtype)`: the source coordinates of pixels under
  projective transforms; the coordinates of pixels.
- `hue_and_range(rgb)`, `saturation_of(least, most)`, `coloured_with(hue, chroma, least)`: the steps between RGB and HSV.

**Files**

- `json_of(data)`: parses untrusted JSON, with limits on its depth and numbers.
- `crc32c(data)`: the checksum of stored modules.
- `update_state(folder, newest)`, `checkpoint_exists(path)`: writes the file `checkpoint`; whether a checkpoint with that
  prefix exists.
- `summary_metadata(plugin, kind, description, content)`: the metadata that names the TensorBoard plugin of a summary.

**Attributes.** Some attributes with an underscore belong to this interface, because they are read in every call: of tensors
`_dims` (the shape as a tuple), `_numel`, `_symbol` (None unless it is symbolic) and `_detach()` (the same value on no
tape); of variables `_read()` and `_value_shape`; of element types `_code`; of `tf.IndexedSlices` `_dense_shape`; of
functions `_concrete` (their traces) and `_exact_traces` (how many are for exact sizes); of strategies `_group`. Tapes and
optimizers accept a variable of another library that has its `tf.Variable` in `_value`.

>>> from gradtape.backend import op
>>> op("clip")([1.0, 5.0], 2.0, 3.0).numpy()
array([2., 3.], dtype=float32)
"""

import importlib
from typing import Any

from gradtape._core import Composite as OneCall
from gradtape._core import Setting, assign_tracker, current_trace, from_buffer, take_calls
from gradtape._core import Variable as NativeVariable
from gradtape._src.autograph.conversion import conv as with_autograph
from gradtape._src.autograph.conversion import is_library
from gradtape._src.base.calls import one_call, one_call_each
from gradtape._src.base.contexts import aside
from gradtape._src.base.dtypes import BY_CODE
from gradtape._src.base.errors import Untraceable
from gradtape._src.base.replicas import between as between_replicas
from gradtape._src.base.replicas import current as current_replica
from gradtape._src.base.replicas import is_set as strategy_is_set
from gradtape._src.base.source import users_level
from gradtape._src.engines import need_jax
from gradtape._src.functions.function import Function
from gradtape._src.graph.ir import is_symbolic, symbolic
from gradtape._src.graph.trace import Trace
from gradtape._src.ops import PUBLIC, TABLE
from gradtape._src.ops.einsum import einsum_of_bytes
from gradtape._src.ops.static import array_of
from gradtape._src.ops.windows import to_first, to_last
from gradtape._src.state.initializers import seed_initializers_by
from gradtape._src.tensors.composite import CompositeTensor
from gradtape._src.tensors.conversion import read
from gradtape._src.tensors.random import Seeds, isolated, isolated_seeds
from gradtape._src.tensors.text import array_of as strings_of
from gradtape._src.tensors.text import make as from_strings

# Modules that are imported on first use; `name=name in the module`, a dot for the module itself.
_LATE = {
    "gradtape._src.base.reading": "json_of",
    "gradtape._src.engines.xla.mesh": "mesh=.",
    "gradtape._src.optimizers.programs": "Programs flattened held",
    "gradtape._src.optimizers.step": "present set_all summed_rows unzip want_scale",
    "gradtape._src.optimizers.summed": "step_in_replica=in_replica",
    "gradtape.distribute.inputs": "cut",
    "gradtape.distribute.replicas": "carriers",
    "gradtape.distribute.variables": "settling",
    "gradtape.image.colour": "coloured_with hue_and_range saturation_of",
    "gradtape.image.projection": "pixel_grid projected read_between read_planes",
    "gradtape.image.resampling": "resized",
    "gradtape.image.resize": "nearest",
    "gradtape.io.framing": "crc32c",
    "gradtape.sparse.dispatch": "sparse_calls=TABLE",
    "gradtape.sparse.ordering": "keys_of places_at",
    "gradtape.sparse.tensor": "make_sparse places_of sizes_of",
    "gradtape.summary.encode": "summary_metadata=metadata",
    "gradtape.train.files": "update_state checkpoint_exists=exists",
}
_WHERE = {
    name: (module, attribute or name)
    for module, names in _LATE.items()
    for name, _, attribute in (row.partition("=") for row in names.split())
}

__all__ = [
    "BY_CODE", "CompositeTensor", "Function", "NativeVariable", "OneCall", "PUBLIC", "Seeds", "Setting", "Trace",
    "Untraceable", "array_of", "aside", "assign_tracker", "between_replicas", "current_replica", "current_trace",
    "einsum_of_bytes", "from_buffer", "from_strings", "is_library", "is_symbolic", "isolated", "isolated_seeds",
    "need_jax", "one_call", "one_call_each", "op", "read", "seed_initializers_by", "strategy_is_set", "strings_of",
    "symbolic", "take_calls", "to_first", "to_last", "users_level",
    "with_autograph", *_WHERE,
]  # fmt: skip


def op(name: str) -> Any:
    """The op of a row of the op table."""
    return TABLE[name].op


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'gradtape.backend' has no attribute {name!r}")
    module, attribute = _WHERE[name]
    value: Any = importlib.import_module(module)
    globals()[name] = value = value if attribute == "." else getattr(value, attribute)
    return value
