"""Reads checkpoints without objects: names, shapes and values."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from gradtape._src.base.dtypes import DType
from gradtape._src.base.errors import NotFoundError
from gradtape.train import bundle, files, safetensors
from gradtape.train.trackable import full_name, short_name


class CheckpointReader:
    """The values of a checkpoint by name: the path of a variable, with or without TensorFlow's suffix."""

    def __init__(self, prefix: str) -> None:
        data = files.data_of(prefix)
        self._archive: Any = safetensors.Archive(data) if os.path.isfile(data) else bundle.Archive(prefix)
        names: dict[str, str] = getattr(self._archive, "names", {})
        self._names = {names.get(key, full_name(key)): key for key in self._archive}

    def _key(self, name: Any) -> str:
        name = name.decode() if isinstance(name, bytes) else str(name)
        key = self._names.get(name, short_name(name))
        if key not in self._archive:
            raise NotFoundError(
                None,
                None,
                f"Key {name} not found in checkpoint {self._archive.path}. Hint: tf.train.list_variables(path) "
                "lists the names.",
            )
        return key

    def has_tensor(self, tensor_str: Any) -> bool:
        """Whether there is a value with this name."""
        try:
            self._key(tensor_str)
        except NotFoundError:
            return False
        return True

    def get_tensor(self, tensor_str: Any) -> np.ndarray:
        """A value as an array.

        Raises:
          NotFoundError: if there is no such name.
        """
        return self._archive.tensor(self._key(tensor_str)).numpy()

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """All names with their shapes."""
        return {name: list(self._archive.shape(key)) for name, key in sorted(self._names.items())}

    def get_variable_to_dtype_map(self) -> dict[str, DType]:
        """All names with their types."""
        return {name: self._archive.dtype(key) for name, key in sorted(self._names.items())}

    def debug_string(self) -> bytes:
        """Names, types and shapes, one per line."""
        shapes, types = self.get_variable_to_shape_map(), self.get_variable_to_dtype_map()
        return "\n".join(f"{n} ({types[n].name}) {shapes[n]}" for n in shapes).encode()


def load_checkpoint(ckpt_dir_or_file: Any) -> CheckpointReader:
    """A reader for the values of a checkpoint, given by its prefix or by the folder of the newest.

    Raises:
      ValueError: if a folder has no checkpoint.
      NotFoundError: if there is none with this prefix.
    """
    return CheckpointReader(files.find(ckpt_dir_or_file))


def load_variable(ckpt_dir_or_file: Any, name: str) -> np.ndarray:
    """The value of one variable of a checkpoint, as an array."""
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name)


def list_variables(ckpt_dir_or_file: Any) -> list[tuple[str, list[int]]]:
    """The names and shapes of all variables of a checkpoint."""
    return list(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())
