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
    always: bool = True  # False: it occurs only sometimes, so an entry that is not needed is no failure

    def covers(self, function: str, kind: str, text: str) -> bool:
        return (
            kind in self.kinds.split()
            and any(fnmatch.fnmatchcase(function, p) for p in self.functions.split())
            and re.search(self.words, text) is not None
        )


DERIVATIVES = (
    Known(
        "norm math.reduce_euclidean_norm linalg.normalize",
        "gradient",
        r"v\(\[0.0, 0.0\]\)",
        "NaN at a vector of zeros",
        "0 (infinite for `normalize`)",
        "a subgradient, as in JAX and PyTorch; one zero vector no longer ruins a training run. `tf.sqrt` itself is as in "
        "TensorFlow",
    ),
    Known(
        "experimental.numpy.hypot",
        "gradient",
        r"v\(\[0.0, 2.0\]\)",
        "NaN at (0, 0)",
        "0",
        "a subgradient, as for `norm`",
    ),
    Known(
        "experimental.numpy.logaddexp experimental.numpy.logaddexp2",
        "gradient",
        r"v\(\[0.0, 2.0\]\)",
        "of equal numbers all to the first",
        "half to each",
        "the derivative; checked by central differences",
    ),
    Known(
        "math.squared_difference math.multiply_no_nan math.xlogy math.xlog1py math.xdivy math.segment_prod "
        "math.unsorted_segment_prod math.cumprod math.reduce_prod reduce_prod math.reduce_euclidean_norm nn.silu "
        "linalg.det linalg.slogdet linalg.sqrtm matrix_square_root",
        "gradient second",
        r"complex|\bc\(",
        "gradients with respect to complex operands lack the conjugate, or the term of the sign",
        "correct",
        "checked by central differences",
    ),
    Known(
        "math.cumprod reduce_prod",
        "gradient second",
        r"sample (8|9|16|17) |edge",
        "wrong where elements are 0: `[1, 0, 0]` for `cumprod([2, 0, 3])`",
        "`[1, 8, 0]`",
        "checked by central differences",
    ),
    Known(
        "function vectorized_map",
        "second",
        r"here None",
        "the second derivative of a linear function is zeros",
        "None, as without `tf.function`",
        "a function behaves as its ops do",
    ),
    Known(
        "nn.moments",
        "second",
        "",
        "wrong second derivative: the mean is treated as a constant in the gradient of the variance",
        "correct",
        "checked by central differences",
    ),
    Known(
        "nn.softmax_cross_entropy_with_logits",
        "second",
        "",
        "second derivatives with respect to `labels` are zeros",
        "correct",
        "checked by central differences",
    ),
    Known(
        "nn.log_poisson_loss image.ssim_multiscale",
        "gradient second",
        "TensorFlow nan",
        "NaN where a logarithm or a power is at 0",
        "0, or the limit",
        "one NaN ruins a training run",
    ),
    Known(
        "math.special.bessel_i0 math.special.bessel_i1 math.special.bessel_i1e math.special.bessel_j1 math.special.spence",
        "gradient second",
        "edge 0",
        "at the edge of the domain wrong by a factor of 2, or NaN",
        "correct",
        "the limit exists",
    ),
    Known(
        "nn.isotonic_regression",
        "shape",
        "gradient",
        "the gradient of a vector has shape `[n, 1]`",
        "`[n]`",
        "a gradient has the shape of its source",
    ),
    Known(
        "linalg.LinearOperatorTridiag",
        "gradient",
        "diag_part",
        "with the diagonals given as a sequence: None for those not used",
        "zeros",
        "the diagonals are stacked into one tensor",
    ),
    Known(
        "linalg.expm",
        "gradient second",
        r"[\[(]0, ",
        "None for an empty batch",
        "an empty gradient",
        "an empty batch is not a special case",
    ),
    Known(
        "nn.conv2d nn.max_pool2d",
        "gradient second",
        r'"VALID"\).* here 0.0',
        "for an empty result: uninitialised memory",
        "zeros",
        "the sum over no elements",
        always=False,
    ),
    Known(
        "dynamic_stitch",
        "gradient",
        r"\[\[0, 0\]\]",
        "elements that were overwritten have a nonzero gradient",
        "0",
        "the result does not depend on them",
    ),
    Known(
        "quantization.quantize_and_dequantize_v2",
        "gradient",
        "",
        "0 beyond `input_min` and `input_max`, also if `range_given=False`",
        "0 beyond the range that was used",
        "with `range_given=False` the arguments are not used",
    ),
    Known(
        "quantization.*_gradient py_function random.shuffle",
        "gradient second",
        "TensorFlow None",
        "no gradient, or no second derivative",
        "there is one",
        "composites are differentiated through their ops",
    ),
    Known(
        "RaggedTensor.to_tensor",
        "gradient",
        r"to_tensor.* TensorFlow dict",
        "IndexedSlices for `to_tensor()`",
        "a dense gradient",
        "the rows are copied, not gathered",
    ),
    Known(
        "experimental.numpy.compress",
        "gradient",
        r"here dict",
        "a dense gradient",
        "IndexedSlices",
        "as that of `take`, which it is",
    ),
    Known(
        "nn.embedding_lookup",
        "gradient",
        r"\[f\(3, 2\), f\(2, 2\)\]",
        "IndexedSlices for a table given in parts",
        "a dense gradient",
        "the parts are concatenated first",
    ),
)

TYPES = (
    Known(
        "image.adjust_* image.rgb_to_grayscale image.stateless_random_* nn.compute_average_loss nn.ctc_beam_search_decoder",
        "value gradient second",
        r"\[float64\]",
        "float64 is computed in float32",
        "in float64",
        "float64 was asked for",
    ),
    Known(
        "nn.leaky_relu nn.gelu",
        "value gradient second",
        r"\[float64\]",
        "`alpha` and the square root of 2 are rounded to float32",
        "they are float64",
        "float64 was asked for",
    ),
    Known(
        "linalg.expm",
        "value gradient",
        r"\[float32\]",
        "three to four correct digits in float32",
        "six",
        "another Padé approximation",
    ),
    Known("math.erf", "value", "np.inf", "NaN at infinity in float64", "1 and -1", "the limit exists"),
    Known(
        "image.crop_and_resize",
        "value gradient",
        "nearest",
        "sampling positions in float32",
        "in the type of the image",
        "visible only where a position is half-way between two pixels",
    ),
    Known(
        "tensor_scatter_nd_max tensor_scatter_nd_min math.segment_max math.segment_min math.unsorted_segment_max "
        "math.unsorted_segment_min",
        "value",
        "nan",
        "whether NaN is ignored depends on its position",
        "NaN propagates",
        "as in `maximum` and `reduce_max`",
    ),
    Known(
        "math.argmax math.argmin",
        "value",
        "nan",
        "NaN is ignored",
        "the index of the first NaN",
        "as in NumPy",
    ),
    Known(
        "math.top_k",
        "value gradient",
        "sorted=False|nan",
        "`sorted=False` gives some other order; NaN comes first",
        "always sorted; NaN comes last",
        "the documentation leaves the order open",
    ),
    Known(
        "cast saturate_cast",
        "value",
        "nan",
        "NaN becomes the smallest integer",
        "0",
        "the documentation leaves it open",
    ),
    Known(
        "bitwise.left_shift",
        "value",
        "40",
        "a shift by more bits than the type has is clamped",
        "gives 0",
        "the documentation leaves it open",
    ),
    Known(
        "random.stateless_parameterized_truncated_normal",
        "value gradient",
        "",
        "rejection sampling",
        "inverts the distribution function: other numbers",
        "differentiable with respect to all parameters",
    ),
    Known(
        "experimental.numpy.*",
        "signature class dtype",
        "",
        "rarely used parameters (`order`, `out`, `mode`, ...); shapes and sizes are NumPy objects",
        "no such parameters; Python numbers and tuples",
        "few programs use them",
    ),
    Known(
        "experimental.numpy.hypot",
        "value gradient second",
        r"e200",
        "overflows and underflows where squares do",
        "does not",
        "as in NumPy",
    ),
    Known(
        "experimental.numpy.heaviside",
        "value gradient",
        "nan",
        "the second argument for NaN",
        "NaN",
        "as in NumPy",
    ),
    Known(
        "experimental.numpy.signbit",
        "value",
        r"-0\.0",
        "False for -0.0",
        "True",
        "as in NumPy",
    ),
    Known(
        "histogram_fixed_width_bins",
        "dtype",
        "int64",
        "`dtype` is ignored",
        "used",
        "it was asked for",
    ),
    Known(
        "random.Generator.from_seed",
        "class",
        "state",
        "`state` is a variable",
        "a tensor",
        "a generator updates its own state",
    ),
)

ERRORS = (
    Known(
        "*",
        "error accepted refused",
        r"no string tensors|(==|\+) \"text\"",
        "a string in place of a number: the exception depends on the function; `==` raises `TypeError`",
        "a `TypeError` that is also an `InvalidArgumentError`; `==` is False",
        "the same everywhere",
    ),
    Known(
        "*",
        "error",
        r"TensorFlow (NotFoundError: Could not find device|UnimplementedError|InternalError)",
        "an element type without a kernel, an integer divided by 0: `NotFoundError`, `UnimplementedError`, `InternalError`",
        "`InvalidArgumentError`, `ValueError`",
        "wrong operands have one class",
    ),
    Known(
        "*",
        "accepted error",
        r"TensorFlow (AttributeError|IndexError)",
        "a list for a tensor, a scalar where rows are needed, a value that is not callable: `AttributeError`, "
        "`IndexError` from inside TensorFlow",
        "a result, or a `TypeError` or `ValueError` that says why",
        "accidents of TensorFlow's code",
    ),
    Known(
        "Tensor.__getitem__",
        "error",
        r"\[True\]",
        "`x[True]`: `ValueError`",
        "`TypeError`",
        "a bool is not an index",
    ),
    Known(
        "py_function",
        "error",
        "ZeroDivisionError",
        "exceptions of the function become `UnknownError` and the like",
        "are raised unchanged",
        "easier to debug",
    ),
    Known(
        "vectorized_map while_loop nn.conv_transpose",
        "error",
        "",
        "different numbers of rows, a body that returns another structure, no `output_shape`: "
        "`InvalidArgumentError`, `ValueError`",
        "`ValueError`, `TypeError`",
        "detected earlier",
    ),
    Known(
        "experimental.numpy.gcd experimental.numpy.lcm experimental.numpy.bitwise_*",
        "error",
        r"f\(2\)",
        "floats for integers: `ValueError`, `InvalidArgumentError`",
        "`TypeError`",
        "as in NumPy",
    ),
    Known(
        "experimental.numpy.cross",
        "error",
        r"f\(4\)",
        "vectors of 4 elements: `FailedPreconditionError`",
        "`ValueError`",
        "as in NumPy",
    ),
    Known(
        "linalg.cholesky",
        "refused",
        "",
        "NaN for a matrix that is not positive definite, and uninitialised memory above the diagonal",
        "`InvalidArgumentError`",
        "a NaN would not say where it came from",
    ),
    Known(
        "constant", "accepted", r"\[True, 1\]", "`[True, 1]` is a `ValueError`", "integers", "as `[1, True]`"
    ),
    Known(
        "case",
        "refused",
        "exclusive",
        "`exclusive=True` does not check the conditions after the first true one",
        "checks all",
        "as documented",
    ),
    Known("case", "accepted", "True", "a Python bool is refused", "accepted", "the meaning is clear"),
    Known(
        "switch_case",
        "accepted",
        "",
        "branch indices with gaps are refused",
        "accepted",
        "the meaning is clear",
    ),
    Known(
        "histogram_fixed_width_bins",
        "refused",
        "",
        "an empty `value_range` is accepted",
        "`InvalidArgumentError`",
        "no bin has a width",
    ),
    Known(
        "stack",
        "refused",
        r"\(\[\]\)",
        "`stack([])` is empty",
        "`InvalidArgumentError`",
        "the type is unknown",
    ),
    Known(
        "identity_n math.confusion_matrix",
        "accepted",
        r"\[\]",
        "refuse empty lists",
        "empty results",
        "an empty list is not a special case",
    ),
    Known(
        "random.create_rng_state random.experimental.create_rng_state",
        "refused",
        "threefry",
        "'threefry' gives a state that no CPU op accepts",
        "`InvalidArgumentError`",
        "only Philox is implemented",
    ),
    Known("parallel_stack", "accepted", "", "refused in eager mode", "`tf.stack`", "the same result"),
    Known(
        "reverse tile nn.conv3d signal.rfft nn.fractional_avg_pool",
        "accepted",
        "",
        "a single number where a list is expected is refused",
        "accepted as a list",
        "the meaning is clear",
    ),
    Known(
        "nn.leaky_relu",
        "accepted",
        "alpha=f",
        "`alpha` cannot be a tensor",
        "it can, and has a gradient",
        "slopes can be trained",
    ),
    Known(
        "nn.convolution",
        "accepted",
        "",
        "strides cannot be combined with dilations",
        "they can",
        "the kernels can do both",
    ),
    Known(
        "math.betainc nn.softmax_cross_entropy_with_logits",
        "accepted",
        "",
        "operands are not broadcast",
        "they are",
        "as in other element-wise functions",
    ),
    Known(
        "linalg.band_part",
        "accepted",
        "",
        "a band wider than the matrix is refused",
        "returns the whole matrix",
        "as `numpy.triu` does",
    ),
    Known("linalg.matrix_rank", "accepted", "", "integers are refused", "accepted", "they are cast"),
    Known(
        "quantization.quantize_and_dequantize quantization.quantize_and_dequantize_v2",
        "accepted",
        "axis=0",
        "a range per channel is refused",
        "accepted",
        "`axis` asks for it",
    ),
)

SECTIONS = {"Derivatives": DERIVATIVES, "Values and types": TYPES, "Errors": ERRORS}
KNOWN = tuple(k for section in SECTIONS.values() for k in section)


def _row(known: Known) -> str:
    names = (
        ", ".join(f"`{p}`" for p in known.functions.split()) if known.functions != "*" else "every function"
    )
    cells = [cell.replace("|", "\\|") for cell in (names, known.theirs, known.here, known.why)]
    return f"| {' | '.join(cells)} |".replace("  |", " |")


def section() -> str:
    """The generated part of the page."""
    lines = []
    for title, entries in SECTIONS.items():
        lines += [f"**{title}**", "", "| | TensorFlow 2.21 | gradtape | why |", "|---|---|---|---|"]
        lines += [*map(_row, entries), ""]
    return "\n".join(lines)


def page() -> str:
    """The text of docs/differences.md with that part replaced."""
    before, start, rest = PAGE.read_text(encoding="utf-8").partition(START)
    if not start:
        raise ValueError(f"{PAGE} has no line {START}")
    after = rest.partition(END)[2]
    return f"{before}{START}\n\n{section()}{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print("docs/differences.md written")
