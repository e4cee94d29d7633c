"""Runs a function written by `concrete.export`. Needs jax, numpy and flatbuffers; this file may be copied anywhere.

f = load("folder")
results = f(x)              # arrays in the order of the arguments, or by name: f(x=x)
"""

import hashlib
import json
import os
from typing import Any

import jax
import jax.export
import numpy as np

try:
    from jax import enable_x64
except ImportError:  # before JAX 0.9
    from jax.experimental import enable_x64  # type: ignore[attr-defined, no-redef]


def load(folder: str) -> Any:
    """The function in a folder."""
    return Loaded(folder)


class Loaded:
    """A function of arrays; `variables` are its variables by name, if they were exported as inputs."""

    def __init__(self, folder: str) -> None:
        with open(os.path.join(folder, "description.json")) as f:
            self.description = json.load(f)
        with open(os.path.join(folder, "function.bin"), "rb") as f:
            program = f.read()
        if hashlib.sha256(program).hexdigest() != self.description["sha256"]:
            raise ValueError(f"function.bin in {folder} is not what description.json describes")
        self.exported = jax.export.deserialize(bytearray(program))
        self.variables: dict[str, Any] = {}
        if self.description["variables"]:
            with np.load(os.path.join(folder, "variables.npz")) as values:
                for v in self.description["variables"]:
                    self.variables[v["name"]] = _as(values[v["name"]], v["dtype"])

    def __call__(self, *args: Any, seed: int | None = None, **kwargs: Any) -> Any:
        """The results. `seed`: the seed of random numbers in the function, if it draws any; by default different
        each time."""
        about = self.description
        one_each = len(args) + len(kwargs) == len(about["inputs"]) and not any(
            isinstance(x, dict) for x in args
        )
        given = list(args) if one_each else jax.tree.leaves(args)
        given += [kwargs.pop(x["name"]) for x in about["inputs"][len(given) :] if x["name"] in kwargs]
        if kwargs or len(given) != len(about["inputs"]):
            raise TypeError(f"{about['name']} takes {[x['name'] for x in about['inputs']]}")
        arrays = [
            x if isinstance(x, jax.Array) else np.asarray(x, jax.numpy.dtype(i["dtype"]))
            for x, i in zip(given, about["inputs"], strict=True)
        ]
        for x, i in zip(arrays, about["inputs"], strict=True):
            for n, size in zip(x.shape, i["shape"], strict=False):
                least, most = about["least_sizes"].get(size, n), about["most_sizes"].get(size, n)
                if not least <= n <= most:
                    raise ValueError(
                        f"{i['name']}: {size} is from {least} to {most}; got the shape {x.shape}"
                    )
        arrays += self.variables.values()
        if about["streams"]:
            arrays.append(_streams(about["streams"], seed))
        with enable_x64(True):
            results = list(self.exported.call(*arrays))
        status = int(results.pop()) if about["status"] else 0
        if status & 1:
            raise ValueError(f"{about['name']}: an index is out of range, or a divisor is zero")
        if status:
            raise ValueError(f"{about['name']}: a loop took more than {about['iterations']} iterations")
        for v in about["variables"]:
            if v["output"] is not None:
                self.variables[v["name"]] = results[v["output"]]
        return _packed(about["outputs"], results)


def _packed(structure: Any, results: list) -> Any:
    """The results in lists, tuples and dictionaries."""
    if isinstance(structure, int):
        return results[structure]
    ((kind, parts),) = structure.items()
    if kind == "value":
        return parts
    if kind == "dict":
        return {k: _packed(s, results) for k, s in parts.items()}
    packed = [_packed(s, results) for s in parts]
    return tuple(packed) if kind == "tuple" else packed


def _streams(count: int, seed: int | None) -> Any:
    """The initial streams of random numbers: a 128-bit key and a counter for each op that draws."""
    streams = np.random.default_rng(seed).integers(0, 2**62, (count, 3))
    streams[:, 2] = 0
    return streams


def _as(array: Any, dtype: Any) -> Any:
    """An array of a type that NumPy may not know: bfloat16 is stored as bytes."""
    dtype = jax.numpy.dtype(dtype)
    return array.view(dtype) if array.dtype.kind == "V" else array.astype(dtype, copy=False)
