"""`tf.saved_model`: stores a `tf.Module` in a folder and restores it from there.

gradtape stores the class of an object, its attributes, and the values of its variables; loading looks the class up in the
running program and restores the attributes, so the loading program must have imported the classes. A module with attributes
that cannot be stored that way (a closure, an object of another library) is stored the way TensorFlow stores every module,
if it has functions with a signature or that were called: as an object without a class, with its variables, submodules,
lists, numbers, and its functions as sequences of op calls (`train/stored_calls.py`). Everything else is left out.

A folder holds data only, and loading it runs no code from it. Everything in it is of a kind listed in `_Reader.KINDS`;
functions are sequences of calls to gradtape's tensor functions; and every other name is looked up in a list that the
program defines, not the file (`train/stored_names.py`): dtypes, gradtape's public ops, the subclasses of `tf.Module` that
the program has defined, and functions defined in the same modules as those classes. Nothing is imported, no attribute
whose name begins with two underscores is set, and no class with a `__del__` is instantiated. A checksum of the description
is stored with the values. Keras models are stored as Keras archives beside it (`keras_gradtape/saved.py`).
"""

from __future__ import annotations

import contextlib
import enum
import importlib
import inspect
import json
import os
import shutil
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape as _tf
from gradtape import _core
from gradtape import export as _export
from gradtape._src.base import composites, dtypes, errors
from gradtape._src.base.reading import expect, json_of, reading, take_all
from gradtape._src.functions.concrete import ConcreteFunction
from gradtape._src.functions.function import Function
from gradtape._src.ops import PUBLIC
from gradtape._src.public import absent as _absent
from gradtape._src.state.module import Module
from gradtape._src.state.variable import Variable
from gradtape._src.tensors import conversion
from gradtape.io.framing import crc32c
from gradtape.train import files, safetensors, stored_calls, stored_names
from gradtape.train.signatures import LoadedModel, Restored, Signature

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
_SUM = "description"  # in the metadata of the values: the checksum of the description
# Recreated by the module itself.
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


def save(
    obj: Any, export_dir: Any, signatures: Any = None, options: Any = None, stablehlo: bool | dict = False
) -> None:
    """Stores a module in a folder, for `load`.

    It stores the classes and attributes of the module and of those inside it: variables, tensors, arrays, numbers,
    strings, lists, dictionaries, functions and classes that can be imported, and `tf.function`s of methods. If
    there is anything else, and the module has functions with an `input_signature` or that were called, these are
    stored as sequences of op calls, and the module without its class.

    Args:
      obj: a `tf.Module` or a Keras model; with `stablehlo`, only StableHLO is written for a Keras model.
      export_dir: the folder.
      signatures: a function of a method of the module, or a dictionary of such functions, each with an
        `input_signature` or traced by `get_concrete_function`. Without it, the only method that is such a
        function, or the call of a Keras model, is "serving_default".
      stablehlo: whether to write programs, to `stablehlo/<name>`, that run with JAX, without gradtape and the
        class: one for each signature, or without signatures for each method that is a `tf.function` with an
        `input_signature`. A dictionary sets options of `ConcreteFunction.export`.

    Raises:
      ValueError: if `obj` is not a module, or holds something that cannot be stored; the error names it.
      ImportError: if `stablehlo` is requested, and JAX is not installed.
    """
    if stablehlo is not False and not isinstance(obj, Module) and hasattr(type(obj), "get_config"):
        obj.export(os.fspath(export_dir), verbose=False, **(stablehlo if isinstance(stablehlo, dict) else {}))
        return
    if not isinstance(obj, Module) and not _is_keras(obj):
        raise ValueError(
            f"saved_model.save: Expected an object of type `Trackable`, such as `tf.Module`, for export. Got {obj!r} "
            f"with type {type(obj)}. Hint: make its class a tf.Module."
        )
    folder = os.fspath(export_dir)
    if signatures is not None and not isinstance(signatures, dict):
        signatures = {DEFAULT_SERVING_SIGNATURE_DEF_KEY: signatures}
    named = _default_signatures(obj) if signatures is None else signatures
    named = {key: _python(f, key) for key, f in named.items()}
    try:
        writer, root, stored = _described(obj, named, folder, by_class=True)
    except ValueError:
        if not isinstance(obj, Module) or not (named or any(map(_is_of_use, _all_functions(obj).values()))):
            raise
        writer, root, stored = _described(obj, named, folder, by_class=False)
    if stablehlo is not False:
        programs = _programs(obj, signatures)
        options_ = stablehlo if isinstance(stablehlo, dict) else {}
        shutil.rmtree(
            os.path.join(folder, _export.FOLDER), ignore_errors=True
        )  # saving replaces an earlier save
        _export.write(folder, programs, dict.fromkeys(programs, options_))
    os.makedirs(os.path.join(folder, VARIABLES_DIRECTORY), exist_ok=True)
    content = {"format": _FORMAT, "version": 2, "root": root, "objects": writer.objects, "signatures": stored}
    description = json.dumps(content, indent=1).encode()
    # The description is written last: a folder without it is not a saved module.
    safetensors.save(
        os.path.join(folder, VARIABLES_DIRECTORY, VARIABLES_FILENAME + files.DATA),
        writer.tensors,
        {_SUM: f"{crc32c(description):08x}"},
    )
    files.write(os.path.join(folder, _FILE), [description])


def _described(obj: Any, named: dict[str, Any], folder: str, by_class: bool) -> tuple[_Writer, Any, dict]:
    writer = _Writer(folder, by_class)
    root = writer.encode(obj, "the module")
    return writer, root, {key: writer.encode(f, f"signatures[{key!r}]") for key, f in named.items()}


def _is_keras(value: Any) -> bool:
    return "keras" in sys.modules and _keras().is_model(value)


def _keras() -> Any:
    return importlib.import_module("keras_gradtape.saved")


def _all_functions(module: Any) -> dict[str, Function]:
    """The functions of a module: methods, and attributes."""
    names = [n for n in dir(type(module)) if isinstance(inspect.getattr_static(type(module), n), Function)]
    return {n: getattr(module, n) for n in names} | {
        n: f for n, f in vars(module).items() if isinstance(f, Function)
    }


def _is_of_use(function: Function) -> bool:
    """Whether the types of a function's arguments are known."""
    return function.input_signature is not None or bool(function._concrete)


def _functions(module: Any) -> dict[str, Function]:
    """The functions of a module that have a signature."""
    return {n: f for n, f in _all_functions(module).items() if f.input_signature is not None}


def _default_signatures(module: Any) -> dict[str, Any]:
    """As in TensorFlow: the only candidate, if there is exactly one. A Keras model's call is found when it is loaded."""
    functions = list(_functions(module).values()) if isinstance(module, Module) else []
    # Signatures take tensors only; a method with other arguments is still stored as a method.
    functions = [f for f in functions if not composites.has_composites(f.input_signature)]
    return {DEFAULT_SERVING_SIGNATURE_DEF_KEY: functions[0]} if len(functions) == 1 else {}


def _programs(module: Module, signatures: dict[str, Any] | None) -> dict[str, ConcreteFunction]:
    """The traces that are written as StableHLO."""
    if signatures is None:
        signatures = dict(_functions(module))
        if not signatures:
            raise ValueError(
                "saved_model.save: stablehlo=True, but there are no signatures, and no method of the module is a "
                "tf.function with an input_signature. Hint: signatures=module.f.get_concrete_function(tf.TensorSpec(...))."
            )
    return {
        key: f if isinstance(f, ConcreteFunction) else f.get_concrete_function()
        for key, f in signatures.items()
    }


def _python(function: Any, key: str) -> Any:
    """The method behind a signature, with the specs of its arguments."""
    if isinstance(function, ConcreteFunction):
        args, kwargs = function.structured_input_signature
        owner = function.owner
        if kwargs or not isinstance(owner, Function):
            raise ValueError(
                f"saved_model.save: signatures[{key!r}] has arguments that are given by name only; expected a method."
            )
        return Function(owner.python_function, input_signature=args, autograph=owner.autograph)
    if not isinstance(function, Function) or function.input_signature is None:
        raise ValueError(
            f"saved_model.save: Expected a TensorFlow function for which to generate a signature, but got {function} as "
            f"signatures[{key!r}]. Only `tf.functions` with an input signature or concrete functions can be used as a "
            "signature."
        )
    return function


class _Writer:
    """Turns objects into JSON, and collects the tensors on the way."""

    def __init__(self, folder: str, by_class: bool) -> None:
        self._folder = folder
        self._by_class = by_class  # whether classes and functions are looked up in the loading program
        self._calls = stored_calls.Writer(self.encode, self._tensor)
        self._models = 0
        self.objects: list[Any] = []
        self.tensors: dict[str, Any] = {}
        self._known: dict[int, Any] = {}
        self._kept: list[Any] = []

    def encode(self, value: Any, path: str) -> Any:
        """A value as JSON; `path` is its name in errors."""
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
        if _is_keras(value):
            return "keras", self._model(value)
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
            return "array", self._tensor(conversion.convert(value))
        if isinstance(value, (np.bool_, np.number)):
            return "scalar", self._tensor(conversion.convert(np.asarray(value)))
        if isinstance(value, dtypes.DType):
            return "dtype", value.name
        if isinstance(value, _tf.TensorShape):
            return "shape", None if value.rank is None else value.as_list()
        if isinstance(value, _tf.TensorSpec):
            return "spec", [self.encode(value.shape, path), value.dtype.name, value.name]
        if isinstance(value, Function) and not self._by_class:
            return "calls", self._calls.function(value, path)
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
        if not self._by_class:
            self.objects[number] = {"class": None, "attributes": self._what_can_be(module, path)}
            return number
        cls = self._name(type(module), f"the class of {path}")
        if hasattr(type(module), "__del__"):
            raise ValueError(
                f"saved_model.save: {cls} has a method __del__; load would refuse to create one."
            )
        attributes = {}
        for name, value in vars(module).items():
            if name not in _SKIPPED and not name.startswith("__"):
                attributes[name] = self.encode(value, f"{path}.{name}" if path != "the module" else name)
        self.objects[number] = {"class": cls, "attributes": attributes}
        return number

    def _what_can_be(self, module: Module, path: str) -> dict[str, Any]:
        """The attributes and functions of a module that is stored without its class."""
        prefix = "" if path == "the module" else f"{path}."
        functions = {n: f for n, f in _all_functions(module).items() if _is_of_use(f)}
        attributes = {n: self.encode(f, prefix + n) for n, f in functions.items()}
        for name, value in vars(module).items():
            if name in _SKIPPED or name.startswith("__") or isinstance(value, Function):
                continue
            with contextlib.suppress(ValueError):
                attributes[name] = self.encode(value, prefix + name)
        return attributes

    def _model(self, model: Any) -> list[int]:
        number, self._models = self._models, self._models + 1
        content = [number, _keras().save(model, _archive(self._folder, number))]
        self._remember(model, {"keras": content})
        return content

    def _name(self, value: Any, path: str) -> str:
        """The name by which a function or class can be looked up again."""
        if isinstance(value, _core.Op):
            for name, op in PUBLIC.items():
                if op is value:
                    return f"gradtape:{name}"
        name = f"{getattr(value, '__module__', None)}:{getattr(value, '__qualname__', None)}"
        if stored_names.allowed(name) is value:
            return name
        raise ValueError(
            f"saved_model.save: {path} is {value!r} of type {type(value).__name__}, which cannot be stored: it is not a "
            "variable, tensor, number, string, list or dictionary, not a tf.Module, and not an op of gradtape or a function "
            "at the top level of a Python module that defines one of your classes. Hint: put functions and classes "
            "there; keep the rest out of the attributes; tf.train.Checkpoint stores the variables alone."
        )


def _archive(folder: str, number: int) -> str:
    return os.path.join(folder, ASSETS_DIRECTORY, f"{number}.keras")


# ---- loading --------------------------------------------------------------------------------------


def load(export_dir: Any, tags: Any = None, options: Any = None) -> Any:
    """Restores a module that `save` stored: an object of the same class, which the program must have imported.

    No code from the folder is run or imported; the top of this file lists what it may name. The endpoints of an
    exported Keras model are methods of the result, `loaded.serve(x)`: XLA programs, run by JAX.

    Raises:
      NotFoundError: if nothing is stored there.
      NotImplementedError: if TensorFlow wrote it: gradtape cannot run its graphs.
      ImportError: if it names a class or function that the program has not defined.
      DataLossError: if it is damaged.
    """
    folder = os.fspath(export_dir)
    path = os.path.join(folder, _FILE)
    if not os.path.isfile(path):
        if _export.has_functions(folder):
            return _export.Endpoints(folder)
        if os.path.isfile(os.path.join(folder, SAVED_MODEL_FILENAME_PB)):
            raise NotImplementedError(
                f"saved_model.load: {folder} was written by TensorFlow; its graphs cannot be run here. Hint: its "
                f"variables can be read: tf.train.load_checkpoint({os.path.join(folder, 'variables', 'variables')!r})."
            )
        raise _NothingThere(
            None,
            None,
            f"saved_model.load: SavedModel file does not exist at: {path}. Hint: tf.saved_model.save.",
        )
    archive = safetensors.Archive(os.path.join(folder, VARIABLES_DIRECTORY, VARIABLES_FILENAME + files.DATA))
    with reading(f"saved_model.load: {path} is damaged: "):
        description = take_all(path)
        content = json_of(description)
        if content["format"] != _FORMAT or content["version"] != 2:
            raise ValueError(f"its format is {content['format']!r}, version {content['version']!r}")
        if archive.metadata.get(_SUM) != f"{crc32c(description):08x}":
            raise ValueError("its checksum is not the one that is stored with the values")
        reader = _Reader(folder, expect(content["objects"], list), archive)
        root = reader.decode(content["root"])
        stored = expect(content["signatures"], dict)
        named = {key: reader.decode(f) for key, f in stored.items()}
        if isinstance(root, Module):
            result: Any = root
        elif _is_keras(root):
            result = LoadedModel(root)
            serve = _keras().signature_of(root)
            if not named and serve is not None:
                named[DEFAULT_SERVING_SIGNATURE_DEF_KEY] = serve
        else:
            raise ValueError("its root is not a module")
        vars(result)["signatures"] = {key: Signature(key, f) for key, f in named.items()}
    return result


class _NothingThere(errors.NotFoundError, OSError):
    """Raised as OSError, as TensorFlow does."""


class _Reader:
    """Rebuilds objects from JSON and the stored tensors."""

    def __init__(self, folder: str, objects: list, archive: Any) -> None:
        self._folder = folder
        self._models: dict[int, Any] = {}
        self._stored = objects
        self._archive = archive
        self._objects: dict[int, Any] = {}
        self._variables: dict[str, Any] = {}
        self._used: set[str] = set()
        self._functions = stored_calls.Reader(self.decode, self._tensor)

    def decode(self, value: Any) -> Any:
        if value is None or type(value) in (bool, int, float, str):
            return value
        ((kind, content),) = expect(value, dict).items()
        return self.KINDS[kind](self, content)

    def _object(self, number: int) -> Any:
        if expect(number, int) in self._objects:
            return self._objects[number]
        if not 0 <= number < len(self._stored):
            raise ValueError(f"there is no object {number}")
        stored = expect(self._stored[number], dict)
        cls = Restored if stored["class"] is None else stored_names.class_of(expect(stored["class"], str))
        # Neither `__new__` nor `__init__` nor any property of the class is run.
        obj: Any = object.__new__(cls)
        self._objects[number] = obj
        for name, attribute in expect(stored["attributes"], dict).items():
            if name.startswith("__") and not (name == "__call__" and cls is Restored):
                raise ValueError(f"an attribute has the name {name!r}")
            vars(obj)[name] = self.decode(attribute)
        return obj

    def _keras(self, content: list) -> Any:
        number, checksum = (expect(x, int) for x in content)
        if number not in self._models:
            self._models[number] = _keras().load(_archive(self._folder, number), checksum)
        return self._models[number]

    def _variable(self, content: dict[str, Any]) -> Any:
        key = content["key"]
        if key not in self._variables:
            variable = Variable(self._tensor(key), trainable=expect(content["trainable"], bool))
            variable._handle_name = expect(content["name"], str)
            self._variables[key] = variable
        return self._variables[key]

    def _tensor(self, key: str) -> Any:
        """A value; each may be used only once, or a small file could fill the memory with copies."""
        if expect(key, str) in self._used:
            raise ValueError(f"the value {key!r} is used twice")
        self._used.add(key)
        return self._archive.tensor(key)

    def _array(self, key: str) -> Any:
        return np.array(self._tensor(key).numpy())

    def _scalar(self, key: str) -> Any:
        return self._tensor(key).numpy()[()]

    def _dtype(self, name: str) -> Any:
        return dtypes.as_dtype(expect(name, str))

    def _shape(self, sizes: Any) -> Any:
        return _tf.TensorShape(sizes)

    def _spec(self, parts: list) -> Any:
        shape, dtype, name = parts
        return _tf.TensorSpec(self.decode(shape), self._dtype(dtype), name)

    def _function(self, content: dict[str, Any]) -> Any:
        python = self.decode(content["python"])
        if not isinstance(python, (types.FunctionType, types.MethodType)):
            raise ValueError(f"a function of {type(python).__name__}")
        return Function(
            python,
            input_signature=self.decode(content["signature"]),
            autograph=expect(content["autograph"], bool),
        )

    def _calls(self, content: dict[str, Any]) -> Any:
        return self._functions.function(expect(content, dict))

    def _method(self, parts: list) -> Any:
        owner, name = self.decode(parts[0]), expect(parts[1], str)
        # Looked up on the class, so that no property runs.
        attribute = inspect.getattr_static(type(owner), name)
        python = attribute.python_function if isinstance(attribute, Function) else attribute
        if not isinstance(owner, Module) or not isinstance(python, types.FunctionType):
            raise ValueError(f"{name!r} is not a method of a module")
        return types.MethodType(python, owner)

    def _dict(self, pairs: list) -> Any:
        return {self.decode(k): self.decode(v) for k, v in pairs}

    def _list(self, items: list) -> Any:
        return [self.decode(v) for v in expect(items, list)]

    def _tuple(self, items: list) -> Any:
        return tuple(self.decode(v) for v in expect(items, list))

    def _name(self, name: str) -> Any:
        value = stored_names.allowed(expect(name, str))
        if value is None:
            raise stored_names.unknown(
                name, "is neither an op of gradtape nor a function beside a class of this program"
            )
        return value

    # All that a folder can contain.
    KINDS: dict[str, Callable[[_Reader, Any], Any]] = {
        "object": _object, "variable": _variable, "tensor": _tensor, "array": _array, "scalar": _scalar,
        "dtype": _dtype, "shape": _shape, "spec": _spec, "function": _function, "method": _method,
        "dict": _dict, "list": _list, "tuple": _tuple, "name": _name, "keras": _keras, "calls": _calls,
    }  # fmt: skip


def contains_saved_model(export_dir: Any) -> bool:
    """Whether a folder holds a stored module, of ours or TensorFlow's."""
    folder = os.fspath(export_dir)
    return any(
        os.path.isfile(os.path.join(folder, n))
        for n in (_FILE, SAVED_MODEL_FILENAME_PB, SAVED_MODEL_FILENAME_PBTXT)
    ) or _export.has_functions(folder)


__getattr__, __dir__ = _absent.of("saved_model")
