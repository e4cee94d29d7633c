"""Variables of `tf.compat.v1`: the class with version 1's arguments, `get_variable`, and updates as functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import gradtape as tf
from gradtape._src.state import variable as _variable

_ARGUMENTS = (
    "initial_value", "trainable", "collections", "validate_shape", "caching_device", "name", "variable_def", "dtype",
    "expected_shape", "import_scope", "constraint", "use_resource", "synchronization", "aggregation", "shape",
)  # fmt: skip
# Arguments that only matter in graphs: collections, references instead of resources.
_WITHOUT_EFFECT = ("collections", "expected_shape", "use_resource")


class _VariableV1(type(tf.Variable)):  # type: ignore[misc]
    """Creates a plain variable from version 1's arguments."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        kwargs.update(zip(_ARGUMENTS, args, strict=False))
        for name in _WITHOUT_EFFECT:
            kwargs.pop(name, None)
        return tf.Variable(**kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, tf.Variable)


class Variable(tf.Variable, metaclass=_VariableV1):
    """`tf.Variable` with the arguments of version 1; `collections`, `expected_shape` and `use_resource` are ignored.

    >>> import gradtape as tf
    >>> tf.compat.v1.Variable(3.0, False, name="v").trainable
    False
    """


def assign(
    ref: Any, value: Any, validate_shape: Any = None, use_locking: Any = None, name: str | None = None
) -> Any:
    """`ref.assign(value)`."""
    return ref.assign(value)


def assign_add(ref: Any, value: Any, use_locking: Any = None, name: str | None = None) -> Any:
    """`ref.assign_add(value)`."""
    return ref.assign_add(value)


def assign_sub(ref: Any, value: Any, use_locking: Any = None, name: str | None = None) -> Any:
    """`ref.assign_sub(value)`."""
    return ref.assign_sub(value)


def count_up_to(ref: Any, limit: int, name: str | None = None) -> Any:
    """`ref.count_up_to(limit)`."""
    return ref.count_up_to(limit)


class _Updated(tf.Variable):
    """The result of a version 1 scatter in eager mode: the variable, with None as its `op`."""

    op = None

    def __init__(self, variable: Any) -> None:
        self._variable = variable

    def value(self) -> Any:
        """The value of the variable."""
        return self._variable.value()


def _of_it(name: str) -> property:
    return property(lambda self: getattr(self._variable, name), doc=f"`{name}` of the variable.")


for _name in (
    "shape dtype name trainable handle device numpy read_value assign assign_add assign_sub scatter_add scatter_sub "
    "scatter_update"
).split():
    setattr(_Updated, _name, _of_it(_name))


def _updated(variable: Any) -> Any:
    return _Updated(variable) if tf.executing_eagerly() else variable


def _of_rows(method: str) -> Callable:
    def scatter(
        ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
    ) -> Any:
        given = tf.IndexedSlices(tf.convert_to_tensor(updates, ref.dtype), indices)
        return _updated(getattr(ref, method)(given))

    scatter.__name__ = scatter.__qualname__ = method
    scatter.__doc__ = f"`ref.{method}` of the rows `indices`."
    return scatter


def _of_places(method: str) -> Callable:
    def scatter(
        ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
    ) -> Any:
        return _updated(getattr(ref, method)(indices, updates))

    scatter.__name__ = scatter.__qualname__ = method
    scatter.__doc__ = f"`ref.{method}` at the coordinates `indices`."
    return scatter


scatter_update = _of_rows("scatter_update")
scatter_add = _of_rows("scatter_add")
scatter_sub = _of_rows("scatter_sub")
scatter_mul = _of_rows("scatter_mul")
scatter_div = _of_rows("scatter_div")
scatter_min = _of_rows("scatter_min")
scatter_max = _of_rows("scatter_max")
batch_scatter_update = _of_rows("batch_scatter_update")
scatter_nd_update = _of_places("scatter_nd_update")
scatter_nd_add = _of_places("scatter_nd_add")
scatter_nd_sub = _of_places("scatter_nd_sub")


def get_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool | None = None,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Any = None,
    constraint: Callable | None = None,
    synchronization: Any = _variable.VariableSynchronization.AUTO,
    aggregation: Any = _variable.VariableAggregation.NONE,
) -> Any:
    """A new variable, as in TensorFlow's eager mode: names do not find existing ones.

    Args:
      initializer: a value, or a function of shape and type; Glorot uniform by default.
    """
    if initializer is None:
        initializer = tf.initializers.GlorotUniform()
    if callable(initializer) and shape is not None:
        sizes = list(tf.TensorShape(shape).as_list())
        initial = initializer(sizes, dtype=tf.as_dtype(dtype or "float32"))
    else:
        initial = initializer
    return tf.Variable(
        initial,
        trainable=trainable,
        name=name,
        dtype=dtype,
        constraint=constraint,
        synchronization=synchronization,
        aggregation=aggregation,
    )


class VariableScope:
    """A variable scope: a name, and graph settings, which are stored without effect."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.caching_device: Any = None
        self.reuse = True
        self.use_resource = True

    @property
    def original_name_scope(self) -> str:
        """The name scope of the variables created in it."""
        return f"{self.name}/" if self.name else ""

    def set_caching_device(self, caching_device: Any) -> None:
        """Stores the device; without effect."""
        self.caching_device = caching_device

    def reuse_variables(self) -> None:
        """Nothing to do: names do not find existing variables."""


def get_variable_scope() -> VariableScope:
    """The current scope."""
    return VariableScope(tf.get_current_name_scope())


@contextmanager
def variable_scope(name_or_scope: Any, *args: Any, **kwargs: Any) -> Iterator[VariableScope]:
    """A name scope: variables are not shared, as in TensorFlow's eager mode."""
    if isinstance(name_or_scope, VariableScope):
        name = name_or_scope.original_name_scope  # the full name, from the root
    else:
        name = name_or_scope or kwargs.get("default_name") or (args[0] if args else "scope")
    with tf.name_scope(name) as scope:
        yield VariableScope(scope.removesuffix("/"))
