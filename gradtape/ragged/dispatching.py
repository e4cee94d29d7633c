"""The public functions that support ragged tensors, and their implementations.

`_src/tensors/dispatch.py` passes calls here that have a ragged tensor among their arguments.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import gradtape as tf
from gradtape._src.control import assertions
from gradtape.ragged import arrays, gathering, joining, products, reductions, shapes
from gradtape.ragged.elementwise import aligned, operands
from gradtape.ragged.shapes import DynamicRaggedShape
from gradtape.ragged.spec import RaggedTensorSpec
from gradtape.ragged.tensor import RaggedTensor

# Functions applied to each value, whatever their other arguments are.
_UNARY = """
    abs acos acosh asin asinh atan atanh bitcast bitwise.invert cast clip_by_value cos cosh
    debugging.check_numerics dtypes.saturate_cast exp floor grad_pass_through identity math.angle
    math.bessel_i0 math.bessel_i0e math.bessel_i1 math.bessel_i1e math.ceil math.conj math.digamma math.erf
    math.erfc math.erfcinv math.erfinv math.expm1 math.imag math.is_finite math.is_inf math.is_nan math.lgamma
    math.log math.log1p math.log_sigmoid math.logical_not math.ndtri math.real math.reciprocal
    math.reciprocal_no_nan math.rint math.rsqrt math.softplus math.special.bessel_j0 math.special.bessel_j1
    math.special.bessel_k0 math.special.bessel_k0e math.special.bessel_k1 math.special.bessel_k1e
    math.special.bessel_y0 math.special.bessel_y1 math.special.dawsn math.special.expint
    math.special.fresnel_cos math.special.fresnel_sin math.special.spence negative nn.elu
    nn.gelu nn.leaky_relu nn.relu nn.relu6 nn.selu nn.silu nn.softsign ones_like round sigmoid sign sin sinh
    sqrt square stop_gradient tan tanh zeros_like
""".split()

# The same in parts of the package that may not be imported yet.
_UNARY_IN = {
    "image": "adjust_brightness adjust_gamma convert_image_dtype random_brightness stateless_random_brightness",
    "io": "decode_base64 encode_base64 decode_compressed",
    "strings": "as_string length lower upper strip substr regex_full_match regex_replace to_hash_bucket "
    "to_hash_bucket_fast to_hash_bucket_strong to_number unicode_script unicode_transcode",
}

# Functions of two values.
_BINARY = """
    add atan2 bitwise.bitwise_and bitwise.bitwise_or bitwise.bitwise_xor bitwise.left_shift bitwise.right_shift
    complex divide equal greater greater_equal less less_equal logical_and logical_or math.divide_no_nan
    math.floordiv math.floormod math.logical_xor math.multiply_no_nan math.nextafter math.squared_difference
    math.truediv math.xdivy math.xlog1py math.xlogy math.zeta math.polygamma math.igamma math.igammac maximum
    minimum multiply nn.sigmoid_cross_entropy_with_logits not_equal pow realdiv subtract truncatediv truncatemod
    math.scalar_mul
""".split()


def _public(name: str) -> Any:
    value: Any = tf
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


def _unary(function: Callable, args: tuple, kwargs: dict) -> Any:
    tensors: list[RaggedTensor] = []

    def flat(value: Any) -> Any:
        if isinstance(value, RaggedTensor):
            tensors.append(value)
            return value.flat_values
        return value

    out = function(*map(flat, args), **{k: flat(v) for k, v in kwargs.items()})
    return tensors[0].with_flat_values(out)


def _both(args: tuple, kwargs: dict) -> tuple[list, dict, list]:
    """The arguments as mutable containers, and the places of the two operands among them."""
    places: list = [*range(min(len(args), 2))]
    places += [k for k in kwargs if k != "name"][: 2 - len(places)]
    return list(args), dict(kwargs), places


def _binary(function: Callable, args: tuple, kwargs: dict) -> Any:
    new_args, new_kwargs, (p, q) = _both(args, kwargs)
    where_p, where_q = (new_args if isinstance(k, int) else new_kwargs for k in (p, q))
    x, y = operands(where_p[p], where_q[q])
    where_p[p], where_q[q], like = aligned(x, y)
    out = function(*new_args, **new_kwargs)
    # Assertions return nothing.
    return None if out is None else like.with_flat_values(out)


def _compared(function: Callable, args: tuple, kwargs: dict) -> None:
    """`tf.debugging.assert_equal` and the like."""
    sign, holds, x, y, *rest = args
    x, y, _ = aligned(*operands(x, y))
    function(sign, holds, x, y, *rest)


def _dropout(function: Callable, args: tuple, kwargs: dict) -> Any:
    if kwargs.get("noise_shape") is not None:
        raise ValueError("noise_shape is not supported yet for RaggedTensor x")
    return _unary(function, args, kwargs)


def _is_tensor(function: Callable, args: tuple, kwargs: dict) -> bool:
    return True


def _resized(function: Callable, args: tuple, kwargs: dict) -> Any:
    images, *rest = args
    if images.shape.rank != 4:
        raise ValueError("tf.image.resize: images.shape.rank must be 4 if images is ragged.")
    dense = [image.to_tensor() if isinstance(image, RaggedTensor) else image for image in images]
    return tf.stack([function(image, *rest, **kwargs) for image in dense])


# Functions whose ragged version takes the same arguments.
_OWN: dict[str, Callable] = {
    "add_n": joining.add_n,
    "concat": joining.concat,
    "stack": joining.stack,
    "where": joining.where,
    "gather": gathering.gather,
    "gather_nd": gathering.gather_nd,
    "expand_dims": arrays.expand_dims,
    "squeeze": arrays.squeeze,
    "size": arrays.size,
    "rank": arrays.rank,
    "one_hot": arrays.one_hot,
    "reverse": arrays.reverse,
    "tile": arrays.tile,
    "split": arrays.split,
    "dynamic_partition": arrays.dynamic_partition,
    "linalg.matmul": products.matmul,
    "math.bincount": products.bincount,
    "nn.embedding_lookup": products.embedding_lookup,
    "nn.embedding_lookup_sparse": products.embedding_lookup_sparse,
    "map_fn": products.map_fn,
    "nn.softmax": reductions.softmax,
    "cumsum": reductions.cumsum,
    "reduce_sum": reductions.reduce_sum,
    "reduce_prod": reductions.reduce_prod,
    "reduce_min": reductions.reduce_min,
    "reduce_max": reductions.reduce_max,
    "reduce_mean": reductions.reduce_mean,
    "math.reduce_variance": reductions.reduce_variance,
    "math.reduce_std": reductions.reduce_std,
    "reduce_logsumexp": reductions.reduce_logsumexp,
    "reduce_all": reductions.reduce_all,
    "reduce_any": reductions.reduce_any,
    "math.unsorted_segment_mean": reductions.unsorted_segment_mean,
    "math.unsorted_segment_sqrt_n": reductions.unsorted_segment_sqrt_n,
    **{
        f"math.unsorted_segment_{kind}": reductions.unsorted_segment(kind)
        for kind in ("sum", "prod", "min", "max")
    },
    "shape": shapes.shape,
    "reshape": shapes.reshape,
    "broadcast_to": shapes.broadcast_to,
}

# Functions that accept the shape of a ragged tensor.
_OF_SHAPES: dict[str, Callable] = {
    "ones": shapes.ones,
    "zeros": shapes.zeros,
    "fill": shapes.fill,
    "reshape": shapes.reshape,
    "broadcast_to": shapes.broadcast_to,
    "broadcast_dynamic_shape": shapes.broadcast_dynamic_shape,
}


def _table() -> dict[Any, Callable]:
    """The implementation of each function: called with the function and its arguments."""
    table: dict[Any, Callable] = {}
    for names, implementation in ((_UNARY, _unary), (_BINARY, _binary)):
        table |= {_public(name): implementation for name in names}
    table |= {tf.debugging.assert_near: _binary, assertions._compare: _compared}
    table |= {tf.nn.dropout: _dropout, tf.nn.experimental.stateless_dropout: _dropout}
    table |= {tf.is_tensor: _is_tensor}
    table |= {_public(name): _as_own(own) for name, own in _OWN.items()}
    table.pop(None, None)
    return table


def _as_own(own: Callable) -> Callable:
    return lambda function, args, kwargs: own(*args, **kwargs)


_TABLE = _table()
# Functions whose ragged tensors are in a list or nest of arguments.
_TAKE_LISTS = {tf.concat, tf.stack, tf.add_n, tf.map_fn}
_TABLE_OF_SHAPES = {_public(name): own for name, own in _OF_SHAPES.items()}


def handle(function: Any, args: tuple, kwargs: dict) -> Any:
    """The result of a public function for ragged tensors; NotImplemented if it does not support them."""
    implementation = _TABLE.get(function) or _late(function)
    if implementation is None:
        return NotImplemented
    if function not in _TAKE_LISTS and not any(
        isinstance(v, RaggedTensor) for v in (*args, *kwargs.values())
    ):
        return NotImplemented
    return implementation(function, args, kwargs)


def _late(function: Any) -> Any:
    """The implementation of a function in a part of the package that has been imported since."""
    for space, names in _UNARY_IN.items():
        module = sys.modules.get(f"gradtape.{space}")
        if module is not None:
            _TABLE.update({getattr(module, n): _unary for n in names.split() if hasattr(module, n)})
            if space == "image":
                _TABLE[module.resize] = _resized  # type: ignore[attr-defined]
    return _TABLE.get(function)


def handle_shape(function: Any, args: tuple, kwargs: dict) -> Any:
    """The same for the shapes of ragged tensors."""
    own = _TABLE_OF_SHAPES.get(function)
    return NotImplemented if own is None else own(*args, **kwargs)


def handle_spec(function: Any, args: tuple, kwargs: dict) -> Any:
    """`tf.map_fn` with ragged results."""
    return products.map_fn(*args, **kwargs) if function is tf.map_fn else NotImplemented


CLASSES: dict[type, Callable] = {
    RaggedTensor: handle,
    DynamicRaggedShape: handle_shape,
    RaggedTensorSpec: handle_spec,
}
