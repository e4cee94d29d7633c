"""`tf.train.Checkpoint`: saves and restores the state of objects, by the names that lead to them."""

from __future__ import annotations

import inspect
import json
import os
import weakref
from typing import Any

import numpy as np

from gradtape._src.base import scopes
from gradtape._src.base.errors import NotFoundError
from gradtape._src.state.variable import Variable
from gradtape.train import bundle, files, late, safetensors, trackable
from gradtape.train.restoration import InitializationOnlyStatus, LoadStatus, Restoration

_COUNTER = "save_counter"
# Attributes of a checkpoint that are not saved.
_OWN = frozenset(("_root", "_save_counter", "_restorations", late.WAITING))


class CheckpointOptions:
    """TensorFlow's options. Files are always written by the calling thread, before `save` returns."""

    def __init__(
        self,
        experimental_io_device: str | None = None,
        experimental_enable_async_checkpoint: bool = False,
        experimental_write_callbacks: Any = None,
        enable_async: bool = False,
        experimental_skip_slot_variables: bool = False,
        experimental_sharding_callback: Any = None,
    ) -> None:
        self.experimental_io_device = experimental_io_device
        self.enable_async = enable_async or experimental_enable_async_checkpoint
        self.experimental_enable_async_checkpoint = self.enable_async
        self.experimental_write_callbacks = experimental_write_callbacks
        self.experimental_skip_slot_variables = experimental_skip_slot_variables
        self.experimental_sharding_callback = experimental_sharding_callback


class Checkpoint:
    """Saves and restores the state of objects together.

    It saves variables, random generators and the state of optimizers, wherever they are: in attributes of modules,
    in lists and dictionaries. On restoring, values find their objects by the names of attributes, not by the names
    of variables; objects that are created later (a layer that is built at its first call, the slots of an
    optimizer) are restored when they are created.

    A checkpoint is one file in the safetensors format, `prefix-1.safetensors`. It is written to a temporary file
    first, which then replaces it, so that a crash leaves the last good one.

    Args:
      root: an object whose parts are saved as if passed by name, or a weak reference to it.
      **kwargs: objects by name; they become attributes.

    >>> import tempfile
    >>> import gradtape as tf
    >>> step, w = tf.Variable(1), tf.Variable([1.0, 2.0])
    >>> checkpoint = tf.train.Checkpoint(step=step, w=w)
    >>> path = checkpoint.save(tempfile.mkdtemp() + "/ckpt")
    >>> _ = w.assign([0.0, 0.0])
    >>> _ = checkpoint.restore(path).assert_consumed()
    >>> w.numpy()
    array([1., 2.], dtype=float32)
    """

    _root: Any  # or a weak reference to it
    _save_counter: Any
    _restorations: list[Restoration]
    _checkpoint_late = True  # its own `__setattr__` handles attributes that are set later

    def __init__(self, root: Any = None, **kwargs: Any) -> None:
        self.__dict__["_root"] = root
        self.__dict__["_save_counter"] = None
        self.__dict__["_restorations"] = []
        root = self._checkpoint_root
        if root is not None:
            trackable.require_trackable("root", root)
        for name, value in kwargs.items():
            trackable.require_trackable(name, value)
            if root is not None and trackable.children(root).get(name, value) is not value:
                raise ValueError(
                    f"Checkpoint: the name {name!r} is given twice, by the root object and as an argument, for "
                    f"different objects. Hint: choose another name for the argument."
                )
            setattr(self, name, value)

    @property
    def _checkpoint_root(self) -> Any:
        return self._root() if isinstance(self._root, weakref.ref) else self._root

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        late.arrived(self, {name: value})

    def _checkpoint_children(self) -> dict[str, Any]:
        children: dict[str, Any] = {}
        root = self._checkpoint_root
        if root is not None:
            plain = trackable.leaf_of(root) is None and not trackable.has_slots(root)
            children.update(trackable.children(root) if plain else {"root": root})
        children.update({n: v for n, v in vars(self).items() if n not in _OWN and trackable.may_be_given(v)})
        if self._save_counter is not None:
            children[_COUNTER] = self._save_counter
        return children

    @property
    def save_counter(self) -> Variable:
        """The number of calls of `save`: an int64 variable, itself part of the checkpoint."""
        if self._save_counter is None:
            with scopes.init_scope():
                counter = Variable(np.int64(0), trainable=False, name=_COUNTER)
            self.__dict__["_save_counter"] = counter
            late.arrived(self, {_COUNTER: counter})
        return self._save_counter

    # ---- saving -----------------------------------------------------------------------------------

    def write(self, file_prefix: Any, options: CheckpointOptions | None = None) -> str:
        """Writes a checkpoint with exactly this prefix, without counting it.

        Returns:
          The prefix, for `read`.
        """
        prefix = os.fspath(file_prefix)
        os.makedirs(os.path.dirname(prefix) or ".", exist_ok=True)
        with scopes.init_scope():
            graph = trackable.ObjectGraph(self)
            leaves = graph.leaves
            if options is not None and options.experimental_skip_slot_variables:
                leaves = {k: v for k, v in leaves.items() if f"/{trackable.SLOTS}/" not in k}
            tensors = {path: leaf.read() for path, leaf in leaves.items()}
        safetensors.save(files.data_of(prefix), tensors, {"aliases": json.dumps(graph.aliases)})
        # Not a part of the checkpoint: see `files.INDEX`.
        note = (
            f"{os.path.basename(files.data_of(prefix))} holds this checkpoint, in the safetensors format.\n"
        )
        files.write(prefix + files.INDEX, [note.encode()])
        if options is not None:
            for callback in options.experimental_write_callbacks or ():
                callback(*[prefix][: len(inspect.signature(callback).parameters)])
        return prefix

    def save(self, file_prefix: Any, options: CheckpointOptions | None = None) -> str:
        """Writes a numbered checkpoint and makes it the newest of its folder.

        Returns:
          `file_prefix` with the number, for `restore`: "folder/ckpt-1".
        """
        self.save_counter.assign_add(1)
        path = f"{os.fspath(file_prefix)}-{int(self.save_counter.numpy())}"
        try:
            self.write(path, options)
        except BaseException:
            self.save_counter.assign_sub(1)
            raise
        files.update_state(os.path.dirname(path) or ".", path)
        return path

    def sync(self) -> None:
        """Does nothing: files are written before `save` returns."""

    # ---- restoring --------------------------------------------------------------------------------

    def read(self, save_path: Any, options: CheckpointOptions | None = None) -> LoadStatus:
        """Restores what `write` or `save` wrote, as `restore` does, except for the counter.

        Raises:
          NotFoundError: if there is no such checkpoint.
        """
        return self._read(os.fspath(save_path))

    def _read(self, prefix: str) -> LoadStatus:
        if not files.exists(prefix):
            raise files.not_found(prefix)
        data = files.data_of(prefix)
        archive = safetensors.Archive(data) if os.path.isfile(data) else bundle.Archive(prefix)
        restoration = Restoration(self, archive, (_COUNTER,))
        for old in self._restorations:
            old.quiet = True
        self.__dict__["_restorations"] = [restoration]
        return LoadStatus(restoration)

    def restore(self, save_path: Any, options: CheckpointOptions | None = None) -> Any:
        """Restores a checkpoint into the objects; objects created later are restored when they are created.

        Args:
          save_path: the result of `save`, a folder (for its newest checkpoint), or None for nothing, so that
            `restore(tf.train.latest_checkpoint(folder))` works at the first start.

        Returns:
          A status; `restore(path).assert_consumed()` raises unless every value was used, and `.expect_partial()`
          declares that some may remain unused.

        Raises:
          NotFoundError: if there is no such checkpoint.
          ValueError: if a shape differs. Nothing is changed then.
          InvalidArgumentError: if a type differs. Nothing is changed then.
          DataLossError: if the file is damaged.
        """
        if save_path is None:
            return InitializationOnlyStatus()
        prefix = os.fspath(save_path)
        if os.path.isdir(prefix) and not files.exists(prefix):
            newest = files.latest_checkpoint(prefix)
            if newest is None:
                raise NotFoundError(
                    None, None, f"Could not find checkpoint or SavedModel at {prefix}: the folder has none."
                )
            prefix = newest
        _ = self.save_counter  # it is restored as well
        try:
            return self._read(prefix)
        except NotFoundError as e:
            raise NotFoundError(
                None,
                None,
                f"Error when restoring from checkpoint or SavedModel at {prefix}: {e.message}\nPlease "
                "double-check that the path is correct. You may be missing the checkpoint suffix (e.g. the '-1' "
                "in 'path/to/ckpt-1').",
            ) from None
