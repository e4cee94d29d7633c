"""Control flow as functions: cond, case, switch_case, while_loop, map_fn, scan, folds, py_function.

In eager mode a branch is called, a loop is a Python loop, and tapes see the ops inside.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.autograph.conversion import conv
from gradtape._src.base import composites, dtypes, errors, nest
from gradtape._src.base.calls import one_call
from gradtape._src.base.progress import Progress
from gradtape._src.base.shape import TensorShape, TensorSpec
from gradtape._src.base.type_spec import TypeSpec
from gradtape._src.control.assertions import Assert
from gradtape._src.control.tensor_array import TensorArray
from gradtape._src.functions import encoded_map
from gradtape._src.graph.ir import is_symbolic
from gradtape._src.tensors.conversion import read


def _want_callable(**functions: Any) -> None:
    for name, function in functions.items():
        if not callable(function):
            raise TypeError(f"'{name}' must be callable.")


def _tracing() -> Any:
    """The module that traces branches and loops; imported on first use, since few programs trace any."""
    from gradtape._src.control import control

    return control


def _tracing_rows() -> Any:
    """The same for loops over rows, and for Python functions as ops."""
    from gradtape._src.batching import rows

    return rows


# ---- branches -----------------------------------------------------------------------------------


def cond(
    pred: Any, true_fn: Callable | None = None, false_fn: Callable | None = None, name: str | None = None
) -> Any:
    """Calls `true_fn` if `pred` is true, otherwise `false_fn`, and returns its result.

    >>> import gradtape as tf
    >>> tf.cond(tf.constant(2) > 1, lambda: "yes", lambda: "no")
    'yes'
    """
    _want_callable(true_fn=true_fn, false_fn=false_fn)
    assert true_fn is not None and false_fn is not None
    if pred is None:
        raise ValueError("cond: Attempt to convert a value (None) to a Tensor: 'pred' must not be None.")
    if is_symbolic(pred):
        return _tracing().cond(pred, conv(true_fn), conv(false_fn))
    return true_fn() if pred else false_fn()


def switch_case(
    branch_index: Any, branch_fns: Any, default: Callable | None = None, name: str = "switch_case"
) -> Any:
    """Calls the function numbered `branch_index`.

    Args:
      branch_index: an integer scalar.
      branch_fns: functions, or a dict or list of pairs from numbers to functions.
      default: called for any other number; by default the function with the largest number.
    """
    if not isinstance(branch_index, (_core.Tensor, _core.Variable)):
        raise TypeError(f"'branch_index' must be a Tensor, got {type(branch_index)}")
    if not branch_index.dtype.is_integer:
        raise TypeError(f"switch_case: 'branch_index' must be an integer Tensor, got {branch_index!r}.")
    if isinstance(branch_fns, dict):
        branches = dict(branch_fns)
    elif isinstance(branch_fns, (list, tuple)):
        paired = bool(branch_fns) and not all(map(callable, branch_fns))
        for pair in branch_fns if paired else ():
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise TypeError(f"Each entry in 'branch_fns' must be a 2-tuple. Received {pair!r}.")
        branches = dict(branch_fns if paired else enumerate(branch_fns))
        if len(branches) < len(branch_fns):
            numbers = ",".join(str(number) for number, _ in branch_fns)
            raise ValueError(
                f"branch indices (keys) must form contiguous range of [0 to {len(branch_fns)}) but found {{{numbers}}}"
            )
    else:
        raise TypeError(
            f"switch_case: 'branch_fns' must be a list, tuple, or dict; got {type(branch_fns).__name__}."
        )
    if not branches:
        raise ValueError("switch_case: Must provide at least one item in 'branch_fns'.")
    for number, function in branches.items():
        if not isinstance(number, int):
            raise TypeError(f"switch_case: key must be a Python `int`, got {type(number)}")
        _want_callable(**{f"branch_fns[{number}]": function})
    if default is None:
        default = branches[max(branches)]
    _want_callable(default=default)
    if is_symbolic(branch_index):
        functions = {number: conv(f) for number, f in branches.items()}
        return _tracing().switch_case(branch_index, functions, conv(default))
    where = read(branch_index)
    if isinstance(where, _core.Tensor) and where.ndim:
        raise errors.InvalidArgumentError(
            None, None, f"switch_case: 'branch_index' must be a scalar; got shape {where.shape}."
        )
    index = int(where)
    return branches.get(index, default)()


def case(
    pred_fn_pairs: Any,
    default: Callable | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """Calls the function of the first true condition.

    Args:
      pred_fn_pairs: pairs of a boolean scalar and a function.
      default: called if no condition is true.
      exclusive: make it an error if more than one is true.

    Raises:
      InvalidArgumentError: if none is true and there is no default, or several with `exclusive`.
    """
    if not isinstance(pred_fn_pairs, (list, tuple, dict)):
        raise TypeError(f"'pred_fn_pairs' must be a list, tuple, or dict. Received: {type(pred_fn_pairs)}")
    pairs = list(pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs)
    if not pairs:
        raise ValueError("case: 'pred_fn_pairs' is empty; expected at least one pair.")
    for i, pair in enumerate(pairs):
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"Each entry in 'pred_fn_pairs' must be a 2-tuple. Received {pair!r}.")
        _want_callable(**{f"fn[{i}]": pair[1]})
    if default is not None:
        _want_callable(default=default)
    if any(is_symbolic(pred) for pred, _ in pairs):
        return _symbolic_case(pairs, default, exclusive)
    if exclusive and sum(bool(pred) for pred, _ in pairs) > 1:
        raise errors.InvalidArgumentError(
            None, None, "case: Input error: More than one condition evaluated as True but exclusive=True."
        )
    for pred, function in pairs:
        if pred:
            return function()
    if default is None:
        raise errors.InvalidArgumentError(
            None, None, "case: Input error: None of conditions evaluated as True"
        )
    return default()


def _symbolic_case(pairs: list, default: Callable | None, exclusive: bool) -> Any:
    """`case` as nested conditions."""
    preds = [ops.convert_to_tensor(pred) for pred, _ in pairs]
    if exclusive:
        count = ops.add_n([ops.cast(p, dtypes.int32) for p in preds])
        Assert(
            ops.less_equal(count, 1),
            ["case: Input error: More than one condition evaluated as True but exclusive=True."],
        )
    if default is None:
        some = ops.reduce_any(ops.stack(preds))
        Assert(some, ["case: Input error: None of conditions evaluated as True"])
    if default is None:
        *pairs, (_, default) = pairs
    if not pairs:
        return default()
    (pred, function), rest = pairs[0], pairs[1:]
    return cond(pred, function, default if not rest else lambda: _symbolic_case(rest, default, False))


# ---- loops --------------------------------------------------------------------------------------


def while_loop(
    cond: Callable,
    body: Callable,
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    maximum_iterations: Any = None,
    name: str | None = None,
) -> Any:
    """Calls `loop_vars = body(*loop_vars)` as long as `cond(*loop_vars)` holds.

    Args:
      loop_vars: a list or tuple of tensors, in any nesting; `body` returns the same structure.
      shape_invariants: the shapes (TensorShape or TensorSpec) of the variables in every iteration, in the structure of
        `loop_vars`, with None for sizes that vary. Needed in traced functions only.
      maximum_iterations: a limit on the number of calls of `body`.

    Returns:
      The last loop variables, as tensors.

    >>> import gradtape as tf
    >>> [n] = tf.while_loop(lambda n: n < 10, lambda n: [n * 3], [tf.constant(1)])
    >>> n.numpy()
    np.int32(27)
    """
    _want_callable(cond=cond, body=body)
    if not isinstance(loop_vars, (list, tuple)) or not loop_vars:
        raise ValueError("'loop_vars' must be provided.")
    if _core.current_trace() is not None:
        if shape_invariants is not None:
            _check_invariants(loop_vars, shape_invariants)
        return _tracing().while_loop(conv(cond), conv(body), loop_vars, maximum_iterations, shape_invariants)
    if maximum_iterations is not None:
        maximum_iterations = ops.convert_to_tensor(maximum_iterations)
        if maximum_iterations.ndim:
            raise ValueError(
                f"'maximum_iterations' must be a scalar. Received shape: {maximum_iterations.shape}"
            )
    limit = None if maximum_iterations is None else int(maximum_iterations)
    # With a limit TensorFlow compares the containers too; without one, a list may become a tuple.
    structure = loop_vars if limit is not None else list(loop_vars)
    count = 0
    while (limit is None or count < limit) and cond(*loop_vars):
        result = body(*loop_vars)
        if limit is None:
            if not isinstance(result, (list, tuple)):
                raise TypeError(
                    f"{type(result).__name__!r} object is not iterable: while_loop: 'body' must return "
                    "a list or tuple with the structure of 'loop_vars'."
                )
            nest.assert_same_structure(structure, list(result))
        else:
            nest.assert_same_structure(structure, result)
        loop_vars = result
        count += 1
    return nest.map_structure(_loop_result, loop_vars)


def _check_invariants(loop_vars: Any, invariants: Any) -> None:
    nest.assert_same_structure(loop_vars, invariants)
    for shape in nest.flatten(invariants):
        if shape is not None and not isinstance(shape, (TensorShape, TypeSpec)):
            raise TypeError(f"'shape' must be one of TypeSpec, TensorShape or None. Received: {type(shape)}")


def _loop_result(value: Any) -> Any:
    return value if isinstance(value, TensorArray) else _tensor_or_more(value)


def _tensor_or_more(value: Any) -> Any:
    """A value as a tensor; a composite tensor stays as it is."""
    return value if nest.is_composite(type(value)) else ops.convert_to_tensor(value)


def _rows(elems: Any, what: str = "elems") -> tuple[list[list], int]:
    """The rows of every tensor in a nest, and how many there are."""
    tensors = [ops.convert_to_tensor(e) for e in nest.flatten(elems)]
    if not tensors:
        raise ValueError(f"{what}: expected at least one tensor.")
    for t in tensors:
        if t.ndim == 0:
            raise ValueError("Elements in elems must be 1+ dimensional Tensors, not scalars")
    count = tensors[0].shape[0]
    for t in tensors[1:]:
        if t.shape[0] != count:
            raise ValueError(f"Dimensions {count} and {t.shape[0]} are not compatible")
    return [list(ops.unstack(t, axis=0)) if count else [] for t in tensors], count


def output_spec(spec: Any) -> tuple[Any, Any]:
    """The type and the shape that a result is declared to have."""
    if isinstance(spec, TensorSpec):
        return spec.dtype, spec.shape
    return dtypes.as_dtype(spec), None


@one_call
def map_fn(
    fn: Callable,
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
    fn_output_signature: Any = None,
) -> Any:
    """Calls `fn` on every row of `elems` and stacks the results.

    Args:
      elems: a tensor or a nest of tensors, which are unstacked along their first axis.
      fn_output_signature: the type (or spec) of the results, in their structure; needed if
        it is not that of `elems`. `dtype` is its old name.

    Raises:
      InvalidArgumentError: if a result has another type.
    """
    _want_callable(fn=fn)
    signature = dtype if fn_output_signature is None else fn_output_signature
    if not nest.are_plain([*nest.flatten(elems), *nest.flatten(signature)]):
        return encoded_map.map_encoded(map_fn, fn, elems, signature, infer_shape)
    rows, count = _rows(elems)
    if signature is None:
        signature = nest.map_structure(lambda e: ops.convert_to_tensor(e).dtype, elems)
    specs = [output_spec(s) for s in nest.flatten(signature)]
    outputs = [
        TensorArray(kind, count, infer_shape=infer_shape, element_shape=shape) for kind, shape in specs
    ]
    if _core.current_trace() is not None:
        return _tracing_rows().map_rows(conv(fn), elems, signature, outputs)
    shapes_for = getattr(fn, "result_shapes", None)  # only functions inside a recording have it
    if not count and shapes_for is not None:
        example = [ops.zeros(t.shape[1:], t.dtype) for t in map(ops.convert_to_tensor, nest.flatten(elems))]
        for array, static in zip(outputs, shapes_for(nest.pack_sequence_as(elems, example)), strict=True):
            array._element_shape = array._element_shape.merge_with(TensorShape(static))
    with Progress("map_fn", count, "rows") as progress:
        for i in range(count):
            result = fn(nest.pack_sequence_as(elems, [r[i] for r in rows]))
            nest.assert_same_structure(signature, result)
            for array, value in zip(outputs, nest.flatten(result), strict=True):
                array._write(i, value)
            progress.step()
    return nest.pack_sequence_as(signature, [array.stack() for array in outputs])


@one_call
def vectorized_map(fn: Callable, elems: Any, fallback_to_while_loop: bool = True, warn: bool = True) -> Any:
    """Calls `fn` once, for all rows of `elems` at the same time, and stacks the results.

    `fn` is traced on one row; the graph then runs over all rows at once, by the batching rules of the
    ops (`batching/batch.py`). A function that cannot be traced is called row by row. A tensor with one
    row is broadcast to all calls.

    Args:
      fallback_to_while_loop: if False, a function that cannot be traced is an error.
    """
    _want_callable(fn=fn)
    how = functools.partial(_vectorized_map, fallback_to_while_loop=fallback_to_while_loop)
    return encoded_map.map_at_once(how, conv(fn), fn, elems)


def _vectorized_map(traceable: Callable, fn: Callable, elems: Any, fallback_to_while_loop: bool) -> Any:
    from gradtape._src.batching.vectorize import vectorized

    tensors = [ops.convert_to_tensor(e) for e in nest.flatten(elems)]
    for t in tensors:
        if t.ndim == 0:
            raise ValueError("vectorized_map: elems must be 1+ dimensional Tensors, not scalars")
    sizes = sorted({t.shape[0] for t in tensors} - {1})
    if len(sizes) > 1:
        raise ValueError(f"vectorized_map: the first dimensions of elems differ: {sizes}")
    count = sizes[0] if sizes else 1
    try:
        return vectorized(lambda rows: traceable(nest.pack_sequence_as(elems, rows)), tensors, count)
    except errors.OUT_OF_RESOURCES:
        raise
    except (
        Exception
    ):  # the function may need values: the calls row by row have them, and raise its own errors
        if not fallback_to_while_loop or not count:
            raise
    rows = [list(ops.unstack(t, axis=0)) for t in tensors]
    results = []
    with Progress("vectorized_map", count, "rows") as progress:
        for i in range(count):
            row = [r[i if len(r) > 1 or count == 1 else 0] for r in rows]
            results.append(fn(nest.pack_sequence_as(elems, row)))
            progress.step()
    return nest.map_structure(lambda *xs: ops.stack([ops.convert_to_tensor(x) for x in xs], 0), *results)


def _start(
    fn: Callable, elems: Any, initializer: Any, reverse: bool
) -> tuple[Any, list[list], list[int], Any]:
    """The initial value of a scan or fold, the rows, their order, and the structure of the values."""
    rows, count = _rows(elems)
    order = list(range(count - 1, -1, -1) if reverse else range(count))
    if initializer is not None:
        return nest.map_structure(ops.convert_to_tensor, initializer), rows, order, initializer
    if not count:
        in_graph = _core.current_trace() is not None or hasattr(fn, "result_shapes")
        kind = errors.InvalidArgumentError if in_graph else errors.OutOfRangeError
        raise kind(None, None, "Tried to read from index 0 but array size is: 0 ")
    return nest.pack_sequence_as(elems, [r[order[0]] for r in rows]), rows, order[1:], elems


@one_call
def scan(
    fn: Callable,
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """All the values of `a = fn(a, row)` over the rows of `elems`, stacked.

    Args:
      initializer: the first `a`; by default the first row, which is then also the first result.
      reverse: begin with the last row.

    >>> import gradtape as tf
    >>> tf.scan(lambda a, x: a + x, tf.constant([1, 2, 3])).numpy()
    array([1, 3, 6], dtype=int32)
    """
    _want_callable(fn=fn)
    if _core.current_trace() is not None and _rows(elems)[1]:
        return _tracing_rows().scan_rows(conv(fn), elems, initializer, reverse, keep=True)
    value, rows, order, structure = _start(fn, elems, initializer, reverse)
    count = len(rows[0])
    outputs = [TensorArray(v.dtype, count, infer_shape=infer_shape) for v in nest.flatten(value)]

    def keep(at: int) -> None:
        for array, v in zip(outputs, nest.flatten(value), strict=True):
            array._write(at, v)

    if initializer is None:
        keep(count - 1 if reverse else 0)
    else:
        for array, v in zip(outputs, nest.flatten(value), strict=True):
            if infer_shape:
                array._element_shape = v.shape
    for i in order:
        value = fn(value, nest.pack_sequence_as(elems, [r[i] for r in rows]))
        nest.assert_same_structure(structure, value)
        keep(i)
    return nest.pack_sequence_as(structure, [array.stack() for array in outputs])


def _fold(fn: Callable, elems: Any, initializer: Any, reverse: bool) -> Any:
    _want_callable(fn=fn)
    if _core.current_trace() is not None and _rows(elems)[1]:
        return _tracing_rows().scan_rows(conv(fn), elems, initializer, reverse, keep=False)
    value, rows, order, _ = _start(fn, elems, initializer, reverse)
    if initializer is not None:
        value = initializer  # a Python number takes the type of the tensor it is combined with
    for i in order:
        value = fn(value, nest.pack_sequence_as(elems, [r[i] for r in rows]))
    return nest.map_structure(_loop_result, value)


@one_call
def foldl(
    fn: Callable,
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """The last value of `a = fn(a, row)` over the rows of `elems`, first to last."""
    return _fold(fn, elems, initializer, False)


@one_call
def foldr(
    fn: Callable,
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """The last value of `a = fn(a, row)` over the rows of `elems`, last to first."""
    return _fold(fn, elems, initializer, True)


# ---- Python functions as ops --------------------------------------------------------------------


def _decorates(func: Any, inp: Any, result_types: Any) -> bool:
    """Whether `tf.py_function(Tout=...)` is to be a decorator, and not a call."""
    if result_types is None:
        raise TypeError(
            "Missing required argument: 'Tout'. If using it as a decorator, set `Tout` by name above the function: "
            "`@tf.py_function(Tout=tout)`"
        )
    if func is not None and not callable(func):
        raise ValueError(f"Expected func to be callable. Received func={func!r} of type {type(func)}.")
    if func is None and inp is not None:
        raise TypeError(
            "`inp` goes with `func`: a decorated function is given its arguments when it is called."
        )
    return func is None


def _decorator(call: Callable, result_types: Any) -> Callable:
    def decorate(function: Callable) -> Callable:
        return functools.wraps(function)(lambda *args: call(function, args, result_types))

    return decorate


def py_function(func: Any = None, inp: Any = None, Tout: Any = None, name: str | None = None) -> Any:
    """Calls a Python function on tensors; differentiable through the ops it uses.

    Args:
      func: takes the tensors of `inp` and returns one value per type in `Tout`. Without it, a decorator is returned.
      inp: a list of tensors.
      Tout: the type of the result, or a list of types.

    >>> import gradtape as tf
    >>> @tf.py_function(Tout=tf.float32)
    ... def doubled(x):
    ...     return 2 * x
    >>> doubled(tf.constant(1.5)).numpy()
    np.float32(3.0)
    """
    return _decorator(run_python, Tout) if _decorates(func, inp, Tout) else run_python(func, inp, Tout)


@one_call
def run_python(func: Callable, inp: Any, Tout: Any) -> Any:
    """A call of `py_function`."""
    many = isinstance(Tout, (list, tuple))
    result_types = list(Tout) if many else [Tout]
    if _core.current_trace() is not None:
        # The graph sees the component tensors of composite tensors.
        given, result_parts = composites.apart(list(inp)), composites.apart(result_types, specs=True)

        def run(xs: list) -> list:
            result = run_python(func, composites.together(nest.pack_sequence_as(given, xs)), Tout)
            return nest.flatten(result if many else [result], expand_composites=True)

        flat = _tracing_rows().python_op(
            "py_function",
            run,
            [ops.convert_to_tensor(x) for x in nest.flatten(given)],
            [output_spec(w) for w in nest.flatten(result_parts)],
            True,
        )
        out = composites.together(nest.pack_sequence_as(result_parts, flat))
        return out if many else out[0]
    result = func(*[_tensor_or_more(x) for x in inp])
    values = list(result) if many and isinstance(result, (list, tuple)) else [result]
    if many and not result_types:
        return []
    if len(values) != len(result_types):
        raise errors.InvalidArgumentError(
            None, None, f"py_function: expected {len(result_types)} results as in `Tout`; got {len(values)}."
        )
    out = [
        v
        if nest.is_composite(type(v))
        else ops.convert_to_tensor(v, None if spec is None else output_spec(spec)[0])
        for v, spec in zip(values, result_types, strict=True)
    ]
    return out if many else out[0]


def numpy_function(
    func: Any = None,
    inp: Any = None,
    Tout: Any = None,
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """Calls a Python function on arrays and converts its results to tensors. It has no gradient.

    Without `func` a decorator is returned: `@tf.numpy_function(Tout=tf.float32)`.
    """
    return _decorator(run_numpy, Tout) if _decorates(func, inp, Tout) else run_numpy(func, inp, Tout)


@one_call
def run_numpy(func: Callable, inp: Any, Tout: Any) -> Any:
    """A call of `numpy_function`."""
    if _core.current_trace() is not None:
        specs = [output_spec(s) for s in nest.flatten(Tout)]
        tensors = [ops.convert_to_tensor(x) for x in inp]
        out = _tracing_rows().python_op(
            "numpy_function",
            lambda xs: nest.flatten([run_numpy(func, xs, Tout)]),
            tensors,
            specs,
            False,
        )
        return out[0] if len(out) == 1 else out
    arrays = [np.asarray(x.numpy() if hasattr(x, "numpy") else x) for x in inp]
    result = nest.flatten(func(*arrays))
    out = [None if value is None else ops.convert_to_tensor(value) for value in result]
    return out[0] if len(out) == 1 else out
