"""Control flow of version 1: a loop with one variable returns it without a list; `cond` has older argument names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gradtape as tf
from gradtape._src.autograph.conversion import conv
from gradtape._src.functions.concrete import ConcreteFunction


def while_loop(
    cond: Callable,
    body: Callable,
    loop_vars: Sequence[Any],
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: Any = None,
    return_same_structure: bool = False,
) -> Any:
    """Like `tf.while_loop`, but one loop variable need not be in a list.

    >>> import gradtape as tf
    >>> tf.compat.v1.while_loop(lambda i: i < 10, lambda i: i * 3, [tf.constant(1)]).numpy()
    np.int32(27)
    """
    alone = not return_same_structure and isinstance(loop_vars, (list, tuple)) and len(loop_vars) == 1
    bare = alone and tf.inside_function()

    def step(variable: Any) -> Any:
        nonlocal bare
        after = (conv(body) if tf.inside_function() else body)(variable)
        if isinstance(after, (list, tuple)):
            return after
        bare = True
        return [after] if isinstance(loop_vars, list) else (after,)

    result = tf.while_loop(
        cond, step if alone and callable(body) else body, loop_vars, shape_invariants, parallel_iterations, back_prop,
        swap_memory, maximum_iterations, name,
    )  # fmt: skip
    return result[0] if bare else result


def cond(
    pred: Any,
    true_fn: Callable | None = None,
    false_fn: Callable | None = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Callable | None = None,
    fn2: Callable | None = None,
) -> Any:
    """Like `tf.cond`, but a list of one value is unpacked unless `strict`; `fn1` and `fn2` are older names.

    >>> import gradtape as tf
    >>> tf.compat.v1.cond(True, lambda: ["yes"], lambda: ["no"])
    'yes'
    """
    for old, new, given in (("fn1", "true_fn", (fn1, true_fn)), ("fn2", "false_fn", (fn2, false_fn))):
        if None not in given:
            raise TypeError(f"cond(): '{old}' and '{new}' may not be set simultaneously.")
    yes, no = (new if old is None else old for old, new in ((fn1, true_fn), (fn2, false_fn)))
    if yes is None or no is None:
        raise TypeError(f"cond(): '{'true_fn' if yes is None else 'false_fn'}' argument required")
    result = tf.cond(pred, yes, no, name)
    single = isinstance(result, (list, tuple)) and len(result) == 1
    return result[0] if single and not strict and not tf.inside_function() else result


def py_func(func: Callable, inp: Any, Tout: Any, stateful: bool = True, name: str | None = None) -> Any:
    """`tf.numpy_function`."""
    return tf.numpy_function(func, inp, Tout, stateful, name)


def wrap_function(fn: Callable, signature: Any, name: str | None = None) -> ConcreteFunction:
    """The graph of a Python function for arguments of these TensorSpecs."""
    return tf.function(fn, autograph=False).get_concrete_function(*signature)


def control_flow_v2_enabled() -> bool:
    """True: loops and conditions are functions."""
    return True


def is_variable_initialized(variable: Any) -> Any:
    """True: variables are initialised when they are created."""
    return tf.constant(True)
