"""What a checkpoint saves: the objects below a root, the names that lead to them, and their state.

Objects form a graph. An edge is an attribute's name, a key or a position; the path of an object is the shortest
one, `net/layers/0/kernel`, and every further edge to it is an *alias*. State is in the leaves: variables, random
generators, and objects that can `serialize`. Slots of an optimizer are named after their variable:
`optimizer/slots/net/w/momentum`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gradtape import _core
from gradtape._src.base import dtypes
from gradtape._src.base.reading import DEEPEST
from gradtape._src.ops.generator import Generator
from gradtape._src.state.module import Module
from gradtape._src.tensors import conversion

SLOTS = "slots"
VARIABLES = "_variables"  # of optimizers of other libraries
_SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"


def full_name(path: str) -> str:
    """TensorFlow's name of the value of the variable with this path."""
    return path + _SUFFIX


def short_name(name: str) -> str:
    """The path that a TensorFlow name corresponds to."""
    return name.removesuffix(_SUFFIX)


def join(path: str, name: str) -> str:
    """The path of a child; dots and slashes in its name are escaped as in TensorFlow."""
    name = name.replace(".", "..").replace("/", ".S")
    return f"{path}/{name}" if path else name


def within_depth(path: str) -> str:
    """`path`, which must not go through more than `DEEPEST` objects.

    Raises:
      ValueError: if it does: no program has such objects, and every part of the path needs memory.
    """
    if path.count("/") > DEEPEST:
        raise ValueError(f"the path {path[:40]}... leads through more than {DEEPEST} objects")
    return path


# ---- state ----------------------------------------------------------------------------------------


class PythonState:
    """State that is not a tensor, to be saved with a checkpoint: subclass it.

    >>> import json
    >>> import gradtape as tf
    >>> class Counter(tf.train.experimental.PythonState):
    ...     def __init__(self):
    ...         self.seen = {}
    ...     def serialize(self):
    ...         return json.dumps(self.seen)
    ...     def deserialize(self, string_value):
    ...         self.seen = json.loads(string_value)
    """

    def serialize(self) -> str | bytes:
        """The state as text or bytes."""
        raise NotImplementedError(f"{type(self).__name__} must have a method `serialize(self)`.")

    def deserialize(self, string_value: Any) -> None:
        """Sets the state to a result of `serialize`."""
        raise NotImplementedError(f"{type(self).__name__} must have a method `deserialize(self, value)`.")


class Leaf:
    """Reads and writes the state of one object."""

    def __init__(self, obj: Any, kind: str) -> None:
        self.obj = obj
        self.kind = kind

    @property
    def name(self) -> str:
        """The name of the object in errors."""
        return getattr(self.obj, "name", None) or type(self.obj).__name__

    def read(self) -> _core.Tensor:
        """The state as a tensor."""
        if self.kind == "variable":
            return self.obj._peek()
        if self.kind == "generator":
            return conversion.convert(np.asarray(self.obj.state, np.int64))
        if self.kind == "foreign":
            value = self.obj.numpy() if hasattr(self.obj, "numpy") else np.asarray(self.obj)
            return conversion.convert(value, dtypes.as_dtype(self.obj.dtype)._code)
        text = self.obj.serialize()
        return conversion.convert(np.frombuffer(text.encode() if isinstance(text, str) else text, np.uint8))

    def expects(self) -> tuple[Any, Any]:
        """The element type and shape that fit; None for any."""
        if self.kind in ("variable", "foreign"):
            return dtypes.as_dtype(self.obj.dtype), self.obj.shape
        return (dtypes.int64, (3,)) if self.kind == "generator" else (dtypes.uint8, None)

    def write(self, value: _core.Tensor) -> None:
        """Sets the state."""
        if self.kind == "generator":
            self.obj.reset(value)
        elif self.kind == "python":
            text = value.numpy().tobytes()
            # The state is text again if `serialize` returns text.
            self.obj.deserialize(text.decode() if isinstance(self.obj.serialize(), str) else text)
        elif getattr(self.obj, "_value", self) is None and hasattr(self.obj, "_initializer"):
            # A Keras variable that is created while a model is built gets its value at the end of the build.
            self.obj._initializer = lambda shape, dtype=None, **_: value.numpy()
        else:
            self.obj.assign(value)


def leaf_of(obj: Any) -> Leaf | None:
    """The state of an object, if it has its own."""
    if isinstance(obj, _core.Variable):
        return Leaf(obj, "variable")
    if isinstance(obj, Generator):
        return Leaf(obj, "generator")
    if isinstance(obj, PythonState) or getattr(type(obj), "_checkpoint_by_serializing", False):
        return Leaf(obj, "python")
    cls = type(obj)
    # Variables of other libraries, such as Keras: tested on the class, since properties may run code.
    if all(hasattr(cls, n) for n in ("assign", "dtype", "shape", "trainable")) and cls is not type:
        return Leaf(obj, "foreign")
    return None


# ---- edges ----------------------------------------------------------------------------------------


def is_optimizer_class(cls: type) -> bool:
    """Whether its objects are optimizers, of ours or another library."""
    return hasattr(cls, "apply_gradients") and hasattr(cls, "variables")


def is_optimizer(obj: Any) -> bool:
    """Whether it is an optimizer."""
    return is_optimizer_class(type(obj))


def has_slots(obj: Any) -> bool:
    """Whether it is an optimizer of ours, whose slots are named after variables."""
    return is_optimizer(obj) and hasattr(obj, "_slots") and hasattr(obj, "_scalars")


def is_trackable(obj: Any) -> bool:
    """Whether a checkpoint always looks into this object."""
    if isinstance(obj, (Module, list, dict, tuple)):
        return True
    cls = type(obj)
    if cls is type or isinstance(obj, (str, bytes, int, float, np.ndarray, _core.Tensor)):
        return False
    return (
        hasattr(cls, "_checkpoint_children")
        or is_optimizer(obj)
        or (hasattr(cls, "variables") and hasattr(cls, "trainable_variables"))
        or hasattr(cls, "get_config")  # metrics and other objects of Keras
        or leaf_of(obj) is not None
    )


def is_foreign(obj: Any) -> bool:
    """Whether it is a module of another library, which may refer to its lists in two places."""
    cls = type(obj)
    return not isinstance(obj, Module) and (
        hasattr(cls, "get_config") or hasattr(cls, "trainable_variables") or is_optimizer_class(cls)
    )


def children(obj: Any) -> dict[str, Any]:
    """The parts of an object that may hold state, by name.

    An object of a library may define this by a method `_checkpoint_children`.
    """
    out: dict[str, Any] = {}
    if leaf_of(obj) is not None:
        return out
    own = getattr(type(obj), "_checkpoint_children", None)
    if own is not None:
        return own(obj)
    if has_slots(obj):
        out = _optimizer_children(obj)
    elif is_optimizer(obj):
        # By position, as in Keras: attributes would lead to the variables of the model as well.
        out = {VARIABLES: tuple(obj.variables)}
    elif isinstance(obj, dict):
        out = {_key(k, obj): v for k, v in obj.items() if is_trackable(v)}
    elif isinstance(obj, (list, tuple)):
        out = {str(i): v for i, v in enumerate(obj)}
    else:
        ignored = getattr(type(obj), "_TF_MODULE_IGNORED_PROPERTIES", ())
        attributes = getattr(obj, "__dict__", {})
        # If an attribute has two names, it is saved under the public one.
        names = sorted(attributes, key=lambda n: n.startswith("_"))
        out = {n: attributes[n] for n in names if n not in ignored}
        if isinstance(out.get("_layers"), list):
            # Keras inserts an InputLayer, which has no state, at the front when a model is built.
            layers = [v for v in out.pop("_layers") if type(v).__name__ != "InputLayer"]
            out = {**out, "layers": tuple(layers)}
    return {name: part for name, part in out.items() if is_trackable(part)}


def _optimizer_children(optimizer: Any) -> dict[str, Any]:
    out = {"iterations": optimizer._iterations}
    if is_trackable(optimizer._learning_rate):
        out["learning_rate"] = optimizer._learning_rate
    out.update(optimizer._scalars)
    out["variables"] = optimizer._added
    return out


def _key(key: Any, where: dict) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, int) and str(key) not in where:
        return str(key)
    raise ValueError(
        f"Checkpoint: a dictionary has the key {key!r} for something that holds state; expected text or "
        f"integers; got {type(key).__name__}. Hint: use strings as keys."
    )


def slots_of(
    optimizer: Any, path: str, path_of: Callable[[Any], str | None]
) -> Iterator[tuple[str, str, Any]]:
    """The slots of an optimizer: (path, path by position, variable) each.

    Args:
      path: the path of the optimizer.
      path_of: returns the path of a variable, or None.
    """
    for i, v in enumerate(optimizer._trainable_variables):
        by_position = f"{path}/{SLOTS}/.{i}"
        own_path = path_of(v)
        by_name = by_position if own_path is None else f"{path}/{SLOTS}/{own_path}"
        for name, slot in optimizer._slots[id(v)].items():
            yield f"{by_name}/{name}", f"{by_position}/{name}", slot


# ---- the graph ------------------------------------------------------------------------------------


class ObjectGraph:
    """All objects below a root: `leaves` by path, and the `aliases` of paths."""

    def __init__(self, root: Any) -> None:
        self.leaves: dict[str, Leaf] = {}
        self.aliases: dict[str, str] = {}
        self.paths: dict[int, str] = {id(root): ""}
        self.objects: list[Any] = [root]  # keeps them alive, so that ids are not reused
        optimizers = []
        queue = deque(self.objects)
        while queue:
            obj = queue.popleft()
            path = self.paths[id(obj)]
            leaf = leaf_of(obj)
            if leaf is not None:
                self.leaves[path] = leaf
                continue
            if has_slots(obj):
                optimizers.append(obj)
            for name, part in children(obj).items():
                edge = within_depth(join(path, name))
                if id(part) in self.paths:
                    self.aliases[edge] = self.paths[id(part)]
                    continue
                self.paths[id(part)] = edge
                self.objects.append(part)
                queue.append(part)
        for optimizer in optimizers:
            for path, _, slot in slots_of(optimizer, self.paths[id(optimizer)], self.path_of):
                self.leaves[path] = Leaf(slot, "variable")
                self.paths[id(slot)] = path

    def path_of(self, obj: Any) -> str | None:
        """The path of an object, or None if it is not below the root."""
        return self.paths.get(id(obj))


def may_be_given(obj: Any) -> bool:
    """Whether a checkpoint accepts it by name: also objects of user classes that hold variables."""
    return is_trackable(obj) or (
        hasattr(obj, "__dict__") and not isinstance(obj, type) and bool(children(obj))
    )


def require_trackable(name: str, obj: Any) -> None:
    """Raises ValueError, in TensorFlow's words, for objects that cannot be saved."""
    if may_be_given(obj):
        return
    raise ValueError(
        f"`Checkpoint` was expecting {name} to be a trackable object (an object derived from `Trackable`), "
        f"got {obj}. Hint: variables, tf.Module, optimizers, and lists and dictionaries of them are."
    )
