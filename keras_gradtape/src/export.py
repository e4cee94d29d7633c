"""Exporting models to other formats: closed, in words."""

from __future__ import annotations

from typing import Any


class SavedModelExportArchive:
    """TensorFlow's SavedModel, which needs TensorFlow."""

    def track(self, resource: Any) -> None:
        raise NotImplementedError(
            "export: the gradtape backend does not write SavedModels. Hint: model.save('name.keras')."
        )

    def add_endpoint(self, *args: Any, **kwargs: Any) -> None:
        self.track(None)
