"""Where gradtape differs from TensorFlow in a call, and why: the list that `make parity` compares with.

The part of docs/differences.md about single functions is written from it (`python known.py`), and a test
holds them together. An entry that no call needs any more is a failure of `make parity`.
"""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).resolve().parents[2] / "docs" / "differences.md"
START, END = "<!-- written by tests/against_tensorflow/known.py: start -->", "<!-- end -->"


class Known(NamedTuple):
    """One difference.

    Attributes:
      functions: public names, or patterns of them.
      kinds: what differs: value, dtype, shape, class, gradient, second, error, accepted, refused, signature,
        "no gradient".
      words: a regular expression that the call and what was found have to match.
      theirs, here, why: the row of the table.
    """

    functions: str
    kinds: str
    words: str
    theirs: str
    here: str
    why: str
    always: bool = True  # False: only now and then, so that its absence says nothing

    def covers(self, function: str, kind: str, text: str) -> bool:
        return (
            kind in self.kinds.split()
            and any(fnmatch.fnmatchcase(function, p) for p in self.functions.split())
            and re.search(self.words, text) is not None
        )


DERIVATIVES = (
    Known(
        "math.squared_difference math.multiply_no_nan math.xlogy math.xlog1py math.xdivy math.segment_prod "
        "math.unsorted_segment_prod math.cumprod math.reduce_prod reduce_prod math.reduce_euclidean_norm nn.silu "
        "linalg.det linalg.slogdet linalg.sqrtm matrix_square_root",
        "gradient second", r"complex|\bc\(",
        "gradients of complex operands without the conjugate, or without the part of the sign", "the true ones",
        "central differences agree with ours",
    ),
    Known(
        "math.cumprod reduce_prod", "gradient second", r"sample (8|9|16|17) |edge",
        "wrong where elements are 0: `[1, 0, 0]` for `cumprod([2, 0, 3])`", "`[1, 8, 0]`", "the true value",
    ),
    Known(
        "nn.relu nn.relu6 nn.crelu nn.leaky_relu nn.max_pool nn.max_pool1d nn.max_pool2d nn.pool nn.with_space_to_batch",
        "second", r"here None",
        "second derivatives are zeros", "None",
        "the gradient does not depend on the operand; `unconnected_gradients='zero'` gives zeros. Zeros carried through "
        "a network would make gradient penalties 1.4 times slower",
    ),
    Known(
        "function vectorized_map", "second", r"here None",
        "the second derivative of a linear function is zeros", "None, as without `tf.function`", "",
    ),
    Known(
        "nn.moments", "second", "", "wrong: the mean is a constant in the gradient of the variance", "the true ones", "",
    ),
    Known(
        "nn.softmax_cross_entropy_with_logits", "second", "",
        "second derivatives by `labels` are zeros", "the true ones", "",
    ),
    Known(
        "nn.log_poisson_loss image.ssim_multiscale", "gradient second", "TensorFlow nan",
        "NaN where a logarithm or a power is at 0", "0, or the limit", "a NaN ruins a training run",
    ),
    Known(
        "math.special.bessel_i0 math.special.bessel_i1 math.special.bessel_i1e math.special.bessel_j1 math.special.spence",
        "gradient second", "edge 0",
        "at the edge of their range wrong by a factor of 2, or NaN", "the true ones", "",
    ),
    Known(
        "nn.isotonic_regression", "shape", "gradient", "the gradient of a vector has shape `[n, 1]`", "`[n]`", "",
    ),
    Known(
        "linalg.LinearOperatorTridiag", "gradient", "diag_part", "None for the other diagonals", "zeros", "",
    ),
    Known(
        "linalg.expm", "gradient second", r"[\[(]0, ", "None for an empty batch", "an empty gradient", "",
    ),
    Known(
        "nn.conv2d nn.max_pool2d", "gradient second", r'"VALID"\).* here 0.0',
        "of an empty result: numbers that were in memory before", "zeros", "", always=False,
    ),
    Known(
        "dynamic_stitch", "gradient", r"\[\[0, 0\]\]",
        "elements that were overwritten have a gradient", "0", "the true value",
    ),
    Known(
        "quantization.quantize_and_dequantize_v2", "gradient", "",
        "0 beyond `input_min` and `input_max`, also if `range_given=False`", "0 beyond the range that was used", "",
    ),
    Known(
        "quantization.*_gradient py_function random.shuffle nn.embedding_lookup random.stateless_parameterized_truncated_normal",
        "gradient second", "",
        "no gradient, no second derivative, or IndexedSlices", "there is one; of the parts of a table it is dense", "",
    ),
)

TYPES = (
    Known(
        "image.adjust_* image.rgb_to_grayscale image.stateless_random_* nn.compute_average_loss nn.ctc_beam_search_decoder",
        "value gradient second", r"\[float64\]",
        "float64 is computed in float32", "in float64", "",
    ),
    Known(
        "nn.leaky_relu nn.gelu", "value gradient second", r"\[float64\]",
        "`alpha`, and the root of 2, are rounded to float32", "all digits", "",
    ),
    Known("linalg.expm", "value gradient", r"\[float32\]", "three to four digits of a float32", "six", ""),
    Known("math.erf", "value", "np.inf", "NaN at infinity in float64", "1 and -1", ""),
    Known(
        "image.crop_and_resize", "value gradient", "nearest", "places of pixels in float32", "in the type of the image",
        "where a place is half-way between two pixels, rounding decides",
    ),
    Known(
        "math.argmax math.argmin", "value", "nan", "passes over NaN", "NaN is the largest, and the smallest, as in NumPy", "",
    ),
    Known(
        "cast saturate_cast", "value", "nan", "NaN as an integer is the smallest one", "0", "both leave it open",
    ),
    Known(
        "bitwise.left_shift", "value", "40", "shifts by more bits than there are are cut", "give 0", "both leave it open",
    ),
    Known(
        "math.top_k", "value gradient", "sorted=False|nan", "`sorted=False` has an order of its own; NaN comes first",
        "sorted; NaN comes last", "",
    ),
    Known(
        "random.stateless_parameterized_truncated_normal", "value", "", "rejects", "takes quantiles: other numbers",
        "differentiable by all parameters",
    ),
    Known(
        "experimental.numpy.*", "signature class dtype", "",
        "parameters that are seldom used (`order`, `out`, `mode`, ...); shapes and sizes are NumPy's objects",
        "not there; Python's", "",
    ),
    Known(
        "histogram_fixed_width_bins", "dtype", "int64", "`dtype` is ignored", "heeded", "",
    ),
    Known(
        "random.Generator.from_seed", "class", "state", "`state` is a variable", "a tensor", "",
    ),
)

ERRORS = (
    Known(
        "*", "error accepted refused", r"no string tensors|(==|\+) \"text\"",
        "text where numbers belong: depends on the function; `==` a `TypeError`",
        "a `TypeError` that is an `InvalidArgumentError`, too; `==` is False", "there are no string tensors",
    ),
    Known(
        "*", "error", r"TensorFlow (NotFoundError: Could not find device|UnimplementedError|InternalError)",
        "an element type without a kernel, an integer divided by 0: `NotFoundError`, `UnimplementedError`, `InternalError`",
        "`InvalidArgumentError`", "one class for what is wrong with operands",
    ),
    Known(
        "*", "accepted error", r"TensorFlow (AttributeError|IndexError)",
        "lists where a tensor is expected, scalars without rows, something that is no function: "
        "`AttributeError`, `IndexError` from inside", "a result, or `TypeError`, `ValueError`", "",
    ),
    Known(
        "reduce_* reshape", "error", r"is not valid; expected",
        "text or floats as an axis or shape: `InvalidArgumentError`", "`TypeError`", "",
    ),
    Known(
        "stack repeat", "error", "axis", "an axis out of range: `ValueError`", "`InvalidArgumentError`, as elsewhere", "",
    ),
    Known(
        "complex divide truediv math.divide", "error", "components have incorrect types|Invalid dtype tf.bool",
        "types that do not fit: `TypeError`", "`InvalidArgumentError`, as elsewhere", "",
    ),
    Known(
        "math.add Tensor.__add__ nn.leaky_relu", "error", r"Cannot convert",
        "a float beside a tensor of integers: `InvalidArgumentError` of `+`, `TypeError` of all others", "`TypeError`", "",
    ),
    Known(
        "Tensor.__getitem__", "error", r"\[True\]", "`x[True]`: `ValueError`", "`TypeError`", "",
    ),
    Known(
        "random.stateless_normal random.gamma quantization.fake_quant_with_min_max_args*", "error", "",
        "parameters of another type: `ValueError`", "`InvalidArgumentError`, as elsewhere", "",
    ),
    Known(
        "function", "error", "Incompatible shapes", "shapes that do not fit, while tracing: `ValueError`",
        "`InvalidArgumentError`, as outside of a function", "",
    ),
    Known(
        "py_function", "error", "ZeroDivisionError", "what the function raises becomes `UnknownError` and the like",
        "is raised as it is", "",
    ),
    Known(
        "vectorized_map while_loop nn.conv_transpose nn.fractional_avg_pool", "error", "",
        "arguments that do not fit: other classes", "`ValueError`, `TypeError`", "",
    ),
    Known(
        "linalg.cholesky", "refused", "", "of a matrix that is not positive definite: NaN, and numbers that were there before",
        "`InvalidArgumentError`", "as TensorFlow did before; a NaN comes from nowhere",
    ),
    Known(
        "constant", "refused accepted", "uint8|True, 1",
        "a number out of range is wrapped if it stands alone; `[True, 1]` is refused", "`ValueError`; integers", "",
    ),
    Known(
        "case histogram_fixed_width_bins stack random.create_rng_state random.experimental.create_rng_state "
        "math.divide_no_nan",
        "refused", "",
        "`case(exclusive=True)` does not look at the rest, `value_range` may be empty, `stack([])` is empty, "
        "`divide_no_nan` takes integers, 'threefry'",
        "refused", "a mistake, or not there",
    ),
    Known(
        "reverse tile nn.conv3d signal.rfft nn.fractional_avg_pool", "accepted", "",
        "one number where a list of numbers is expected is refused", "stands for the list", "",
    ),
    Known(
        "nn.leaky_relu nn.convolution math.betainc nn.softmax_cross_entropy_with_logits linalg.band_part "
        "quantization.quantize_and_dequantize quantization.quantize_and_dequantize_v2 linalg.matrix_rank switch_case case "
        "identity_n parallel_stack math.confusion_matrix",
        "accepted", "",
        "a tensor as `alpha`, strides with dilations, operands that broadcast, a band wider than the matrix, a range per "
        "channel, integers, branches with gaps, Python's True, empty lists, eager `parallel_stack`: refused",
        "accepted", "",
    ),
)

SECTIONS = {"Derivatives": DERIVATIVES, "Values and types": TYPES, "Errors": ERRORS}
KNOWN = tuple(k for section in SECTIONS.values() for k in section)


def _names(known: Known) -> str:
    return (
        ", ".join(f"`{p}`" for p in known.functions.split()) if known.functions != "*" else "every function"
    )


def section() -> str:
    """The part of the page."""
    lines = []
    for title, entries in SECTIONS.items():
        lines += [f"**{title}**", "", "| | TensorFlow 2.21 | gradtape | why |", "|---|---|---|---|"]
        lines += [f"| {_names(k)} | {k.theirs} | {k.here} | {k.why} |" for k in entries]
        lines += [""]
    return "\n".join(lines)


def page() -> str:
    """docs/differences.md with the part written anew."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n\n{section()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print("docs/differences.md written")
