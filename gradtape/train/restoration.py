"""Restores the values of a checkpoint into a program's objects.

Objects are matched with the saved graph edge by edge, from the root on. All shapes and types are compared before
the first value is assigned. If an object lacks a part that the checkpoint has (a layer that is built later, the
slots of an optimizer), it is watched: see `late`.
"""

from __future__ import annotations

import logging
import sys
from collections import deque
from collections.abc import Iterator
from typing import Any

from gradtape._src.base import scopes
from gradtape._src.base.errors import InvalidArgumentError, more
from gradtape._src.base.shape import TensorShape
from gradtape.train import late, trackable
from gradtape.train.trackable import (
    Leaf,
    ObjectGraph,
    children,
    has_slots,
    is_foreign,
    is_optimizer,
    join,
    leaf_of,
)

_log = logging.getLogger("gradtape")
_MOST_SHOWN = 10


class Restoration:
    """A checkpoint that was read for a root object, and the values of it that were used."""

    def __init__(self, root: Any, archive: Any, optional: tuple[str, ...] = ()) -> None:
        self.root = root
        self.archive = archive
        self.optional = frozenset(optional)
        self.quiet = True  # until the restoration has started
        self.edges: dict[str, dict[str, str]] = {}
        self._used: set[str] = set()
        # By id: the path where an object was saved, and the object, so that its id is not reused.
        self._matched: dict[int, tuple[str, Any]] = {}
        self._taken: dict[str, Any] = {}  # the inverse
        self._followed: set[tuple[str, str]] = set()
        self._late: dict[
            int, Any
        ] = {}  # by the id of a list or dictionary: its watching copy, which refers to it
        for key in archive:
            self._add_way(key)
        for edge, target in archive.aliases.items():
            parent, _, name = edge.rpartition("/")
            self.edges.setdefault(parent, {})[name] = target
            self._add_way(parent)
        self.bind(root, "")
        self.quiet = False

    def _add_way(self, path: str) -> None:
        """Adds the edges of a path, up to the first known one."""
        while path:
            parent, _, name = path.rpartition("/")
            of_parent = self.edges.setdefault(parent, {})
            if name in of_parent:
                return
            of_parent[name] = path
            path = parent

    # ---- matching ---------------------------------------------------------------------------------

    def arrive(self, parent: Any, path: str, name: str, part: Any, target: str) -> None:
        """Restores the part `name` that the object at `path` has just received, saved at `target`."""
        if is_foreign(parent):  # another library may refer to its list elsewhere, too
            self.bind(part, target, (path, join("", name)))
            return
        late_part = self._watching(part, target)
        if late_part is not part and late.put(parent, name, late_part):
            part = late_part
        self.bind(part, target, (path, join("", name)))

    def bind(self, obj: Any, path: str, edge: tuple[str, str] | None = None) -> None:
        """Restores the values saved at `path` into an object, and those below into its parts.

        Args:
          edge: for a new part, the path of the object that received it, and its name there.

        Raises:
          ValueError, InvalidArgumentError: if a value does not fit; then nothing is assigned.
        """
        matched, taken, followed = dict(self._matched), dict(self._taken), set(self._followed)
        values: list[tuple[Leaf, str]] = []
        waiting: list[tuple[Any, str, bool]] = []
        optimizers = []
        if edge is not None:
            followed.add(edge)
            if id(obj) in matched and matched[id(obj)][1] is obj:
                self._followed = followed
                return
        queue: deque[tuple[Any, str, bool]] = deque([(obj, path, False)])
        while queue:
            current, where, foreign = queue.popleft()
            # A single saved object stays single: of several objects in its place, the first gets the value, as in
            # TensorFlow.
            if not isinstance(current, tuple) and taken.setdefault(where, current) is not current:
                continue
            matched[id(current)] = (where, current)
            leaf = leaf_of(current)
            if leaf is not None:
                if where in self.archive:
                    values.append((leaf, where))
                continue
            foreign = foreign if isinstance(current, (list, dict, tuple)) else is_foreign(current)
            saved = self.edges.get(where, {})
            live = {join("", name): (name, part) for name, part in children(current).items()}
            for edge_name, (name, part) in live.items():
                if edge_name in saved:
                    followed.add((where, edge_name))
                    late_part = part if foreign else self._watching(part, saved[edge_name])
                    if late_part is not part and late.put(current, name, late_part):
                        part = late_part
                    if id(part) not in matched or matched[id(part)][1] is not part:
                        queue.append((part, saved[edge_name], foreign))
            if is_optimizer(current):
                optimizers.append((current, where))
            elif saved.keys() - live.keys():
                waiting.append((current, where, foreign))
                if getattr(current, "_checkpoint_root", None) is not None:
                    waiting.append((current._checkpoint_root, where, False))  # type: ignore[union-attr]
        for optimizer, where in optimizers:
            if has_slots(optimizer):
                values += self._slots(optimizer, where, matched)
        self._assign(values)
        self._matched, self._taken, self._followed = matched, taken, followed
        # A list of another library stays: the library may refer to it elsewhere, too.
        for current, where, foreign in waiting:
            if not (foreign and isinstance(current, (list, dict))):
                late.watch(current, self, where)
        for optimizer, where in optimizers:
            if self._is_left_below(where):
                late.watch(optimizer, self, where)

    def _watching(self, part: Any, path: str) -> Any:
        """A list, dictionary or tuple that restores later items, if the checkpoint has something for it."""
        return late.watching(part, self._late) if self._lacks(part, path, set()) else part

    def _lacks(self, part: Any, path: str, seen: set[int]) -> bool:
        if not isinstance(part, (list, dict, tuple)) or id(part) in seen:
            return False
        seen.add(id(part))
        saved = self.edges.get(path, {})
        live = {join("", name): child for name, child in children(part).items()}
        return bool(saved.keys() - live.keys()) or any(
            self._lacks(child, saved[name], seen) for name, child in live.items() if name in saved
        )

    def target(self, path: str, name: str) -> str | None:
        """The path where the part `name` of the object at `path` was saved, if it is not used yet."""
        edge = join("", name)
        return None if (path, edge) in self._followed else self.edges.get(path, {}).get(edge)

    def _slots(self, optimizer: Any, where: str, matched: dict) -> Iterator[tuple[Leaf, str]]:
        def path_of(v: Any) -> str | None:
            match = matched.get(id(v))
            return None if match is None else match[0]

        for by_name, by_position, slot in trackable.slots_of(optimizer, where, path_of):
            key = by_name if by_name in self.archive else by_position
            if key in self.archive and id(slot) not in matched:
                matched[id(slot)] = (key, slot)
                yield Leaf(slot, "variable"), key

    def is_waiting(self, obj: Any, path: str) -> bool:
        """Whether the checkpoint has something for an object that the object does not have yet."""
        if is_optimizer(obj):
            return self._is_left_below(path)
        have = {join("", name) for name in children(obj)}
        return any(e not in have and (path, e) not in self._followed for e in self.edges.get(path, ()))

    def _is_left_below(self, path: str) -> bool:
        """Whether values of an optimizer wait for variables that it creates later."""
        return any(k.startswith(f"{path}/") and k not in self._used for k in self.archive)

    def _assign(self, values: list[tuple[Leaf, str]]) -> None:
        for leaf, key in values:
            self._check(leaf, key)
        # Assignments are not part of a surrounding function or tape.
        with scopes.init_scope():
            for leaf, key in values:
                leaf.write(self.archive.tensor(key))
        self._used.update(key for _, key in values)

    def _check(self, leaf: Leaf, key: str) -> None:
        dtype, shape = leaf.expects()
        stored_dtype, stored_shape = self.archive.dtype(key), TensorShape(self.archive.shape(key))
        if shape is not None and not TensorShape(shape).is_compatible_with(stored_shape):
            raise ValueError(
                f"Received incompatible tensor with shape {stored_shape} when attempting to restore variable "
                f"with shape {shape} and name {leaf.name}; the checkpoint has {key}: "
                f"{stored_dtype.name}{stored_shape.as_list()}, the program {dtype.name}"
                f"{TensorShape(shape).as_list()}. Nothing was restored." + more("checkpoints")
            )
        if stored_dtype is not dtype:
            raise InvalidArgumentError(
                None,
                None,
                f"tensor_name = {trackable.full_name(key)}; expected dtype {dtype.name} does not equal original "
                f"dtype {stored_dtype.name}; the checkpoint has {key}: {stored_dtype.name}"
                f"{stored_shape.as_list()}, the program {leaf.name}: {dtype.name}. Nothing was restored."
                + more("checkpoints"),
            )

    # ---- the rest ----------------------------------------------------------------------------------

    def unused(self) -> list[str]:
        """The saved values that no object used."""
        return sorted(k for k in self.archive if k not in self._used and k not in self.optional)

    def unmatched(self) -> list[Any]:
        """The objects below the root whose state was not restored."""
        leaves = ObjectGraph(self.root).leaves
        return [
            leaf.obj
            for path, leaf in leaves.items()
            if not self._took(leaf.obj) and path not in self.optional
        ]

    def _took(self, obj: Any) -> bool:
        match = self._matched.get(id(obj))
        return match is not None and match[1] is obj and match[0] in self._used

    def __del__(self) -> None:
        if self.quiet or sys.is_finalizing() or not hasattr(self, "_used"):
            return
        left = self.unused()
        if left:
            _log.warning(
                "Values of the checkpoint %s were not used by any object: %s%s. Hint: the status that "
                "restore returns has expect_partial() to silence this, and assert_consumed() to make it an error.",
                self.archive.path, ", ".join(left[:_MOST_SHOWN]), ", ..." if len(left) > _MOST_SHOWN else "",
            )  # fmt: skip


# ---- the result of `restore` -----------------------------------------------------------------------


class LoadStatus:
    """The outcome of a restoration, checked by the methods below; each returns the status."""

    def __init__(self, restoration: Restoration) -> None:
        self._restoration = restoration

    def assert_consumed(self) -> LoadStatus:
        """Raises AssertionError unless every saved value was used and every object restored."""
        ObjectGraph(self._restoration.root)  # visits lists that were filled under another name
        left = self._restoration.unused()
        if left:
            self._restoration.quiet = True
            archive, most = self._restoration.archive, _MOST_SHOWN
            lines = [f"{k}: {archive.dtype(k).name}{list(archive.shape(k))}" for k in left[:most]]
            raise AssertionError(
                f"Unresolved object in checkpoint (root).{left[0].replace('/', '.')}: {len(left)} saved values have no "
                f"object in the program:\n  "
                + "\n  ".join(lines)
                + ("\n  ..." if len(left) > most else "")
                + "\n"
                "Hint: objects that are created later are restored then; call expect_partial() if this is intended."
                + more("checkpoints")
            )
        return self.assert_existing_objects_matched()

    def assert_existing_objects_matched(self) -> LoadStatus:
        """Raises AssertionError unless every existing object was restored."""
        missing = self._restoration.unmatched()
        if missing:
            shown = missing[:_MOST_SHOWN]
            raise AssertionError(
                f"Found {len(missing)} Python objects that were not bound to checkpointed values, likely due to "
                f"changes in the Python program. Showing {len(shown)} of {len(missing)} unmatched objects: {shown}"
            )
        return self

    def assert_nontrivial_match(self) -> LoadStatus:
        """Raises AssertionError if nothing at all was restored."""
        if not self._restoration._used:
            raise AssertionError(
                "Nothing except the root object matched a checkpointed value. Typically this means that the "
                "checkpoint does not match the Python program. The checkpoint has: "
                + ", ".join(sorted(self._restoration.archive)[:_MOST_SHOWN])
            )
        return self

    def expect_partial(self) -> LoadStatus:
        """Declares that values may remain unused, so that there is no warning."""
        self._restoration.quiet = True
        return self

    def initialize_or_restore(self, session: Any = None) -> None:
        """Nothing to do: values are restored at once."""

    run_restore_ops = initialize_or_restore


class InitializationOnlyStatus:
    """The result of `restore(None)`: there was nothing to restore."""

    def _nothing(self) -> Any:
        raise AssertionError("No checkpoint specified (save_path=None); nothing is being restored.")

    assert_consumed = assert_existing_objects_matched = assert_nontrivial_match = run_restore_ops = _nothing

    def expect_partial(self) -> InitializationOnlyStatus:
        """Returns itself."""
        return self

    def initialize_or_restore(self, session: Any = None) -> None:
        """Nothing to do."""
