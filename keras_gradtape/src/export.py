"""Exporting models to TensorFlow's SavedModel: not supported, and says so."""

from __future__ import annotations

from typing import Any, NoReturn


def _closed(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise NotImplementedError(
        "`export_saved_model` only currently supports the tensorflow, jax and torch backends. "
        "Hint: save the model with model.save('name.keras'), and load and export it where "
        "KERAS_BACKEND=tensorflow or jax."
    )


class SavedModelExportArchive:
    """TensorFlow's SavedModel, which needs TensorFlow."""

    track = add_endpoint = track_and_add_endpoint = add_variable_collection = write_out = _closed
