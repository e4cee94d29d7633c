"""`Module`: an object that finds its variables, and those of the modules inside it.

They are found by reflection when asked for, over the attributes sorted by name: nothing is registered or
declared. Variables and modules of other libraries, such as Keras layers, are recognised by the attributes of
their class, so this module needs neither the native core nor Keras.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from copy import copy
from typing import Any

from gradtape._src.base import nest, scopes
from gradtape._src.base.trackable import AutoTrackable

# Compiled when first used, not by the import.
_CAMEL_TO_SNAKE = r"((?<=[a-z0-9])[A-Z]|(?!^)[A-Z](?=[a-z]))"
_IDENTIFIER = r"[a-zA-Z_][a-zA-Z0-9_]*\Z"


class Module(AutoTrackable):
    """A named container of variables, other modules and the functions that use them.

    Variables and modules may be attributes themselves or in lists, tuples and dicts. A
    Keras layer or model in an attribute contributes its variables, as it did before Keras 3.

    Args:
      name: a Python identifier; by default the class name in snake case.

    Raises:
      ValueError: if `name` is not an identifier.

    >>> from gradtape._src.state.module import Module
    >>> class Block(Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.parts = [Module(name="first"), Module(name="second")]
    >>> block = Block()
    >>> block.name, [m.name for m in block.submodules]
    ('block', ['first', 'second'])
    """

    # Names of attributes that `_flatten` passes over; subclasses may add to it.
    _TF_MODULE_IGNORED_PROPERTIES: frozenset[str] = frozenset()

    def __init__(self, name: str | None = None) -> None:
        if name is None:
            name = _default_name(type(self))
        elif not isinstance(name, str) or not re.match(_IDENTIFIER, name):
            raise ValueError(
                f"Module: {name!r} is not a valid module name; expected a Python identifier "
                f"such as 'my_block'; got {name!r}."
            )
        self._name = name
        # Opened now: a module made inside another module's scope keeps that prefix.
        with scopes.name_scope(name) as scope:
            self._name_scope = scopes.name_scope(scope)

    # The two below also work in a subclass that forgot `super().__init__()`.

    @property
    def name(self) -> str:
        """The name given, or the class name in snake case."""
        return getattr(self, "_name", None) or _default_name(type(self))

    @property
    def name_scope(self) -> scopes.name_scope:
        """A `tf.name_scope` for the names of this module's variables."""
        scope = getattr(self, "_name_scope", None)
        return scopes.name_scope(f"{self.name}/") if scope is None else scope

    @property
    def variables(self) -> tuple[Any, ...]:
        """All variables: own ones by attribute name, then those of each submodule."""
        return tuple(self._flatten(predicate=_is_variable, expand_composites=True))

    @property
    def trainable_variables(self) -> tuple[Any, ...]:
        """The `variables` that are trainable."""
        return tuple(self._flatten(predicate=_is_trainable, expand_composites=True))

    @property
    def non_trainable_variables(self) -> tuple[Any, ...]:
        """The `variables` that are not trainable."""
        return tuple(self._flatten(predicate=_is_not_trainable, expand_composites=True))

    @property
    def submodules(self) -> tuple[Any, ...]:
        """All modules inside this one, at any depth."""
        return tuple(self._flatten(predicate=_is_any_module))

    def _flatten(
        self,
        recursive: bool = True,
        predicate: Callable[[Any], bool] | None = None,
        attribute_traversal_key: Callable[[str], Any] | None = None,
        with_path: bool = False,
        expand_composites: bool = False,
    ) -> Iterator[Any]:
        """The leaves of all attributes that fulfil `predicate`.

        Args:
          recursive: go into submodules.
          predicate: which leaves to give; all if None.
          attribute_traversal_key: sort key of attribute names.
          with_path: give pairs (path, leaf), and a leaf once for each path to it; else each
            leaf once.
          expand_composites: take tensors made of tensors apart.
        """
        walk = _Walk(
            predicate or (lambda leaf: True),
            attribute_traversal_key,
            with_path,
            expand_composites,
        )
        walk.seen.add(id(self))
        return walk.module(self, (), recursive)

    @classmethod
    def with_name_scope(cls, method: Callable) -> Callable:
        """Decorates a method so that it runs in the module's `name_scope`.

        >>> from gradtape._src.state.module import Module
        >>> from gradtape._src.base.scopes import current_scope
        >>> class Block(Module):
        ...     @Module.with_name_scope
        ...     def __call__(self):
        ...         return current_scope()
        >>> Block()()
        'block/'
        """

        @functools.wraps(method)
        def method_with_name_scope(self: Module, *args: Any, **kwargs: Any) -> Any:
            with copy(self.name_scope):  # a copy of its own, so the scope is left in any case
                return method(self, *args, **kwargs)

        return method_with_name_scope


class _Walk:
    """One pass over a tree of modules: what it looks for, and what it has seen."""

    def __init__(
        self,
        predicate: Callable[[Any], bool],
        sort_key: Callable[[str], Any] | None,
        with_path: bool,
        expand_composites: bool,
    ) -> None:
        self.predicate = predicate
        self.sort_key = sort_key
        self.with_path = with_path
        self.expand_composites = expand_composites
        self.seen: set[int] = set()
        self.open: set[int] = set()

    def module(self, module: Module, path: tuple, recursive: bool) -> Iterator[Any]:
        """Leaves of the module's attributes, then of the modules among them, in turn."""
        inside: list[tuple[tuple, Any]] = []
        # With paths a leaf may come more than once, so `seen` does not end cycles: a module
        # met again inside itself is listed but not entered.
        recursive = recursive and id(module) not in self.open
        attributes = vars(module)
        for key in sorted(attributes, key=self.sort_key):
            if key in module._TF_MODULE_IGNORED_PROPERTIES:
                continue
            for leaf_path, leaf in self.leaves(key, attributes[key]):
                if not self.is_new(leaf):
                    continue
                if self.predicate(leaf):
                    yield self.found((*path, *leaf_path), leaf)
                if recursive and _is_any_module(leaf):
                    inside.append(((*path, *leaf_path), leaf))
        entered = id(module) not in self.open
        self.open.add(id(module))
        for inner_path, inner in inside:
            if isinstance(inner, Module):
                yield from self.module(inner, inner_path, recursive)
            else:
                yield from self.foreign(inner, inner_path)
        if entered:
            self.open.discard(id(module))

    def foreign(self, module: Any, path: tuple) -> Iterator[Any]:
        """The variables that a module of another library lists, in its order."""
        variables = module.variables
        for i, variable in enumerate(variables() if callable(variables) else variables):
            if self.is_new(variable) and self.predicate(variable):
                yield self.found((*path, "variables", i), variable)

    def leaves(self, key: str, value: Any) -> Iterator[tuple[tuple, Any]]:
        try:
            pairs = nest.flatten_with_path(value, self.expand_composites)
        except (TypeError, ValueError) as cause:
            raise ValueError(
                f"Module: Error processing property {key!r}; expected variables, modules, or "
                f"lists and dicts of them; got {type(value).__name__}: {cause}"
            ) from cause
        for path, leaf in pairs:
            yield (key, *path), leaf

    def is_new(self, leaf: Any) -> bool:
        if self.with_path:
            return True
        if id(leaf) in self.seen:
            return False
        self.seen.add(id(leaf))
        return True

    def found(self, path: tuple, leaf: Any) -> Any:
        return (path, leaf) if self.with_path else leaf


# --- predicates --------------------------------------------------------------------------------
# Looked up on the class, never on the object: reading a property of an unknown object may run its code.


def _is_variable(leaf: Any) -> bool:
    cls = type(leaf)
    return hasattr(cls, "assign") and hasattr(cls, "trainable") and hasattr(cls, "dtype")


def _is_trainable(leaf: Any) -> bool:
    return _is_variable(leaf) and bool(leaf.trainable)


def _is_not_trainable(leaf: Any) -> bool:
    return _is_variable(leaf) and not leaf.trainable


def _is_any_module(leaf: Any) -> bool:
    if isinstance(leaf, Module):
        return True
    cls = type(leaf)
    return cls is not type and all(
        hasattr(cls, name) for name in ("variables", "trainable_variables", "non_trainable_variables")
    )


def _default_name(cls: type) -> str:
    """`HTTPServer` -> `http_server`."""
    return re.sub(_CAMEL_TO_SNAKE, r"_\1", cls.__name__).lower()
