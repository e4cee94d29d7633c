"""`fit` in several processes: which of them writes files, and how the others restore a backup.

Every worker has the program's callbacks. Files are written by the chief: it saves checkpoints and backups, each
under a temporary name first, so that a worker that is killed while writing leaves the previous one intact.
"""

import os
import tempfile
from collections.abc import Callable
from typing import Any

from keras.src import callbacks as keras_callbacks


def prepare(callbacks: Any, strategy: Any) -> None:
    """Lets the callbacks of a list write files only in the chief."""
    if strategy._group.size == 1:
        return
    is_chief = strategy.extended.should_checkpoint
    for callback in callbacks.callbacks:
        if isinstance(callback, keras_callbacks.BackupAndRestore):
            callback._save_model = _whole(callback, callback._save_model) if is_chief else _nothing
            callback.delete_checkpoint = callback.delete_checkpoint and is_chief
        elif is_chief:
            continue
        elif isinstance(callback, keras_callbacks.ModelCheckpoint):
            callback._save_model = _nothing
        elif isinstance(callback, keras_callbacks.CSVLogger):
            callback.filename = os.devnull
        elif isinstance(callback, keras_callbacks.TensorBoard):
            callback.log_dir = tempfile.mkdtemp(prefix="worker")


def _nothing(*args: Any, **kwargs: Any) -> None:
    """The chief does it."""


def _whole(callback: Any, save: Callable[[], None]) -> Callable[[], None]:
    """Saves under other names, and puts the new files in the place of the old ones when they are complete."""
    if getattr(save, "is_whole", False):
        return save
    names = ("_weights_path", "_training_metadata_path")

    def saved() -> None:
        final = {name: getattr(callback, name) for name in names}
        try:
            for name, path in final.items():
                folder, base = os.path.split(path)
                setattr(callback, name, os.path.join(folder, f"new.{base}"))
            save()
        finally:
            for name, path in final.items():
                setattr(callback, name, path)
        for path in final.values():
            folder, base = os.path.split(path)
            os.replace(os.path.join(folder, f"new.{base}"), path)

    saved.is_whole = True  # type: ignore[attr-defined]
    return saved


def go_on_together(model: Any, callbacks: Any, strategy: Any) -> None:
    """After a backup was restored: workers that have no copy of it take everything from the chief."""
    group = strategy._group
    kinds = keras_callbacks.BackupAndRestore
    if group.size == 1 or not any(isinstance(c, kinds) for c in callbacks.callbacks):
        return
    (gathered,) = group.all_gather([model._initial_epoch or 0])
    epochs = [int(e) for e in gathered]
    if len(set(epochs)) == 1:
        return
    model._initial_epoch = epochs[0]
    if model.optimizer is not None and not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)
    variables = [*model.variables, *(model.optimizer.variables if model.optimizer is not None else ())]
    for variable, value in zip(variables, group.broadcast([v.value for v in variables]), strict=True):
        variable.assign(value)
