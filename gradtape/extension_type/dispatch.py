"""User-defined behaviour of public functions for composite tensors: `tf.experimental.dispatch_for_api` and the like.

A target is a function that is called in place of a public one, for arguments of the classes it is registered for.
One handler for all composite tensors looks them up (`gradtape/_src/tensors/dispatch.py`).
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable
from inspect import Parameter
from typing import Any, NamedTuple

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import nest
from gradtape._src.base.scopes import name_scope
from gradtape._src.tensors import dispatch
from gradtape._src.tensors.composite import CompositeTensor

# TensorFlow's element-wise functions of one tensor, and of two; and its assertions about two.
_UNARY = """
    abs bitwise.invert cast clip_by_value debugging.check_numerics dtypes.saturate_cast image.adjust_brightness
    image.adjust_gamma image.convert_image_dtype image.random_brightness image.stateless_random_brightness io.decode_base64
    io.decode_compressed io.encode_base64 math.acos math.acosh math.angle math.asin math.asinh math.atan math.atanh
    math.bessel_i0 math.bessel_i0e math.bessel_i1 math.bessel_i1e math.ceil math.conj math.cos math.cosh math.digamma
    math.erf math.erfc math.erfcinv math.erfinv math.exp math.expm1 math.floor math.imag math.is_finite math.is_inf
    math.is_nan math.lgamma math.log math.log1p math.log_sigmoid math.logical_not math.ndtri math.negative math.nextafter
    math.real math.reciprocal math.reciprocal_no_nan math.rint math.round math.rsqrt math.sigmoid math.sign math.sin
    math.sinh math.softplus math.special.bessel_j0 math.special.bessel_j1 math.special.bessel_k0 math.special.bessel_k0e
    math.special.bessel_k1 math.special.bessel_k1e math.special.bessel_y0 math.special.bessel_y1 math.special.dawsn
    math.special.expint math.special.fresnel_cos math.special.fresnel_sin math.special.spence math.sqrt math.square math.tan
    math.tanh nn.elu nn.gelu nn.leaky_relu nn.relu nn.relu6 nn.selu nn.silu nn.softsign ones_like strings.as_string
    strings.length strings.lower strings.regex_full_match strings.regex_replace strings.strip strings.substr
    strings.to_hash_bucket strings.to_hash_bucket_fast strings.to_hash_bucket_strong strings.to_number
    strings.unicode_script strings.unicode_transcode strings.upper zeros_like
""".split()
_BINARY = """
    bitwise.bitwise_and bitwise.bitwise_or bitwise.bitwise_xor bitwise.left_shift bitwise.right_shift dtypes.complex
    math.add math.atan2 math.divide math.divide_no_nan math.equal math.floordiv math.floormod math.greater
    math.greater_equal math.less math.less_equal math.logical_and math.logical_or math.logical_xor math.maximum math.minimum
    math.multiply math.multiply_no_nan math.not_equal math.pow math.scalar_mul math.squared_difference math.subtract
    math.truediv math.xdivy math.xlog1py math.xlogy math.zeta nn.sigmoid_cross_entropy_with_logits realdiv truncatediv
    truncatemod
""".split()
_ASSERTIONS = [
    f"debugging.assert_{k}" for k in "equal greater greater_equal less less_equal near none_equal".split()
]


class _Target(NamedTuple):
    """A function that takes over calls with arguments of these classes, by parameter."""

    signature: dict[str, Any]
    call: Callable
    registered: Callable  # the function that the program registered


class _Elementwise(NamedTuple):
    """A function that takes over calls of all element-wise functions with arguments of these classes."""

    kinds: tuple
    names: list[str]
    handler: Callable


_targets: dict[Any, list[_Target]] = {}  # by public function
_elementwise: list[_Elementwise] = []


# ---- public names -----------------------------------------------------------------------------------


def dispatch_for_api(api: Any, *signatures: dict) -> Callable:
    """Makes a function the implementation of a public one for composite tensors.

    Args:
      api: the public function.
      *signatures: dicts from parameters, by name or position, to classes, `typing.List` or `typing.Union` of them.
        The decorated function is called if the arguments match one of them, and one is a composite tensor. Without
        signatures, its annotations are used. It has the parameters of `api`; `name` may be omitted.

    >>> import gradtape as tf
    >>> class Masked(tf.experimental.ExtensionType):
    ...     values: tf.Tensor
    ...     mask: tf.Tensor
    >>> @tf.experimental.dispatch_for_api(tf.add, {"x": Masked, "y": Masked})
    ... def masked_add(x, y, name=None):
    ...     return Masked(x.values + y.values, x.mask & y.mask)
    >>> tf.add(Masked([1, 2], [True, False]), Masked([10, 20], [True, True])).values.numpy()
    array([11, 22], dtype=int32)
    """
    own = _signature_of(api)
    given = [_checked(own, s) for s in signatures]

    def decorator(target: Callable) -> Callable:
        if not callable(target):
            raise TypeError(f"Expected dispatch_target to be callable; got {target!r}")
        call = _with_name(target, own)
        _check_parameters(own, call)
        listed = given or [_checked(own, _annotations_of(target))]
        for s in listed:
            _targets.setdefault(api, []).append(_Target(s, call, target))
        return target

    return decorator


def dispatch_for_unary_elementwise_apis(x_type: Any) -> Callable:
    """Makes a function the implementation of all element-wise functions of one tensor, for a class.

    It is called as `handler(function, x)`; further arguments of the call are already bound in `function`.

    >>> import gradtape as tf
    >>> class Metres(tf.experimental.ExtensionType):
    ...     values: tf.Tensor
    >>> @tf.experimental.dispatch_for_unary_elementwise_apis(Metres)
    ... def handler(function, x):
    ...     return Metres(function(x.values))
    >>> tf.abs(Metres([-1.0, 2.0])).values.numpy()
    array([1., 2.], dtype=float32)
    """
    return _elementwise_decorator((x_type,), _UNARY, "unary elementwise dispatch", x_type)


def dispatch_for_binary_elementwise_apis(x_type: Any, y_type: Any) -> Callable:
    """The same for element-wise functions of two tensors: `handler(function, x, y)`."""
    return _elementwise_decorator(
        (x_type, y_type), _BINARY, "binary elementwise dispatch", f"({x_type}, {y_type})"
    )


def dispatch_for_binary_elementwise_assert_apis(x_type: Any, y_type: Any) -> Callable:
    """The same for the assertions about two tensors of `tf.debugging`: `handler(function, x, y)`."""
    return _elementwise_decorator(
        (x_type, y_type), _ASSERTIONS, "binary elementwise assert dispatch", f"({x_type}, {y_type})"
    )


def unregister_dispatch_for(dispatch_target: Callable) -> None:
    """Undoes one of the decorators.

    Raises:
      ValueError: if the function was not registered.
    """
    removed = False
    for targets in _targets.values():
        others = [t for t in targets if t.registered is not dispatch_target]
        removed = removed or len(others) < len(targets)
        targets[:] = others
    rest = [e for e in _elementwise if e.handler is not dispatch_target]
    removed = removed or len(rest) < len(_elementwise)
    _elementwise[:] = rest
    if not removed:
        raise ValueError(
            f"Function {dispatch_target} was not registered using a `@dispatch_for_*` decorator."
        )


# ---- registration -----------------------------------------------------------------------------------


def _signature_of(api: Any) -> inspect.Signature:
    if isinstance(api, _core.Op):
        listed = [
            Parameter(
                p.name,
                Parameter.POSITIONAL_OR_KEYWORD,
                default=Parameter.empty if p.default is ... else p.default,
            )
            for p in api.row.params  # type: ignore[attr-defined]
        ]
        return inspect.Signature(listed)
    if not isinstance(api, _core.Composite):
        raise ValueError(f"{api} does not support dispatch.")
    return inspect.signature(api)


def _checked(own: inspect.Signature, signature: Any) -> dict[str, Any]:
    if not (isinstance(signature, dict) and all(isinstance(k, (str, int)) for k in signature)):
        raise TypeError("signatures must be dictionaries mapping parameter names to type annotations.")
    names, out = list(own.parameters), {}
    for key, kind in signature.items():
        name = names[key] if isinstance(key, int) and key < len(names) else key
        parameter = own.parameters.get(name)  # type: ignore[arg-type]
        if parameter is None:
            raise ValueError(f"signature includes annotation for unknown parameter {name!r}.")
        if parameter.kind not in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD):
            raise ValueError(
                "Dispatch currently only supports type annotations for positional parameters; can't handle annotation for "
                f"{parameter.kind!r} parameter {name}."
            )
        _check_kind(kind)
        out[parameter.name] = kind
    return out


def _check_kind(kind: Any) -> None:
    origin = typing.get_origin(kind)
    if origin in (list, typing.Union, types.UnionType):
        for arg in typing.get_args(kind):
            _check_kind(arg)
    elif not (kind is None or (isinstance(kind, type) and origin is None)):
        raise ValueError(
            f"Type annotation {kind} is not currently supported by dispatch.  Supported annotations: type objects,  "
            "List[...], and Union[...]"
        )


def _annotations_of(target: Callable) -> dict[str, Any]:
    try:
        hints = typing.get_type_hints(target)
    except (NameError, AttributeError, TypeError):
        hints = dict(getattr(target, "__annotations__", {}))
    hints.pop("return", None)
    if not hints:
        raise ValueError(
            "The dispatch_for_api decorator must be called with at least one signature, or applied to a function that has "
            "type annotations on its parameters."
        )
    return hints


def _takes_anything(signature: inspect.Signature) -> bool:
    return {p.kind for p in signature.parameters.values()} == {
        Parameter.VAR_POSITIONAL,
        Parameter.VAR_KEYWORD,
    }


def _with_name(target: Callable, own: inspect.Signature) -> Callable:
    """The target with a parameter `name`, if the public function has one."""
    signature = inspect.signature(target)
    by_name = any(p.kind is Parameter.VAR_KEYWORD for p in signature.parameters.values())
    if "name" not in own.parameters or "name" in signature.parameters or by_name:
        return target
    at = list(own.parameters).index("name")

    @functools.wraps(target)
    def call(*args: Any, **kwargs: Any) -> Any:
        args, name = _without_name(args, kwargs, at)
        return _in_scope(name, lambda: target(*args, **kwargs))

    listed = [*signature.parameters.values(), own.parameters["name"]]
    call.__signature__ = signature.replace(parameters=listed)  # type: ignore[attr-defined]
    return call


def _without_name(args: tuple, kwargs: dict, at: int) -> tuple[tuple, Any]:
    if 0 <= at < len(args):
        return (*args[:at], *args[at + 1 :]), args[at]
    return args, kwargs.pop("name", None)


def _in_scope(name: Any, call: Callable[[], Any]) -> Any:
    if name is None:
        return call()
    with name_scope(name):
        return call()


def _check_parameters(own: inspect.Signature, target: Callable) -> None:
    signature = inspect.signature(target)
    if _takes_anything(signature):
        return
    mine = [(p.name, p.kind) for p in own.parameters.values()]
    if mine != [(p.name, p.kind) for p in signature.parameters.values()]:
        raise ValueError(f"Dispatch function's signature {signature} does not match API's signature {own}.")


def _elementwise_decorator(kinds: tuple, names: list[str], what: str, shown: Any) -> Callable:
    for kind in kinds:
        _check_kind(kind)

    def decorator(handler: Callable) -> Callable:
        for e in _elementwise:
            if e.kinds == kinds and e.names is names:
                raise ValueError(f"A {what} handler ({e.handler}) has already been registered for {shown}.")
        _elementwise.append(_Elementwise(kinds, names, handler))
        return handler

    return decorator


# ---- calls ------------------------------------------------------------------------------------------


def _loaded(name: str) -> Any:
    """A public function, if its module was imported."""
    function = ops.PUBLIC.get(name)
    if function is None:
        space, _, last = name.rpartition(".")
        function = vars(sys.modules.get(f"gradtape.{space}", types)).get(last)
    return function


@functools.cache
def _lists_of(function: Any) -> list[list[str]]:
    """The lists of names that contain a public function. Its module has been imported, as it is being called."""
    return [names for names in (_UNARY, _BINARY, _ASSERTIONS) if function in map(_loaded, names)]


def _fits(value: Any, kind: Any) -> bool:
    origin = typing.get_origin(kind)
    if origin is list:
        (inner,) = typing.get_args(kind)
        return isinstance(value, (list, tuple)) and all(_fits(v, inner) for v in value)
    if origin is not None:
        return any(_fits(value, k) for k in typing.get_args(kind))
    return isinstance(value, type(None) if kind is None else kind)


def _is_made_of_tensors(value: Any) -> bool:
    values = value if isinstance(value, (list, tuple)) else [value]
    return any(isinstance(v, CompositeTensor) for v in values)


def _matching(function: Any, args: tuple, kwargs: dict) -> list[Callable]:
    """The registered functions that match the arguments of a call."""
    targets = _targets.get(function, ())
    elementwise = [e for e in _elementwise if any(e.names is names for names in _lists_of(function))]
    if not targets and not elementwise:
        return []
    own = _signature_of(function)
    try:
        given = own.bind(*args, **kwargs).arguments
    except TypeError:
        return []
    names = list(own.parameters)
    matches: dict[int, Callable] = {}
    for t in targets:
        if _all_fit(t.signature, given):
            matches[id(t.registered)] = t.call
    for e in elementwise:
        if _all_fit(dict(zip(names, e.kinds, strict=False)), given):
            matches[id(e.handler)] = functools.partial(_call_elementwise, function, e, names)
    return list(matches.values())


def _all_fit(signature: dict[str, Any], given: dict[str, Any]) -> bool:
    values = [given.get(name) for name in signature]
    return any(map(_is_made_of_tensors, values)) and all(map(_fits, values, signature.values()))


def _call_elementwise(function: Any, e: _Elementwise, names: list[str], *args: Any, **kwargs: Any) -> Any:
    args, name = _without_name(args, kwargs, names.index("name") if "name" in names else -1)
    count = len(e.kinds)
    operands = [*args[:count], *(kwargs.pop(n) for n in names[len(args) : count])]
    rest = args[count:]
    plain = function if not rest and not kwargs else lambda *xs: function(*xs, *rest, **kwargs)
    return _in_scope(name, lambda: e.handler(plain, *operands))


_EACH_TENSOR = (ops.identity, ops.stop_gradient)


def _handle(function: Any, args: tuple, kwargs: dict) -> Any:
    matches = _matching(function, args, kwargs)
    if len(matches) > 1:
        raise ValueError(
            f"Multiple dispatch targets that were registered with tf.dispatch_for ({' and '.join(map(str, matches))}) match "
            f"the arguments to {getattr(function, 'op_name', None) or function.__name__}"
        )
    if matches:
        return matches[0](*args, **kwargs)
    if function in _EACH_TENSOR and args and nest.is_composite(type(args[0])):
        return nest.map_structure(function, args[0], expand_composites=True)
    return NotImplemented


dispatch.register(CompositeTensor, _handle)
