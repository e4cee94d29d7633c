"""Suggestions for a missing name: names of the namespace with a similar spelling, and the same name elsewhere.

They are computed when the message is shown, since packages use `hasattr` to test for optional names.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable

# Names in NumPy, PyTorch and JAX that are not spelled like ours. `reduce_<name>` is tried for every name.
_OTHER_LIBRARIES = {
    "arange": "range", "array": "constant", "asarray": "convert_to_tensor", "tensor": "constant", "from_numpy": "constant",
    "astype": "cast", "cat": "concat", "concatenate": "concat", "hstack": "concat", "vstack": "concat", "view": "reshape",
    "permute": "transpose", "std": "math.reduce_std", "var": "math.reduce_variance", "dot": "tensordot", "mm": "matmul",
    "bmm": "matmul", "inner": "tensordot", "outer": "einsum", "inverse": "linalg.inv", "solve": "linalg.solve",
    "randn": "random.normal", "rand": "random.uniform", "randint": "random.uniform", "choice": "random.categorical",
    "manual_seed": "random.set_seed", "seed": "random.set_seed", "no_grad": "stop_gradient", "detach": "stop_gradient",
    "grad": "GradientTape", "value_and_grad": "GradientTape", "backward": "GradientTape", "power": "pow",
    "mod": "math.mod", "clip": "clip_by_value", "clamp": "clip_by_value", "flip": "reverse", "take": "gather",
    "index_select": "gather", "masked_select": "boolean_mask", "repeat_interleave": "repeat", "iota": "range",
    "jit": "function", "vmap": "vectorized_map", "relu": "nn.relu",
    "float": "float32", "long": "int64", "int": "int32", "str": "string", "nonzero": "where", "unbind": "unstack",
    "cross_entropy": "nn.sparse_softmax_cross_entropy_with_logits", "mse_loss": "reduce_mean",
    "checkpoint": "recompute_grad",
}  # fmt: skip


class MissingName(AttributeError):
    """An AttributeError whose text is completed when it is shown."""

    def __init__(self, text: str, near: Callable[[], list[str]] | None = None) -> None:
        super().__init__(text)
        self._near = near

    def __str__(self) -> str:
        text = self.args[0]
        if self._near is not None:
            suggestions, self._near = self._near(), None
            if suggestions:
                text += f". Did you mean {' or '.join(f'tf.{name}' for name in suggestions)}?"
                self.args = (text,)
        return text

    def __reduce__(self) -> tuple:
        return AttributeError, (str(self),)


# Tracebacks show it as an AttributeError.
MissingName.__module__, MissingName.__qualname__, MissingName.__name__ = "builtins", *["AttributeError"] * 2


def near(space: str, name: str, names: Iterable[str], everywhere: Iterable[str]) -> list[str]:
    """The full names that may be meant, the best first; three at most.

    >>> near("nn", "soft_max", ["softmax", "softplus", "relu"], [])
    ['nn.softmax']
    >>> near("", "sum", ["reduce_sum", "stack"], ["reduce_sum", "math.reduce_sum"])
    ['reduce_sum']
    >>> near("", "softmax", ["stack"], ["nn.softmax", "math.tanh"])
    ['nn.softmax']
    """
    spellings = {_plain(n): n for n in sorted(names, reverse=True) if n[0] != "_"}
    within = f"{space}." if space else ""
    plain, full = _plain(name), list(everywhere)
    if plain in spellings:
        return [within + spellings[plain]]
    if f"reduce{plain}" in spellings:
        return [within + spellings[f"reduce{plain}"]]
    if name in _OTHER_LIBRARIES:
        return [_OTHER_LIBRARIES[name]]
    same = [n for n in full if n.rpartition(".")[2] == name and "compat" not in n and "raw_ops" not in n]
    if same:
        return sorted(same, key=len)[:3]
    close = difflib.get_close_matches(plain, spellings, 3, 0.75)
    close += [n for n in spellings if len(n) > 2 and plain.startswith(n) and n not in close][: 3 - len(close)]
    return [within + spellings[n] for n in close]


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def argument(name: str, names: list[str]) -> str:
    """A suggestion for a keyword that a function does not have."""
    shorter = [k for k in names if k != "name" and (k.startswith(name[:3]) and abs(len(k) - len(name)) < 3)]
    close = difflib.get_close_matches(name, names, 1, 0.7) or shorter[:1]
    return f" Did you mean {close[0]!r}?" if close else ""
