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
        "norm math.reduce_euclidean_norm linalg.normalize",
        "gradient",
        r"v\(\[0.0, 0.0\]\)",
        "NaN at a vector of zeros",
        "0 (of `normalize` infinite)",
        "a subgradient, as in JAX and PyTorch; one zero vector no longer ruins a training run. `tf.sqrt` itself is as in "
        "TensorFlow",
    ),
    Known(
        "math.squared_difference math.multiply_no_nan math.xlogy math.xlog1py math.xdivy math.segment_prod "
        "math.unsorted_segment_prod math.cumprod math.reduce_prod reduce_prod math.reduce_euclidean_norm nn.silu "
        "linalg.det linalg.slogdet linalg.sqrtm matrix_square_root",
        "gradient second",
        r"complex|\bc\(",
        "gradients of complex operands lack the conjugate, or the part of the sign",
        "the true ones",
        "central differences agree with ours",
    ),
    Known(
        "math.cumprod reduce_prod",
        "gradient second",
        r"sample (8|9|16|17) |edge",
        "wrong where elements are 0: `[1, 0, 0]` for `cumprod([2, 0, 3])`",
        "`[1, 8, 0]`",
        "the true value",
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
        "wrong: the mean counts as a constant in the gradient of the variance",
        "the true ones",
        "central differences agree with ours",
    ),
    Known(
        "nn.softmax_cross_entropy_with_logits",
        "second",
        "",
        "second derivatives with respect to `labels` are zeros",
        "the true ones",
        "central differences agree with ours",
    ),
    Known(
        "nn.log_poisson_loss image.ssim_multiscale",
        "gradient second",
        "TensorFlow nan",
        "NaN where a logarithm or a power is at 0",
        "0, or the limit",
        "a NaN ruins a training run",
    ),
    Known(
        "math.special.bessel_i0 math.special.bessel_i1 math.special.bessel_i1e math.special.bessel_j1 math.special.spence",
        "gradient second",
        "edge 0",
        "at the edge of their range wrong by a factor of 2, or NaN",
        "the true ones",
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
        "None for the other diagonals of a sequence",
        "zeros",
        "the diagonals are one tensor here",
    ),
    Known(
        "linalg.expm",
        "gradient second",
        r"[\[(]0, ",
        "None for an empty batch",
        "an empty gradient",
        "an empty batch is no special case",
    ),
    Known(
        "nn.conv2d nn.max_pool2d",
        "gradient second",
        r'"VALID"\).* here 0.0',
        "of an empty result: numbers that were in memory before",
        "zeros",
        "nothing was added",
        always=False,
    ),
    Known(
        "dynamic_stitch",
        "gradient",
        r"\[\[0, 0\]\]",
        "elements that were overwritten have a gradient",
        "0",
        "they do not matter to the result",
    ),
    Known(
        "quantization.quantize_and_dequantize_v2",
        "gradient",
        "",
        "0 beyond `input_min` and `input_max`, also if `range_given=False`",
        "0 beyond the range that was used",
        "the arguments are not used then",
    ),
    Known(
        "quantization.*_gradient py_function random.shuffle",
        "gradient second",
        "TensorFlow None",
        "no gradient, or no second one",
        "there is one",
        "composites of ops have it by themselves",
    ),
    Known(
        "nn.embedding_lookup",
        "gradient",
        r"\[f\(3, 2\), f\(2, 2\)\]",
        "of a table in parts: IndexedSlices",
        "a dense gradient",
        "the parts are joined first",
    ),
)

TYPES = (
    Known(
        "image.adjust_* image.rgb_to_grayscale image.stateless_random_* nn.compute_average_loss nn.ctc_beam_search_decoder",
        "value gradient second",
        r"\[float64\]",
        "float64 is computed in float32",
        "in float64",
        "who asks for digits gets them",
    ),
    Known(
        "nn.leaky_relu nn.gelu",
        "value gradient second",
        r"\[float64\]",
        "`alpha`, and the root of 2, are rounded to float32",
        "all digits",
        "who asks for digits gets them",
    ),
    Known(
        "linalg.expm",
        "value gradient",
        r"\[float32\]",
        "three to four digits of a float32",
        "six",
        "another Pade approximation",
    ),
    Known("math.erf", "value", "np.inf", "NaN at infinity in float64", "1 and -1", "the limit exists"),
    Known(
        "image.crop_and_resize",
        "value gradient",
        "nearest",
        "places of pixels in float32",
        "in the type of the image",
        "shows only where a place is half-way between two pixels",
    ),
    Known(
        "tensor_scatter_nd_max tensor_scatter_nd_min math.segment_max math.segment_min math.unsorted_segment_max "
        "math.unsorted_segment_min",
        "value",
        "nan",
        "whether NaN is passed over depends on where it stands",
        "NaN stays",
        "as in `maximum` and `reduce_max`",
    ),
    Known(
        "math.argmax math.argmin",
        "value",
        "nan",
        "NaN is passed over",
        "NaN is the largest, and the smallest",
        "as in NumPy",
    ),
    Known(
        "math.top_k",
        "value gradient",
        "sorted=False|nan",
        "`sorted=False` has an order of its own; NaN comes first",
        "always sorted; NaN comes last",
        "the order is left open",
    ),
    Known(
        "cast saturate_cast",
        "value",
        "nan",
        "NaN as an integer is the smallest one",
        "0",
        "it is left open",
    ),
    Known(
        "bitwise.left_shift",
        "value",
        "40",
        "a shift by more bits than there are is cut",
        "gives 0",
        "it is left open",
    ),
    Known(
        "random.stateless_parameterized_truncated_normal",
        "value gradient",
        "",
        "draws until a number fits",
        "takes quantiles: other numbers",
        "differentiable with respect to all parameters",
    ),
    Known(
        "experimental.numpy.*",
        "signature class dtype",
        "",
        "parameters that are seldom used (`order`, `out`, `mode`, ...); shapes and sizes are NumPy's objects",
        "not there; Python's numbers and tuples",
        "a part that few programs use",
    ),
    Known(
        "histogram_fixed_width_bins",
        "dtype",
        "int64",
        "`dtype` is ignored",
        "heeded",
        "it says what is wanted",
    ),
    Known(
        "random.Generator.from_seed",
        "class",
        "state",
        "`state` is a variable",
        "a tensor",
        "a generator keeps its own state",
    ),
)

ERRORS = (
    Known(
        "*",
        "error accepted refused",
        r"no string tensors|(==|\+) \"text\"",
        "text where numbers belong: depends on the function; `==` raises `TypeError`",
        "a `TypeError` that is an `InvalidArgumentError`, too; `==` is False",
        "text is no number anywhere",
    ),
    Known(
        "*",
        "error",
        r"TensorFlow (NotFoundError: Could not find device|UnimplementedError|InternalError)",
        "an element type without a kernel, an integer divided by 0: `NotFoundError`, `UnimplementedError`, `InternalError`",
        "`InvalidArgumentError`, `ValueError`",
        "what is wrong with operands has one class",
    ),
    Known(
        "*",
        "accepted error",
        r"TensorFlow (AttributeError|IndexError)",
        "lists where a tensor is expected, scalars without rows, what is not a function: `AttributeError`, `IndexError` "
        "from inside",
        "a result, or `TypeError`, `ValueError` that say why",
        "accidents of TensorFlow's code",
    ),
    Known(
        "Tensor.__getitem__", "error", r"\[True\]", "`x[True]`: `ValueError`", "`TypeError`", "it is no index"
    ),
    Known(
        "py_function",
        "error",
        "ZeroDivisionError",
        "what the function raises becomes `UnknownError` and the like",
        "it is raised as it is",
        "easier to find",
    ),
    Known(
        "vectorized_map while_loop nn.conv_transpose",
        "error",
        "",
        "rows of different number, a body of another structure, no `output_shape`: `InvalidArgumentError`, `ValueError`",
        "`ValueError`, `TypeError`",
        "found at another place",
    ),
    Known(
        "linalg.cholesky",
        "refused",
        "",
        "of a matrix that is not positive definite: NaN, above them what was in memory",
        "`InvalidArgumentError`",
        "a NaN would come from nowhere",
    ),
    Known(
        "constant", "accepted", r"\[True, 1\]", "`[True, 1]` is a `ValueError`", "integers", "as `[1, True]`"
    ),
    Known(
        "case",
        "refused",
        "exclusive",
        "`exclusive=True` does not look at the later conditions",
        "it does",
        "it says so",
    ),
    Known("case", "accepted", "True", "a Python bool is refused", "accepted", "it is known what is meant"),
    Known(
        "switch_case",
        "accepted",
        "",
        "numbers of branches with gaps are refused",
        "accepted",
        "it is known what is meant",
    ),
    Known(
        "histogram_fixed_width_bins",
        "refused",
        "",
        "an empty range counts",
        "`InvalidArgumentError`",
        "a mistake",
    ),
    Known(
        "stack",
        "refused",
        r"\(\[\]\)",
        "`stack([])` is empty",
        "`InvalidArgumentError`",
        "nothing says the type",
    ),
    Known(
        "identity_n math.confusion_matrix",
        "accepted",
        r"\[\]",
        "refuse empty lists",
        "empty results",
        "no special case",
    ),
    Known(
        "random.create_rng_state random.experimental.create_rng_state",
        "refused",
        "threefry",
        "'threefry' makes a state, which no CPU op takes",
        "`InvalidArgumentError`",
        "there is only Philox",
    ),
    Known(
        "math.divide_no_nan",
        "refused",
        "",
        "takes integers, and gives float64",
        "`InvalidArgumentError` with a hint",
        "it is an op of floats; use `tf.cast`",
    ),
    Known("parallel_stack", "accepted", "", "refused in eager mode", "`tf.stack`", "the same result"),
    Known(
        "reverse tile nn.conv3d signal.rfft nn.fractional_avg_pool",
        "accepted",
        "",
        "one number where a list is expected: refused",
        "stands for the list",
        "it is known what is meant",
    ),
    Known(
        "nn.leaky_relu",
        "accepted",
        "alpha=f",
        "`alpha` cannot be a tensor",
        "it can, and has a gradient",
        "learnt slopes",
    ),
    Known(
        "nn.convolution",
        "accepted",
        "",
        "strides do not go with dilations",
        "they do",
        "the kernels can do both",
    ),
    Known(
        "math.betainc nn.softmax_cross_entropy_with_logits",
        "accepted",
        "",
        "operands do not broadcast",
        "they do",
        "as other element-wise functions",
    ),
    Known(
        "linalg.band_part",
        "accepted",
        "",
        "a band wider than the matrix is refused",
        "is the matrix",
        "as NumPy's triu",
    ),
    Known("linalg.matrix_rank", "accepted", "", "integers are refused", "they have a rank", "they are cast"),
    Known(
        "quantization.quantize_and_dequantize quantization.quantize_and_dequantize_v2",
        "accepted",
        "axis=0",
        "a range per channel is refused",
        "accepted",
        "`axis` says that there is one",
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
    """The part of the page."""
    lines = []
    for title, entries in SECTIONS.items():
        lines += [f"**{title}**", "", "| | TensorFlow 2.21 | gradtape | why |", "|---|---|---|---|"]
        lines += [*map(_row, entries), ""]
    return "\n".join(lines)


def page() -> str:
    """docs/differences.md with the part written anew."""
    before, start, rest = PAGE.read_text(encoding="utf-8").partition(START)
    if not start:
        raise ValueError(f"{PAGE} has no line {START}")
    after = rest.partition(END)[2]
    return f"{before}{START}\n\n{section()}{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print("docs/differences.md written")
