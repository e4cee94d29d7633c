"""Initializers: objects that compute the first value of a variable from its shape.

Two families with TensorFlow's names. `tf.random_normal_initializer` and its four siblings are
the functions of the core API; `tf.initializers.*` (`GlorotUniform`, ...) are those Keras
layers use. They share their classes where they do the same. An initializer with a seed gives
the same values at each call, one without draws new ones; after `keras.utils.set_random_seed` those of
the second family start from the seeds that Keras draws (`seed_initializers_by`).

The values come from `gradtape._src.tensors.random`, looked up when called: it is above this module.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradtape._src.base import dtypes
from gradtape._src.base.shape import TensorShape

# The standard deviation of a normal distribution cut off at two standard deviations.
_TRUNCATED_STDDEV = 0.87962566103423978


def _tf() -> Any:
    import gradtape

    return gradtape


class Initializer:
    """The base: `initializer(shape, dtype)` returns a tensor.

    Subclasses define `_make(shape, dtype)` and keep their arguments in `_config`.
    """

    _default_dtype: dtypes.DType | None = dtypes.float32

    def __init__(self) -> None:
        self._config: dict[str, Any] = {}

    def __call__(self, shape: Any, dtype: Any = None, **kwargs: Any) -> Any:
        """A tensor of `shape` and `dtype` (float32 if None).

        Raises:
          TypeError: for a keyword other than TensorFlow's `partition_shape`,
            `partition_offset` and Keras' `layout`.
          ValueError: if the initializer cannot make values of `dtype`.
        """
        for name in kwargs:
            if name not in ("partition_shape", "partition_offset", "layout"):
                raise TypeError(
                    f"{type(self).__name__}: Keyword argument should be one of "
                    f"['partition_shape', 'partition_offset']; got {name!r}."
                )
        sizes = TensorShape(kwargs.get("partition_shape") or shape)
        sizes.assert_is_fully_defined()
        wanted = self._default_dtype if dtype is None else dtypes.as_dtype(dtype)
        return self._make(sizes.as_list(), wanted)

    def _make(self, shape: list, dtype: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: an Initializer must define __call__.")

    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return dict(self._config)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Initializer:
        """The initializer of `get_config()`."""
        return cls(**{key: value for key, value in config.items() if key != "dtype"})

    def __repr__(self) -> str:
        arguments = ", ".join(f"{key}={value!r}" for key, value in self.get_config().items())
        return f"{type(self).__name__}({arguments})"

    def _reject(self, dtype: dtypes.DType, expected: str) -> ValueError:
        return ValueError(
            f"{type(self).__name__}: Argument `dtype` is expected to be {expected}; got {dtype}."
        )


class Zeros(Initializer):
    """All zeros.

    >>> from gradtape._src.state.initializers import Zeros
    >>> Zeros()
    Zeros()
    """

    _op = "zeros"

    def _make(self, shape: list, dtype: dtypes.DType) -> Any:
        if not dtype.is_numeric and not dtype.is_bool:
            raise self._reject(dtype, "numeric or boolean")
        return getattr(_tf(), self._op)(shape, dtype)


class Ones(Zeros):
    """All ones."""

    _op = "ones"


class constant_initializer(Initializer):
    """The given value or values.

    Args:
      value: a scalar, or as many values as the shape asks for.
      support_partition: accepted for TensorFlow's sake.

    Raises:
      TypeError: if `value` is not a scalar, list, tuple or array.
    """

    _default_dtype: dtypes.DType | None = None  # TensorFlow takes the dtype from the value

    def __init__(self, value: Any = 0, support_partition: bool = False) -> None:
        super().__init__()
        is_number = isinstance(value, (bool, int, float, complex, list, tuple))
        if not is_number and not hasattr(value, "dtype"):
            raise TypeError(
                f"{type(self).__name__}: Invalid type for initial value; expected Python scalar, "
                f"list or tuple of values, or numpy.ndarray; got {type(value).__name__}."
            )
        self.value = value
        self._config = {"value": value}

    def _make(self, shape: list, dtype: dtypes.DType | None) -> Any:
        return _tf().constant(self.value, dtype=dtype, shape=shape)


class Constant(constant_initializer):
    """The same as `constant_initializer`, but float32 by default, as in Keras."""

    _default_dtype = dtypes.float32


# --- random ------------------------------------------------------------------------------------


_seed_of_others: list[Callable[[], int | None]] = []


def seed_initializers_by(draw: Callable[[], int | None]) -> None:
    """Makes `draw` choose the first seed of initializers that have none, as Keras does; None turns this off."""
    _seed_of_others[:] = [draw]


class _Random(Initializer):
    """An initializer that draws random values, with a `seed` or without."""

    seed: int | None
    _is_of_keras = True

    def __init__(self) -> None:
        super().__init__()
        self._default = _seed_of_others[0]() if _seed_of_others and self._is_of_keras else None

    def _draw(self, kind: str, shape: list, a: Any, b: Any, dtype: dtypes.DType) -> Any:
        random = _tf().random
        seed = self._default if self.seed is None else self.seed
        if seed is None:
            return getattr(random, kind)(shape, a, b, dtype)
        # TensorFlow and Keras turn an integer seed into [seed, 0], so this gives the same values.
        return getattr(random, f"stateless_{kind}")(shape, [seed, 0], a, b, dtype)

    def _need_floating(self, dtype: dtypes.DType) -> None:
        if not dtype.is_floating:
            raise self._reject(dtype, "floating point")


class RandomNormal(_Random):
    """Values from a normal distribution."""

    _kind = "normal"

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: int | None = None) -> None:
        super().__init__()
        self.mean, self.stddev, self.seed = mean, stddev, seed
        self._config = {"mean": mean, "stddev": stddev, "seed": seed}

    def _make(self, shape: list, dtype: dtypes.DType) -> Any:
        self._need_floating(dtype)
        return self._draw(self._kind, shape, self.mean, self.stddev, dtype)


class TruncatedNormal(RandomNormal):
    """Values from a normal distribution, none further than two `stddev` from `mean`."""

    _kind = "truncated_normal"


class RandomUniform(_Random):
    """Values from a uniform distribution over [minval, maxval); also integers."""

    def __init__(self, minval: float = -0.05, maxval: float = 0.05, seed: int | None = None) -> None:
        super().__init__()
        self.minval, self.maxval, self.seed = minval, maxval, seed
        self._config = {"minval": minval, "maxval": maxval, "seed": seed}

    def _make(self, shape: list, dtype: dtypes.DType) -> Any:
        if not dtype.is_floating and not dtype.is_integer:
            raise self._reject(dtype, "floating point or integer")
        return self._draw("uniform", shape, self.minval, self.maxval, dtype)


class VarianceScaling(_Random):
    """Random values whose variance suits the number of inputs or outputs of a layer.

    Args:
      scale: the variance is `scale / n`.
      mode: what `n` is: "fan_in", "fan_out" or "fan_avg".
      distribution: "truncated_normal" (also "normal"), "untruncated_normal" or "uniform".
      seed: for the same values at each call.
    """

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: int | None = None,
    ) -> None:
        super().__init__()
        if scale <= 0:
            raise ValueError(f"VarianceScaling: `scale` must be positive; expected > 0; got {scale}.")
        _check_choice("mode", mode, ("fan_in", "fan_out", "fan_avg"))
        distribution = "truncated_normal" if distribution == "normal" else distribution
        choices = ("truncated_normal", "untruncated_normal", "uniform")
        _check_choice("distribution", distribution, choices)
        self.scale, self.mode, self.distribution, self.seed = scale, mode, distribution, seed
        self._config = {"scale": scale, "mode": mode, "distribution": distribution, "seed": seed}

    def _make(self, shape: list, dtype: dtypes.DType) -> Any:
        self._need_floating(dtype)
        fan_in, fan_out = _fans(shape)
        fans = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}
        variance = self.scale / max(1.0, fans[self.mode])
        if self.distribution == "uniform":
            limit = math.sqrt(3.0 * variance)
            return self._draw("uniform", shape, -limit, limit, dtype)
        stddev = math.sqrt(variance)
        if self.distribution == "untruncated_normal":
            return self._draw("normal", shape, 0.0, stddev, dtype)
        return self._draw("truncated_normal", shape, 0.0, stddev / _TRUNCATED_STDDEV, dtype)


def _check_choice(argument: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(
            f"VarianceScaling: Invalid `{argument}` argument; expected one of {choices}; got {value!r}."
        )


def _fans(shape: list[int]) -> tuple[float, float]:
    """The inputs and outputs of one unit of a layer with weights of `shape`."""
    if len(shape) < 2:
        size = shape[0] if shape else 1
        return size, size
    window = math.prod(shape[:-2])  # 1 for a matrix, the kernel size for a convolution
    return shape[-2] * window, shape[-1] * window


class _Scaled(VarianceScaling):
    """A named `VarianceScaling`, for which only the seed can be chosen."""

    _fixed: tuple[float, str, str]

    def __init__(self, seed: int | None = None) -> None:
        scale, mode, distribution = self._fixed
        super().__init__(scale, mode, distribution, seed)
        self._config = {"seed": seed}


class GlorotUniform(_Scaled):
    """Glorot and Bengio (2010): uniform, variance `2 / (inputs + outputs)`."""

    _fixed = (1.0, "fan_avg", "uniform")


class GlorotNormal(_Scaled):
    """Glorot and Bengio (2010): normal, variance `2 / (inputs + outputs)`."""

    _fixed = (1.0, "fan_avg", "truncated_normal")


class HeUniform(_Scaled):
    """He et al. (2015): uniform, variance `2 / inputs`; suits relu."""

    _fixed = (2.0, "fan_in", "uniform")


class HeNormal(_Scaled):
    """He et al. (2015): normal, variance `2 / inputs`; suits relu."""

    _fixed = (2.0, "fan_in", "truncated_normal")


class LecunUniform(_Scaled):
    """LeCun et al. (1998): uniform, variance `1 / inputs`; suits selu."""

    _fixed = (1.0, "fan_in", "uniform")


class LecunNormal(_Scaled):
    """LeCun et al. (1998): normal, variance `1 / inputs`; suits selu."""

    _fixed = (1.0, "fan_in", "truncated_normal")


# --- matrices ----------------------------------------------------------------------------------


class Identity(Initializer):
    """A matrix with `gain` on its diagonal."""

    def __init__(self, gain: float = 1.0) -> None:
        super().__init__()
        self.gain = gain
        self._config = {"gain": gain}

    def _make(self, shape: list, dtype: dtypes.DType) -> Any:
        if len(shape) != 2:
            raise ValueError(f"Identity: expected the shape of a matrix; got {tuple(shape)}.")
        return _tf().eye(*shape, dtype=dtype) * self.gain


class Orthogonal(_Random):
    """A matrix with orthonormal rows or columns (Saxe et al. 2013), times `gain`.

    A shape with more than two axes is a matrix of `[prod(shape[:-1]), shape[-1]]`.
    """

    def __init__(self, gain: float = 1.0, seed: int | None = None) -> None:
        super().__init__()
        self.gain, self.seed = gain, seed
        self._config = {"gain": gain, "seed": seed}

    def _make(self, shape: list, dtype: dtypes.DType) -> Any:
        self._need_floating(dtype)
        if len(shape) < 2:
            raise ValueError(f"Orthogonal: expected at least two axes; got {tuple(shape)}.")
        rows, columns = math.prod(shape[:-1]), shape[-1]
        tall = [max(rows, columns), min(rows, columns)]
        q, r = _tf().linalg.qr(self._draw("normal", tall, 0.0, 1.0, dtype))
        # The sign that makes the diagonal of r positive: without it q is not uniform.
        q = q * _tf().sign(_tf().linalg.diag_part(r))
        if rows < columns:
            q = _tf().transpose(q)
        return self.gain * _tf().reshape(q, shape)


class random_normal_initializer(RandomNormal):
    """The same as `RandomNormal`, but independent of Keras' seed."""

    _is_of_keras = False


class random_uniform_initializer(RandomUniform):
    """The same as `RandomUniform`, but independent of Keras' seed."""

    _is_of_keras = False


# --- names -------------------------------------------------------------------------------------

zeros_initializer = zeros = Zeros
ones_initializer = ones = Ones
random_normal = RandomNormal
random_uniform = RandomUniform
truncated_normal = TruncatedNormal
constant = Constant
variance_scaling = VarianceScaling
glorot_uniform = GlorotUniform
glorot_normal = GlorotNormal
he_uniform = HeUniform
he_normal = HeNormal
lecun_uniform = LecunUniform
lecun_normal = LecunNormal
identity = IdentityInitializer = Identity
orthogonal = OrthogonalInitializer = Orthogonal


def get(identifier: Any) -> Any:
    """An initializer from its name, class, config or itself; None stays None.

    Raises:
      ValueError: if there is no initializer of that name.

    >>> from gradtape._src.state import initializers
    >>> initializers.get("he_normal")
    HeNormal(seed=None)
    """
    if identifier is None:
        return None
    if isinstance(identifier, dict) and "class_name" in identifier:
        return get(identifier["class_name"]).from_config(identifier.get("config", {}))
    if isinstance(identifier, str):
        cls = globals().get(identifier)
        if isinstance(cls, type) and issubclass(cls, Initializer):
            identifier = cls
    if isinstance(identifier, type) and issubclass(identifier, Initializer):
        return identifier()
    if callable(identifier):
        return identifier
    raise ValueError(
        f"initializers.get: Could not interpret initializer identifier: {identifier}; expected a "
        "name such as 'glorot_uniform', a class or a callable; got "
        f"{type(identifier).__name__}."
    )
