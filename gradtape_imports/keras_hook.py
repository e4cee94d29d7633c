"""How Keras finds the backend, without a change on disk.

A finder at the front of `sys.meta_path` adapts a few modules of Keras as they are imported:

Keras from 3.16 on has a list of pluggable backends: ours is added to it, and Keras imports
`keras_gradtape.src` by itself.

Keras 3.15 chooses between names that are written into four of its modules. There we let it import
"numpy" and serve `keras.src.backend.numpy` and its submodules from `keras_gradtape.src`. When
`import keras` is done, its name is `gradtape`: from then on it is reported correctly.

Keras uses gradtape if `gradtape` is requested, and also if `tensorflow` is requested, by name or by default, and
gradtape is TensorFlow or TensorFlow is not installed. For programs that request TensorFlow by name, or run under
the alias, `keras.backend.backend()` returns "tensorflow", because programs branch on it. Keras itself uses
"gradtape".

The file uses the standard library only: `gradtape_imports/start.py` imports it with the first `import keras`.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import json
import os
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from gradtape_imports import tensorflow_finder as finder

NAME = "gradtape"
PACKAGE = "keras_gradtape.src"
_BORROWED = "keras.src.backend.numpy"  # the backend of Keras 3.15 that we replace
_TENSORFLOW = "keras.src.backend.tensorflow"  # used by text layers, whatever the backend
_OLDEST = (3, 15)
# Where users query the name of the backend.
_PUBLIC = (
    "keras.backend", "keras.config", "keras._tf_keras.keras.backend", "keras._tf_keras.keras.config",
)  # fmt: skip
_OPS = frozenset(("core", "image", "linalg", "math", "nn", "numpy"))
# Keras 3.15 uses other names for some classes than 3.16.
_OLD_NAMES = {
    "layer": {"NumpyLayer": "BackendLayer"},
    "trainer": {"NumpyTrainer": "Trainer"},
    "export": {"NumpyExportArchive": "SavedModelExportArchive"},
}
# Names that Keras 3.15 expects in the backend package itself.
_FLAT = {
    "ops.core": (
        "cast", "cond", "convert_to_numpy", "convert_to_tensor", "is_tensor", "random_seed_dtype", "shape",
        "vectorized_map", "scatter", "stop_gradient",
    ),
    "rnn": ("bidirectional_gru", "bidirectional_lstm", "cudnn_ok", "gru", "lstm", "rnn"),
}  # fmt: skip


class _Afterwards(importlib.abc.Loader):
    """Loads a module as its own loader does, and then looks at it."""

    def __init__(self, real: Any, look: Callable[[ModuleType], None]) -> None:
        self._real = real
        self._look = look

    def create_module(self, spec: Any) -> ModuleType | None:
        return self._real.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._real.exec_module(module)
        self._look(module)

    def get_source(self, name: str) -> Any:
        """The source; used by jedi, which completes names in editors."""
        return self._real.get_source(name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class _Chosen(_Afterwards):
    """Loads Keras itself with the backend that was chosen; however that ends, the environment is as it was."""

    def __init__(
        self, real: Any, look: Callable[[ModuleType], None], choose: Callable, restore: Callable
    ) -> None:
        super().__init__(real, look)
        self._choose, self._restore = choose, restore

    def exec_module(self, module: ModuleType) -> None:
        try:
            self._choose()
            super().exec_module(module)
        finally:
            self._restore()


class _Served(importlib.abc.Loader):
    """Fills the borrowed modules with ours."""

    def create_module(self, spec: Any) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        place = _TENSORFLOW if module.__name__.startswith(_TENSORFLOW) else _BORROWED
        part = module.__name__[len(place) + 1 :]
        if part:
            source = importlib.import_module(f"{PACKAGE}.ops.{part}" if part in _OPS else f"{PACKAGE}.{part}")
            names = {k: v for k, v in vars(source).items() if not k.startswith("__")}
            names.update((old, getattr(source, new)) for old, new in _OLD_NAMES.get(part, {}).items())
        else:
            module.__path__ = []
            package = importlib.import_module(PACKAGE)
            names = {k: v for k, v in vars(package).items() if not k.startswith("_") and k != "ops"}
            names.update((m, importlib.import_module(f"{PACKAGE}.ops.{m}")) for m in _OPS)
            if place == _TENSORFLOW:  # Keras 3.16 looks up functions there
                names["ops"] = importlib.import_module(f"{PACKAGE}.ops")
            for where, wanted_names in _FLAT.items():
                source = importlib.import_module(f"{PACKAGE}.{where}")
                names.update((n, getattr(source, n)) for n in wanted_names)
        module.__dict__.update(names)


class Finder(importlib.abc.MetaPathFinder):
    """Stands in front of the finders of Python."""

    def __init__(self) -> None:
        self.asked = False  # whether `activate` requested gradtape
        self._borrows = False
        self._config: Any = None
        self._told = NAME
        self._environment: list[str | None] = []  # the program's value of KERAS_BACKEND, while we override it

    @property
    def serves(self) -> bool:
        """Whether Keras was imported, and is ours."""
        return self._config is not None

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        if not name.startswith("keras"):
            return None
        look = {
            "keras": self._keras_done,
            "keras.src.backend": self._backend_done,
            "keras.src.backend.config": self._config_done,
            "keras.src.callbacks.callback_list": self._adapt,
            "keras.src.callbacks.tensorboard": self._adapt,
            "keras.src.layers.layer": self._adapt,
            "keras.src.layers.normalization.batch_normalization": self._adapt,
            "keras.src.layers.preprocessing.text_vectorization": self._adapt,
            "keras.src.legacy.saving.legacy_h5_format": self._adapt,
            "keras.src.losses.loss": self._adapt,
            "keras.src.saving.saving_api": self._adapt,
            "keras.src.saving.serialization_lib": self._adapt,
            "keras.src.utils.module_utils": _allow,
            "keras.src.utils.backend_utils": self._allow_and_adapt,
            "keras.src.utils.tf_utils": self._adapt,
            **dict.fromkeys(_PUBLIC, self._tell),
        }.get(name)
        if look is not None:
            spec = importlib.machinery.PathFinder.find_spec(name, path)
            if spec is not None and spec.loader is not None:
                spec.loader = (
                    _Chosen(spec.loader, look, self._choose, self._restore)
                    if name == "keras"
                    else _Afterwards(spec.loader, look)
                )
            return spec
        for place, ours in ((_BORROWED, self._borrows), (_TENSORFLOW, self._config is not None)):
            if ours and (name == place or name.startswith(place + ".")):
                return importlib.machinery.ModuleSpec(name, _Served(), is_package=name == place)
        return None

    def _choose(self) -> None:
        """Makes Keras use gradtape where it would look for a TensorFlow that is gradtape, or is not installed."""
        asked = _wanted_backend()
        alias = finder.installed() is not None
        if asked != "tensorflow" or not (self.asked or alias or not _has_tensorflow()):
            return
        by_name = os.environ.get("KERAS_BACKEND")
        if alias or by_name:
            self._told = asked
        self._environment.append(by_name)
        os.environ["KERAS_BACKEND"] = NAME

    def _restore(self) -> None:
        """The environment as the program left it, also where the import of Keras fails."""
        while self._environment:
            before = self._environment.pop()
            os.environ.pop("KERAS_BACKEND", None)
            if before is not None:
                os.environ["KERAS_BACKEND"] = before

    def _config_done(self, config: Any) -> None:
        self._restore()
        if config._BACKEND != NAME:
            return
        _check_version()
        self._config = config
        if hasattr(config, "PLUGGABLE_BACKENDS"):
            _allow(config)
        else:
            self._borrows = True
            config._BACKEND = "numpy"

    def _backend_done(self, backend: Any) -> None:
        if self._borrows:  # Keras 3.15 rejects it for the NumPy backend
            backend.distribution_lib = importlib.import_module(f"{PACKAGE}.distribution_lib")

    def _tell(self, module: Any) -> None:
        if self._told != NAME:
            module.backend = lambda: self._told

    def _adapt(self, module: Any) -> None:
        if self._config is not None:
            importlib.import_module(f"{PACKAGE}.adaptations").adapt(module)

    def _allow_and_adapt(self, module: Any) -> None:
        _allow(module)
        self._adapt(module)

    def _keras_done(self, keras: Any) -> None:
        if self._config is None:
            return
        from keras.src.utils import module_utils

        # Features that Keras has only on TensorFlow (text layers, datasets from folders, seeds) use gradtape instead.
        adaptations = importlib.import_module(f"{PACKAGE}.adaptations")
        module_utils.tensorflow.module = adaptations.TensorFlowShim()
        module_utils.tensorflow._available = True
        self._config._BACKEND = NAME
        for part in ("optimizer", "calls"):
            importlib.import_module(f"{PACKAGE}.{part}").install()


def _allow(module: Any) -> None:
    """Adds our name to the backends that a module of Keras knows."""
    if hasattr(module, "PLUGGABLE_BACKENDS"):
        module.PLUGGABLE_BACKENDS = module.PLUGGABLE_BACKENDS | {NAME}
    elif hasattr(module, "DynamicBackend"):
        original = module.DynamicBackend.__getattr__

        def lookup(self: Any, name: str) -> Any:
            return getattr(module.backend_module, name) if self._backend == NAME else original(self, name)

        module.DynamicBackend.__getattr__ = lookup


def _wanted_backend() -> str:
    """The backend that Keras will choose: from the environment, else from the user's configuration file."""
    if os.environ.get("KERAS_BACKEND"):
        return os.environ["KERAS_BACKEND"]
    home = os.environ.get("KERAS_HOME") or os.path.join(os.path.expanduser("~"), ".keras")
    try:
        with open(os.path.join(home, "keras.json"), encoding="utf-8") as file:
            return str(json.load(file).get("backend", "tensorflow"))
    except (OSError, ValueError, AttributeError):
        return "tensorflow"


def _has_tensorflow() -> bool:
    return importlib.machinery.PathFinder.find_spec("tensorflow") is not None


def _check_version() -> None:
    """Says so if Keras is too old, before anything of it fails."""
    version = importlib.import_module("keras.src.version").__version__
    if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST:
        raise ImportError(
            f"Keras {version} cannot run on gradtape, which needs {'.'.join(map(str, _OLDEST))} or newer. "
            "Hint: pip install --upgrade 'gradtape[keras]'."
        )


def install() -> Finder:
    """Puts the finder in place, once; it does nothing unless this backend is requested."""
    there = next((f for f in sys.meta_path if isinstance(f, Finder)), None)
    if there is None:
        there = Finder()
        sys.meta_path.insert(0, there)
    return there


def activate() -> None:
    """Makes gradtape the backend of Keras, whether it is imported already or later.

    Raises:
      ImportError: if Keras was imported with another backend.
    """
    ours = install()
    if "keras" not in sys.modules:
        ours.asked = True
        if (
            os.environ.get("KERAS_BACKEND") != "tensorflow"
        ):  # the program may read the variable, and should find this name
            os.environ["KERAS_BACKEND"] = NAME
    elif not ours.serves:
        backend = sys.modules["keras"].backend.backend()
        raise ImportError(
            f"Keras was imported with the backend {backend!r} already. Hint: import keras_gradtape (or use tf.keras) "
            "before anything imports keras, or set KERAS_BACKEND=gradtape."
        )
