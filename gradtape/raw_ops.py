"""`tf.raw_ops`: ops under the names of TensorFlow's kernels, with keyword arguments only.

A row of the table maps an op to a public function (or to one defined below, where the op returns more than the public
function does), and its arguments to that function's parameters: `axis`, or `keep_dims>keepdims` where the names differ;
`Truncate>` is accepted and ignored. Ops that are not in the table do not exist here.
"""

from __future__ import annotations

import functools as _functools
import importlib as _importlib
from collections.abc import Callable as _Callable
from typing import Any as _Any
from typing import NamedTuple as _NamedTuple

import gradtape as _tf

_REDUCED = "input>input_tensor axis keep_dims>keepdims"
_SEGMENTS = "data segment_ids"
_NORM = "x scale offset mean variance epsilon exponential_avg_factor data_format is_training"
_PROJECTION = "images transforms output_shape interpolation fill_mode"
_WINDOW = "ksize strides padding data_format"

_TABLE: dict[str, str] = {
    # arithmetic
    "Add": "add x y", "AddV2": "add x y", "Sub": "subtract x y", "Mul": "multiply x y", "Div": "math.divide x y",
    "RealDiv": "math.divide x y", "DivNoNan": "math.divide_no_nan x y", "MulNoNan": "math.multiply_no_nan x y",
    "FloorDiv": "math.floordiv x y", "FloorMod": "math.floormod x y", "Pow": "pow x y", "Maximum": "maximum x y",
    "Minimum": "minimum x y", "SquaredDifference": "math.squared_difference x y", "Xdivy": "math.xdivy x y",
    "Xlogy": "math.xlogy x y", "Xlog1py": "math.xlog1py x y", "Atan2": "math.atan2 y x", "AddN": "add_n inputs",
    "Neg": "negative x", "Abs": "abs x", "ComplexAbs": "abs x", "Sign": "sign x", "Square": "square x",
    "Sqrt": "sqrt x", "Rsqrt": "math.rsqrt x", "Reciprocal": "math.reciprocal x", "Inv": "math.reciprocal x",
    "Exp": "exp x", "Expm1": "math.expm1 x", "Log": "math.log x", "Log1p": "math.log1p x", "Sin": "sin x",
    "Cos": "cos x", "Tan": "tan x", "Asin": "asin x", "Acos": "acos x", "Atan": "atan x", "Sinh": "sinh x",
    "Cosh": "cosh x", "Tanh": "tanh x", "Asinh": "asinh x", "Acosh": "acosh x", "Atanh": "atanh x",
    "Floor": "floor x", "Ceil": "math.ceil x", "Round": "round x", "Rint": "math.rint x", "Erf": "math.erf x",
    "Erfc": "math.erfc x", "Erfinv": "math.erfinv x", "Ndtri": "math.ndtri x", "Lgamma": "math.lgamma x",
    "Digamma": "math.digamma x", "Igamma": "math.igamma a x", "Igammac": "math.igammac a x",
    "Betainc": "math.betainc a b x", "Zeta": "math.zeta x q", "IgammaGradA": "_src.ops.special.igamma_grad_a a x",
    "RandomGammaGrad": "_src.ops.special.gamma_sample_grad alpha sample", "Polygamma": "math.polygamma a x",
    "Real": "math.real input", "Imag": "math.imag input", "Conj": "math.conj input>x", "Angle": "math.angle input",
    "Complex": "complex real imag", "NextAfter": "math.nextafter x1 x2", "Cross": "linalg.cross a b",
    "Cumsum": "cumsum x axis exclusive reverse", "Cumprod": "math.cumprod x axis exclusive reverse",
    "IsNan": "math.is_nan x", "IsInf": "math.is_inf x", "IsFinite": "math.is_finite x",
    # comparison
    "Equal": "equal x y", "NotEqual": "not_equal x y", "Less": "less x y", "LessEqual": "less_equal x y",
    "Greater": "greater x y", "GreaterEqual": "greater_equal x y", "LogicalAnd": "logical_and x y",
    "LogicalOr": "logical_or x y", "LogicalNot": "logical_not x", "BitwiseAnd": "bitwise.bitwise_and x y",
    "BitwiseOr": "bitwise.bitwise_or x y", "BitwiseXor": "bitwise.bitwise_xor x y", "Invert": "bitwise.invert x",
    "LeftShift": "bitwise.left_shift x y", "RightShift": "bitwise.right_shift x y",
    # reductions
    "Sum": f"reduce_sum {_REDUCED}", "Mean": f"reduce_mean {_REDUCED}", "Prod": f"reduce_prod {_REDUCED}",
    "Max": f"reduce_max {_REDUCED}", "Min": f"reduce_min {_REDUCED}", "All": f"reduce_all {_REDUCED}",
    "Any": f"reduce_any {_REDUCED}", "EuclideanNorm": f"math.reduce_euclidean_norm {_REDUCED}",
    "ArgMax": "argmax input dimension>axis output_type", "ArgMin": "argmin input dimension>axis output_type",
    "TopKV2": "math.top_k input k sorted index_type", "L2Loss": "nn.l2_loss t",
    "SegmentSum": f"math.segment_sum {_SEGMENTS}", "SegmentMean": f"math.segment_mean {_SEGMENTS}",
    "SegmentMax": f"math.segment_max {_SEGMENTS}", "SegmentMin": f"math.segment_min {_SEGMENTS}",
    "SegmentProd": f"math.segment_prod {_SEGMENTS}",
    "UnsortedSegmentSum": f"math.unsorted_segment_sum {_SEGMENTS} num_segments",
    "UnsortedSegmentMax": f"math.unsorted_segment_max {_SEGMENTS} num_segments",
    "UnsortedSegmentMin": f"math.unsorted_segment_min {_SEGMENTS} num_segments",
    "UnsortedSegmentProd": f"math.unsorted_segment_prod {_SEGMENTS} num_segments",
    # shapes and parts
    "Reshape": "reshape tensor shape", "Transpose": "transpose x>a perm", "ExpandDims": "expand_dims input axis",
    "Squeeze": "squeeze input axis", "ConcatV2": "concat values axis", "Concat": "concat values concat_dim>axis",
    "Pack": "stack values axis", "Unpack": "unstack value num axis",
    "Split": "split value num_split>num_or_size_splits axis",
    "SplitV": "split value size_splits>num_or_size_splits axis num_split>", "Slice": "slice input>input_ begin size",
    "Tile": "tile input multiples", "Pad": "pad input>tensor paddings",
    "PadV2": "pad input>tensor paddings constant_values", "MirrorPad": "pad input>tensor paddings mode",
    "BroadcastTo": "broadcast_to input shape", "ReverseV2": "reverse tensor axis", "Roll": "roll input shift axis",
    "Gather": "gather params indices validate_indices>", "GatherV2": "gather params indices axis batch_dims",
    "GatherNd": "gather_nd params indices", "ScatterNd": "scatter_nd indices updates shape",
    "TensorScatterUpdate": "tensor_scatter_nd_update tensor indices updates",
    "TensorScatterAdd": "tensor_scatter_nd_add tensor indices updates",
    "TensorScatterSub": "tensor_scatter_nd_sub tensor indices updates",
    "TensorScatterMax": "tensor_scatter_nd_max tensor indices updates",
    "TensorScatterMin": "tensor_scatter_nd_min tensor indices updates", "Where": "where condition",
    "SelectV2": "where condition t>x e>y", "Fill": "fill dims value", "ZerosLike": "zeros_like x>input",
    "OnesLike": "ones_like x>input", "Range": "range start limit delta", "LinSpace": "linspace start stop num",
    "OneHot": "one_hot indices depth on_value off_value axis", "Cast": "cast x DstT>dtype Truncate>",
    "Bitcast": "bitcast input type", "Shape": "shape input out_type", "Size": "size input out_type",
    "Rank": "rank input", "Identity": "identity input", "StopGradient": "stop_gradient input",
    "PreventGradient": "raw_ops._prevented input message", "CheckNumerics": "debugging.check_numerics tensor message",
    "EnsureShape": "ensure_shape input>x shape", "InvertPermutation": "math.invert_permutation x",
    "Unique": "unique x out_idx", "UniqueWithCounts": "unique_with_counts x out_idx",
    "BroadcastGradientArgs": "raw_ops._axes_of_sums s0 s1",
    "ReverseSequence": "reverse_sequence input seq_lengths seq_dim>seq_axis batch_dim>batch_axis",
    "ClipByValue": "clip_by_value t clip_value_min clip_value_max",
    "DepthToSpace": "nn.depth_to_space input block_size data_format",
    "SpaceToDepth": "nn.space_to_depth input block_size data_format",

    # linear algebra
    "MatMul": "linalg.matmul a b transpose_a transpose_b",
    "BatchMatMul": "linalg.matmul x>a y>b adj_x>adjoint_a adj_y>adjoint_b",
    "BatchMatMulV2": "linalg.matmul x>a y>b adj_x>adjoint_a adj_y>adjoint_b", "Cholesky": "linalg.cholesky input",
    "MatrixInverse": "linalg.inv input adjoint", "MatrixDeterminant": "linalg.det input",
    "LogMatrixDeterminant": "linalg.slogdet input", "MatrixSolve": "linalg.solve matrix rhs adjoint",
    "MatrixTriangularSolve": "linalg.triangular_solve matrix rhs lower adjoint",
    "Qr": "linalg.qr input full_matrices", "Svd": "linalg.svd input>tensor full_matrices compute_uv",
    "SelfAdjointEigV2": "linalg.eigh input>tensor compute_v>",
    "MatrixBandPart": "linalg.band_part input num_lower num_upper", "MatrixDiag": "linalg.diag diagonal",
    "MatrixDiagPart": "linalg.diag_part input", "MatrixDiagPartV2": "linalg.diag_part input k padding_value",
    "MatrixSetDiag": "linalg.set_diag input diagonal",
    "Diag": "linalg.tensor_diag diagonal", "DiagPart": "linalg.tensor_diag_part input", "FFT": "signal.fft input",
    "IFFT": "signal.ifft input", "RFFT": "signal.rfft input>input_tensor fft_length Tcomplex>",
    "IRFFT": "signal.irfft input>input_tensor fft_length Treal>",
    # networks
    "Relu": "nn.relu features", "Relu6": "nn.relu6 features", "Elu": "nn.elu features", "Selu": "nn.selu features",
    "LeakyRelu": "nn.leaky_relu features alpha", "Softplus": "nn.softplus features",
    "Softsign": "nn.softsign features", "Sigmoid": "nn.sigmoid x", "Softmax": "nn.softmax logits",
    "LogSoftmax": "nn.log_softmax logits", "BiasAdd": "nn.bias_add value bias data_format",
    "Conv2D": "nn.conv2d input filter>filters strides padding data_format dilations use_cudnn_on_gpu>",
    "Conv3D": "nn.conv3d input filter>filters strides padding data_format dilations",
    "DepthwiseConv2dNative": "nn.depthwise_conv2d input filter strides padding data_format",
    "FusedBatchNorm": f"raw_ops._fused_batch_norm {_NORM}", "FusedBatchNormV2": f"raw_ops._fused_batch_norm {_NORM}",
    "FusedBatchNormV3": f"raw_ops._fused_batch_norm_v3 {_NORM}",
    "CudnnRNN": (
        "raw_ops._cudnn_rnn input input_h input_c params rnn_mode input_mode direction dropout seed seed2 is_training"
    ),
    "CudnnRNNV3": (
        "raw_ops._cudnn_rnn_v3 input input_h input_c params sequence_lengths rnn_mode input_mode direction dropout seed "
        "seed2 num_proj is_training time_major"
    ),
    "MaxPool": f"nn.max_pool2d input {_WINDOW}", "AvgPool": f"nn.avg_pool2d value>input {_WINDOW}",
    "MaxPool3D": f"nn.max_pool3d input {_WINDOW}", "AvgPool3D": f"nn.avg_pool3d input {_WINDOW}",
    "LRN": "nn.local_response_normalization input depth_radius bias alpha beta",
    "InTopKV2": "math.in_top_k targets predictions k",
    # images
    "ImageProjectiveTransformV2": f"image.projection.projective_transform {_PROJECTION}",
    "ImageProjectiveTransformV3": f"image.projection.projective_transform {_PROJECTION} fill_value",
}  # fmt: skip
__all__ = sorted(_TABLE)  # built on first access

# Optimizer updates: the op, its rule, the arguments up to `grad`, and those after it; sparse ones also take `indices`.
_STEPS = (
    "GradientDescent gradient_descent var,alpha,delta ",
    "Momentum momentum var,accum,lr,grad momentum,use_nesterov",
    "KerasMomentum keras_momentum var,accum,lr,grad momentum,use_nesterov",
    "Adam adam var,m,v,beta1_power,beta2_power,lr,beta1,beta2,epsilon,grad use_nesterov",
    "AdamWithAmsgrad amsgrad var,m,v,vhat,beta1_power,beta2_power,lr,beta1,beta2,epsilon,grad ",
    "AdaMax adamax var,m,v,beta1_power,lr,beta1,beta2,epsilon,grad ",
    "RMSProp rmsprop var,ms,mom,lr,rho,momentum,epsilon,grad ",
    "CenteredRMSProp centered_rmsprop var,mg,ms,mom,lr,rho,momentum,epsilon,grad ",
    "Adadelta adadelta var,accum,accum_update,lr,rho,epsilon,grad ",
    "Adagrad adagrad var,accum,lr,grad update_slots",
    "AdagradV2 adagrad var,accum,lr,epsilon,grad update_slots",
    "Ftrl ftrl var,accum,linear,grad lr,l1,l2,lr_power",
    "FtrlV2 ftrl var,accum,linear,grad lr,l1,l2,l2_shrinkage,lr_power",
)
for _name, _rule, *_arguments in (row.split() for row in _STEPS):
    _words = f"_src.state.resource_apply.{_rule} {' '.join(_arguments).replace(',', ' ')} use_locking>"
    _TABLE[f"ResourceApply{_name}"] = _words
    if _name not in ("GradientDescent", "Adam", "AdamWithAmsgrad", "AdaMax"):
        _TABLE[f"ResourceSparseApply{_name}"] = f"{_words} indices multiply_linear_by_lr>"
for _name in ("Add", "Sub", "Update", "Max", "Min", "Mul", "Div"):
    _TABLE[f"ResourceScatter{_name}"] = (
        f"_src.state.resource_apply.scatter_{_name.lower()} resource indices updates"
    )


def _axes_of_sums(s0: _Any, s1: _Any) -> tuple[_Any, _Any]:
    """The axes over which the gradients of two broadcast operands are summed."""
    s0, s1 = _tf.convert_to_tensor(s0), _tf.convert_to_tensor(s1)
    n = max(s0.shape[0], s1.shape[0])
    other = ~_tf.reduce_all(s0 == s1) if s0.shape == s1.shape else True

    def axes(sizes: _Any) -> _Any:
        ones = _tf.pad(sizes, [[n - sizes.shape[0], 0]], constant_values=1) == 1
        return _tf.cast(_tf.where(_tf.logical_and(ones, other))[:, 0], s0.dtype)

    return axes(s0), axes(s1)


def _prevented(input: _Any, message: str = "") -> _Any:
    """The identity; differentiating it is an error."""

    @_tf.custom_gradient
    def same(x: _Any) -> tuple[_Any, _Callable]:
        def grad(upstream: _Any) -> _Any:
            raise LookupError(f"Gradient explicitly disabled. Reason: {message!r}")

        return _tf.identity(x), grad

    return same(_tf.convert_to_tensor(input))


class _Normalized(_NamedTuple):
    """The op's outputs: the reserve spaces are residuals for its gradient, here the mean and variance it used."""

    y: _Any
    batch_mean: _Any
    batch_variance: _Any
    reserve_space_1: _Any
    reserve_space_2: _Any


class _NormalizedV3(_NamedTuple):
    """As `FusedBatchNorm`, with an empty third reserve space, which only cuDNN's kernel uses."""

    y: _Any
    batch_mean: _Any
    batch_variance: _Any
    reserve_space_1: _Any
    reserve_space_2: _Any
    reserve_space_3: _Any


def _fused_batch_norm(
    x: _Any, scale: _Any, offset: _Any, mean: _Any, variance: _Any, epsilon: float = 0.0001,
    exponential_avg_factor: float = 1.0, data_format: str = "NHWC", is_training: bool = True,
) -> _Normalized:  # fmt: skip
    mean, variance = map(_tf.convert_to_tensor, (mean, variance))
    out: tuple = _tf.compat.v1.nn.fused_batch_norm(
        x, scale, offset, mean, variance, epsilon, data_format, is_training, None, exponential_avg_factor
    )
    if not is_training:
        return _Normalized(out[0], out[1], out[2], mean, variance)
    x = _tf.cast(x, _tf.float32)
    axes = [i for i, letter in enumerate(data_format) if letter != "C"]
    m, v = _tf.nn.moments(x, axes)
    return _Normalized(out[0], out[1], out[2], _tf.stop_gradient(m), _tf.stop_gradient(v))


@_functools.wraps(_fused_batch_norm)
def _fused_batch_norm_v3(**kwargs: _Any) -> _NormalizedV3:
    return _NormalizedV3(*_fused_batch_norm(**kwargs), _tf.zeros([0]))


class _CudnnRNN(_NamedTuple):
    output: _Any
    output_h: _Any
    output_c: _Any
    reserve_space: _Any


class _CudnnRNNV3(_NamedTuple):
    output: _Any
    output_h: _Any
    output_c: _Any
    reserve_space: _Any
    host_reserved: _Any


def _cudnn_rnn(
    input: _Any, input_h: _Any, input_c: _Any, params: _Any, rnn_mode: str = "lstm", input_mode: str = "linear_input",
    direction: str = "unidirectional", dropout: float = 0, seed: int = 0, seed2: int = 0, is_training: bool = True,
) -> _CudnnRNN:  # fmt: skip
    """A cuDNN network. Programs trace it as the GPU branch beside a CPU one, so it has shapes but cannot be run."""

    def run(*args: _Any) -> _Any:
        raise _tf.errors.NotFoundError(
            None, None, "CudnnRNN: no kernel for it; gradtape has none of cuDNN's."
        )

    x, h, c = map(_tf.convert_to_tensor, (input, input_h, input_c))
    if _tf.executing_eagerly():
        run()
    out = _tf.numpy_function(run, [x, h, c, params], [x.dtype] * 4, stateful=False)
    width = None if h.shape[-1] is None else h.shape[-1] * (1 if direction == "unidirectional" else 2)
    for tensor, shape in zip(out, ([*x.shape[:2], width], h.shape, c.shape, [None]), strict=True):
        tensor.set_shape(shape)
    return _CudnnRNN(*out)


def _cudnn_rnn_v3(
    input: _Any, input_h: _Any, input_c: _Any, params: _Any, sequence_lengths: _Any, rnn_mode: str = "lstm",
    input_mode: str = "linear_input", direction: str = "unidirectional", dropout: float = 0, seed: int = 0,
    seed2: int = 0, num_proj: int = 0, is_training: bool = True, time_major: bool = True,
) -> _CudnnRNNV3:  # fmt: skip
    """The same for sequences of different lengths."""
    out = _cudnn_rnn(input, input_h, input_c, params, rnn_mode, input_mode, direction)
    return _CudnnRNNV3(*out, _tf.zeros([0], _tf.int8))


def _make(name: str, row: str) -> _Callable:
    where, *arguments = row.split()
    value: _Any = _tf
    for part in where.split("."):
        if not hasattr(value, part):  # a module that is imported on first use
            _importlib.import_module(f"{value.__name__}.{part}")
        value = getattr(value, part)
    renamed = {raw: target if arrow else raw for raw, arrow, target in (a.partition(">") for a in arguments)}

    def op(*args: _Any, **kwargs: _Any) -> _Any:
        if args:
            raise TypeError(
                f"{name} only takes keyword args (possible keys: {[*renamed, 'name']}). Please pass these args as kwargs "
                "instead."
            )
        kwargs.pop("name", None)
        unknown = [k for k in kwargs if k not in renamed]
        if unknown:
            raise TypeError(
                f"{name} got an unexpected keyword argument {unknown[0]!r}; expected {', '.join(renamed)}."
            )
        return value(**{renamed[k]: v for k, v in kwargs.items() if renamed[k]})

    op.__name__ = op.__qualname__ = name
    op.__doc__ = f"`tf.{where}`, with the arguments {', '.join(renamed)}, all by name."
    return op


@_functools.cache
def _op(name: str) -> _Callable:
    return _make(name, _TABLE[name])


def __getattr__(name: str) -> _Any:
    if name in _TABLE:
        return _op(name)
    raise AttributeError(
        f"module 'gradtape.raw_ops' has no attribute {name!r}: gradtape has raw ops where a public function does the same. "
        "Hint: the functions of tf, tf.math, tf.nn and tf.image."
    )


def __dir__() -> list[str]:
    return __all__
