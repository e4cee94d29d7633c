"""`tensorflow.python.ops.control_flow_util` and its kin: where control flow stands."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import gradtape as tf


def GraphOrParentsInXlaContext(graph: Any) -> bool:
    """Whether a graph is compiled by XLA: always False, since nothing here has to be built specially for XLA."""
    return False


def IsInWhileLoop(op: Any) -> bool:
    """Whether an operation is in a loop: there are none to ask about."""
    return False


def EnableControlFlowV2(graph: Any) -> bool:
    """True: there is no other control flow."""
    return True


def pfor(
    loop_fn: Callable, iters: Any, fallback_to_while_loop: bool = True, parallel_iterations: int | None = None
) -> Any:
    """The results of `loop_fn(i)` for the numbers below `iters`, stacked, computed at once."""
    return tf.vectorized_map(loop_fn, tf.range(iters), fallback_to_while_loop)


def for_loop(
    loop_fn: Callable, loop_fn_dtypes: Any, iters: Any, parallel_iterations: int | None = None
) -> Any:
    """The same, computed sequentially."""
    return tf.map_fn(loop_fn, tf.range(iters), fn_output_signature=loop_fn_dtypes)


def get_enclosing_xla_context() -> None:
    """The context of XLA that operations are made in: none."""
    return


def _case_helper(
    cond_fn: Callable,
    pred_fn_pairs: Any,
    default: Callable | None,
    exclusive: bool,
    name: str | None,
    allow_python_preds: bool = False,
    **cond_kwargs: Any,
) -> Any:
    """`tf.case` by another `tf.cond`: the function of the first condition that holds, or the last one.

    Raises:
      InvalidArgumentError: if `exclusive`, and several hold.
    """
    pairs = list(pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs)
    if exclusive:
        hold = [tf.cast(condition, tf.int32) for condition, _ in pairs]
        tf.debugging.assert_less_equal(tf.add_n(hold), 1, "Input error: exclusive=True")
    if default is None:
        default = pairs.pop()[1]
    chosen = default
    for condition, function in reversed(pairs):
        chosen = functools.partial(cond_fn, condition, true_fn=function, false_fn=chosen, **cond_kwargs)
    return chosen()
