"""`tf.saved_model`: a `tf.Module` as a folder, from which it is made again.

TensorFlow stores the graph of every function. gradtape stores which class an object has, its
attributes, and the values of its variables; loading imports the class and gives the attributes
back. So the program that loads must be able to import the classes, and what cannot be stored that
way is refused by name. Nothing in the folder is executed: it holds names, numbers and JSON.
"""

from __future__ import annotations

import enum
import importlib
import json
import os
import types
from typing import Any

import numpy as np

import gradtape as _tf
from gradtape import _core
from gradtape._src.base import dtypes, errors
from gradtape._src.functions.function import ConcreteFunction, Function
from gradtape._src.ops import PUBLIC
from gradtape._src.state.module import Module
from gradtape._src.state.variable import Variable
from gradtape._src.tensors import hooks
from gradtape.train import files, safetensors

ASSETS_DIRECTORY, ASSETS_KEY = "assets", "saved_model_assets"
CLASSIFY_INPUTS, CLASSIFY_METHOD_NAME = "inputs", "tensorflow/serving/classify"
CLASSIFY_OUTPUT_CLASSES, CLASSIFY_OUTPUT_SCORES = "classes", "scores"
DEBUG_DIRECTORY, DEBUG_INFO_FILENAME_PB = "debug", "saved_model_debug_info.pb"
DEFAULT_SERVING_SIGNATURE_DEF_KEY = "serving_default"
PREDICT_INPUTS, PREDICT_METHOD_NAME, PREDICT_OUTPUTS = "inputs", "tensorflow/serving/predict", "outputs"
REGRESS_INPUTS, REGRESS_METHOD_NAME, REGRESS_OUTPUTS = "inputs", "tensorflow/serving/regress", "outputs"
SAVED_MODEL_FILENAME_PB, SAVED_MODEL_FILENAME_PBTXT = "saved_model.pb", "saved_model.pbtxt"
SAVED_MODEL_SCHEMA_VERSION = 1
SERVING, TRAINING, GPU, TPU = "serve", "train", "gpu", "tpu"
VARIABLES_DIRECTORY, VARIABLES_FILENAME = "variables", "variables"

_FILE = "saved_model.json"
_FORMAT = "gradtape.saved_model"
# Made anew by the module itself.
_SKIPPED = frozenset(("_name_scope",))


class SaveOptions:
    """TensorFlow's options, kept as attributes; they have no effect."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.__dict__.update(kwargs)


class LoadOptions(SaveOptions):
    """TensorFlow's options, kept as attributes; they have no effect."""


class experimental:
    """`tf.saved_model.experimental`."""

    class VariablePolicy(enum.Enum):
        """What to do with the devices of variables; without effect."""

        NONE = None
        SAVE_VARIABLE_DEVICES = "save_variable_devices"
        EXPAND_DISTRIBUTED_VARIABLES = "expand_distributed_variables"


# ---- saving ---------------------------------------------------------------------------------------


def save(obj: Any, export_dir: Any, signatures: Any = None, options: Any = None) -> None:
    """Stores a module in a folder, for `load`.

    Stored are the classes and attributes of the module and of those inside it: variables, tensors,
    arrays, numbers, texts, lists, dictionaries, functions and classes that can be imported, and
    `tf.function`s of methods.

    Args:
      obj: a `tf.Module`.
      export_dir: the folder.
      signatures: a function of a method of the module, or a dictionary of such functions.

    Raises:
      ValueError: if `obj` is no module, or holds something that cannot be stored; the error names it.
    """
    if not isinstance(obj, Module):
        hint = (
            "model.save('model.keras')" if hasattr(type(obj), "get_config") else "make its class a tf.Module"
        )
        raise ValueError(
            f"saved_model.save: Expected an object of type `Trackable`, such as `tf.Module`, for export. Got {obj!r} "
            f"with type {type(obj)}. Hint: {hint}."
        )
    folder = os.fspath(export_dir)
    writer = _Writer()
    root = writer.encode(obj, "the module")
    if signatures is not None and not isinstance(signatures, dict):
        signatures = {DEFAULT_SERVING_SIGNATURE_DEF_KEY: signatures}
    stored = {
        key: writer.encode(_python(f, key), f"signatures[{key!r}]") for key, f in (signatures or {}).items()
    }
    os.makedirs(os.path.join(folder, VARIABLES_DIRECTORY), exist_ok=True)
    # The description comes last: it is what makes a folder one of ours.
    safetensors.save(
        os.path.join(folder, VARIABLES_DIRECTORY, VARIABLES_FILENAME + files.DATA), writer.tensors
    )
    content = {"format": _FORMAT, "version": 1, "root": root, "objects": writer.objects, "signatures": stored}
    files.write(os.path.join(folder, _FILE), [json.dumps(content, indent=1).encode()])


def _python(function: Any, key: str) -> Any:
    """The method behind a signature."""
    if isinstance(function, ConcreteFunction):
        function = function.owner
    if not isinstance(function, Function):
        raise ValueError(
            f"saved_model.save: signatures[{key!r}] must be a tf.function of a method of the module; got {function!r}."
        )
    return function


class _Writer:
    """Turns objects into JSON, and collects the tensors on the way."""

    def __init__(self) -> None:
        self.objects: list[Any] = []
        self.tensors: dict[str, Any] = {}
        self._known: dict[int, Any] = {}
        self._kept: list[Any] = []

    def encode(self, value: Any, path: str) -> Any:
        """A value as JSON; `path` is what errors call it."""
        if value is None or isinstance(value, (bool, str)) or type(value) in (int, float):
            return value
        if id(value) in self._known:
            return self._known[id(value)]
        kind, content = self._content(value, path)
        return {kind: content}

    def _remember(self, value: Any, encoded: Any) -> None:
        self._known[id(value)] = encoded
        self._kept.append(value)

    def _tensor(self, tensor: Any) -> str:
        key = str(len(self.tensors))
        self.tensors[key] = tensor
        return key

    def _content(self, value: Any, path: str) -> tuple[str, Any]:
        if isinstance(value, Module):
            return "object", self._module(value, path)
        if isinstance(value, _core.Variable):
            content = {
                "key": self._tensor(value._peek()),
                "name": value.name,
                "trainable": bool(value.trainable),
            }
            self._remember(value, {"variable": content})
            return "variable", content
        if isinstance(value, _core.Tensor):
            return "tensor", self._tensor(value)
        if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
            return "array", self._tensor(hooks.convert(value))
        if isinstance(value, (np.bool_, np.number)):
            return "scalar", self._tensor(hooks.convert(np.asarray(value)))
        if isinstance(value, dtypes.DType):
            return "dtype", value.name
        if isinstance(value, _tf.TensorShape):
            return "shape", None if value.rank is None else value.as_list()
        if isinstance(value, _tf.TensorSpec):
            return "spec", [self.encode(value.shape, path), value.dtype.name, value.name]
        if isinstance(value, Function):
            return "function", {
                "python": self.encode(value.python_function, path),
                "signature": self.encode(value.input_signature, path),
                "autograph": value.autograph,
            }
        if isinstance(value, types.MethodType):
            return "method", [self.encode(value.__self__, path), value.__func__.__name__]
        if isinstance(value, dict):
            pairs = [[self.encode(k, path), self.encode(v, f"{path}[{k!r}]")] for k, v in value.items()]
            return "dict", pairs
        if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            items = [self.encode(v, f"{path}[{i}]") for i, v in enumerate(value)]
            return ("tuple" if isinstance(value, tuple) else "list"), items
        return "name", self._name(value, path)

    def _module(self, module: Module, path: str) -> int:
        number = len(self.objects)
        self.objects.append(None)
        self._remember(module, {"object": number})
        cls = self._name(type(module), f"the class of {path}")
        attributes = {}
        for name, value in vars(module).items():
            if name not in _SKIPPED and not name.startswith("__"):
                attributes[name] = self.encode(value, f"{path}.{name}" if path != "the module" else name)
        self.objects[number] = {"class": cls, "attributes": attributes}
        return number

    def _name(self, value: Any, path: str) -> str:
        """How something can be imported again."""
        if isinstance(value, _core.Op):
            for name, op in PUBLIC.items():
                if op is value:
                    return f"gradtape:{name}"
        name = f"{getattr(value, '__module__', None)}:{getattr(value, '__qualname__', None)}"
        try:
            if _imported(name) is value:
                return name
        except (ImportError, AttributeError, ValueError):
            pass
        raise ValueError(
            f"saved_model.save: {path} is {value!r} of type {type(value).__name__}, which cannot be stored: it is no "
            "variable, tensor, number, text, list or dictionary, no tf.Module, and nothing that another program can "
            "import by its name. Hint: define functions and classes at the top of a module; keep the rest out of "
            "the attributes; tf.train.Checkpoint stores the variables alone."
        )


# ---- loading --------------------------------------------------------------------------------------


def load(export_dir: Any, tags: Any = None, options: Any = None) -> Any:
    """Makes the module again that `save` stored: an object of the same class.

    Raises:
      NotFoundError: if there is nothing stored.
      NotImplementedError: if TensorFlow stored it: its graphs cannot be run here.
      ImportError: if a class or function cannot be imported.
    """
    folder = os.fspath(export_dir)
    path = os.path.join(folder, _FILE)
    if not os.path.isfile(path):
        if os.path.isfile(os.path.join(folder, SAVED_MODEL_FILENAME_PB)):
            raise NotImplementedError(
                f"saved_model.load: {folder} was written by TensorFlow; its graphs cannot be run here. Hint: its "
                f"variables can be read: tf.train.load_checkpoint({os.path.join(folder, 'variables', 'variables')!r})."
            )
        raise errors.NotFoundError(
            None,
            None,
            f"saved_model.load: SavedModel file does not exist at: {path}. Hint: tf.saved_model.save.",
        )
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
        if content["format"] != _FORMAT:
            raise ValueError(f"format {content['format']!r}")
    except (ValueError, KeyError, TypeError) as e:
        raise errors.DataLossError(None, None, f"saved_model.load: {path} is damaged: {e}.") from e
    archive = safetensors.Archive(os.path.join(folder, VARIABLES_DIRECTORY, VARIABLES_FILENAME + files.DATA))
    reader = _Reader(content["objects"], archive)
    root = reader.decode(content["root"])
    if content["signatures"]:
        signatures = {key: _Signature(key, reader.decode(f)) for key, f in content["signatures"].items()}
        object.__setattr__(root, "signatures", signatures)
    return root


class _Signature:
    """A stored function, called with keywords; its results have names."""

    def __init__(self, name: str, function: Any) -> None:
        self.name = name
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        out = self._function(*args, **kwargs)
        if isinstance(out, dict):
            return out
        every = out if isinstance(out, (list, tuple)) else [out]
        return {f"output_{i}": x for i, x in enumerate(every)}


class _Reader:
    """The other way round."""

    def __init__(self, objects: list, archive: Any) -> None:
        self._stored = objects
        self._archive = archive
        self._objects: dict[int, Any] = {}
        self._variables: dict[str, Any] = {}

    def decode(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        ((kind, content),) = value.items()
        return getattr(self, f"_{kind}")(content)

    def _object(self, number: int) -> Any:
        if number in self._objects:
            return self._objects[number]
        stored = self._stored[number]
        cls = _found(stored["class"])
        if not (isinstance(cls, type) and issubclass(cls, Module)):
            raise ImportError(f"saved_model.load: {stored['class']} is no tf.Module any more.")
        made = self._objects[number] = cls.__new__(cls)
        for name, attribute in stored["attributes"].items():
            object.__setattr__(made, name, self.decode(attribute))
        return made

    def _variable(self, content: dict[str, Any]) -> Any:
        key = content["key"]
        if key not in self._variables:
            made = Variable(self._archive.tensor(key), trainable=content["trainable"])
            made._name = content["name"]
            self._variables[key] = made
        return self._variables[key]

    def _tensor(self, key: str) -> Any:
        return self._archive.tensor(key)

    def _array(self, key: str) -> Any:
        return np.array(self._archive.tensor(key).numpy())

    def _scalar(self, key: str) -> Any:
        return self._archive.tensor(key).numpy()[()]

    def _dtype(self, name: str) -> Any:
        return dtypes.as_dtype(name)

    def _shape(self, sizes: Any) -> Any:
        return _tf.TensorShape(sizes)

    def _spec(self, parts: list) -> Any:
        return _tf.TensorSpec(self.decode(parts[0]), parts[1], parts[2])

    def _function(self, content: dict[str, Any]) -> Any:
        return Function(
            self.decode(content["python"]),
            input_signature=self.decode(content["signature"]),
            autograph=content["autograph"],
        )

    def _method(self, parts: list) -> Any:
        owner = self.decode(parts[0])
        found = getattr(owner, parts[1])
        return found.python_function if isinstance(found, Function) else found

    def _dict(self, pairs: list) -> Any:
        return {self.decode(k): self.decode(v) for k, v in pairs}

    def _list(self, items: list) -> Any:
        return [self.decode(v) for v in items]

    def _tuple(self, items: list) -> Any:
        return tuple(self.decode(v) for v in items)

    def _name(self, name: str) -> Any:
        return _found(name)


def _imported(name: str) -> Any:
    module, _, path = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _found(name: str) -> Any:
    try:
        return _imported(name)
    except (ImportError, AttributeError) as e:
        raise ImportError(
            f"saved_model.load: {name} cannot be imported: {e}. The stored module needs the code it was made of. "
            "Hint: a class of a script that was run ('__main__') is found by that script alone; define it in a module."
        ) from e


def contains_saved_model(export_dir: Any) -> bool:
    """Whether a folder holds a stored module, of ours or TensorFlow's."""
    folder = os.fspath(export_dir)
    return any(
        os.path.isfile(os.path.join(folder, n))
        for n in (_FILE, SAVED_MODEL_FILENAME_PB, SAVED_MODEL_FILENAME_PBTXT)
    )


def __getattr__(name: str) -> Any:
    from gradtape._src.public import absent

    return absent.lookup_in("saved_model", name)
