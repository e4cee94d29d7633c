"""Functions as files that run without gradtape: StableHLO, written by `jax.export`.

A folder holds

    function.bin        the program, for every requested platform
    description.json    names, shapes and types of arguments and results, and the structure of the results
    load.py             runs it, with only jax and numpy
    variables.npz       the values of variables, if they are inputs

Nothing is written without being run: `exporter.py` makes the program and compares it with native code.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape._src.base import errors
from gradtape._src.base.shape import TensorSpec
from gradtape._src.engines.xla import load as loader
from gradtape._src.engines.xla.any_size import refused
from gradtape._src.engines.xla.exporter import Axis, Exporter, Frozen, Shape

PLATFORMS = ("cpu", "cuda", "tpu")
_KNOWN = (*PLATFORMS, "rocm")
_NAME = re.compile(r"\s*(?:(\d+)\s*\*\s*)?([A-Za-z_]\w*)\s*\Z")


def export(
    concrete: Any,
    path: Any,
    shapes: dict[str, str] | None = None,
    platforms: Sequence[str] = PLATFORMS,
    variables: str = "frozen",
    seed: int | None = None,
    max_iterations: int = 64,
    overwrite: bool = False,
    max_size: int = 65_536,
) -> None:
    """Writes a concrete function to a folder; see `ConcreteFunction.export`."""
    folder = os.path.abspath(os.fspath(path))
    if os.path.exists(folder) and not overwrite:
        raise errors.AlreadyExistsError(
            None, None, f"export: {folder} exists already. Hint: another path, or overwrite=True."
        )
    unknown = [p for p in platforms if p not in _KNOWN]
    if unknown or not platforms or isinstance(platforms, str):
        raise ValueError(f"export: platforms must be a list of {', '.join(_KNOWN)}; got {platforms!r}.")
    if variables not in ("frozen", "inputs"):
        raise ValueError(f'export: variables must be "frozen" or "inputs"; got {variables!r}.')
    if concrete.placeholders or concrete.proxies:
        what = "datasets" if concrete.placeholders else "variables"
        raise refused(None, f"{concrete.name} takes {what} as arguments; expected tensors.")
    settings = platforms, variables == "frozen", seed, max_iterations, max_size
    for named in (alternatives := _named(concrete, shapes)):
        try:
            exporter = Exporter(concrete, named, *settings)
            exported = exporter.checked()
            break
        except Frozen:
            raise
        except Exception:
            if named is alternatives[-1]:
                raise
    _write(folder, exporter, exported)


def _named(concrete: Any, shapes: dict[str, str] | None) -> list[list[Shape]]:
    """Shapes of the arguments, as given; or with a name for each size, or if that fails with one for all first axes."""
    inputs = [(n, kind) for n, kind in concrete.function_type.inputs if isinstance(kind, TensorSpec)]
    unranked = [n for n, kind in inputs if kind.shape.rank is None and n not in (shapes or ())]
    if unranked:
        raise ValueError(
            f"export: the rank of {unranked} is not known. Hint: shapes={{'{unranked[0]}': 'batch, 4'}}."
        )
    if shapes is not None:
        return [_given_shapes(inputs, shapes)]
    one_by_one = [_named_shape(n, kind.shape.as_list(), "") for n, kind in inputs]
    together = [_named_shape(n, kind.shape.as_list(), "batch") for n, kind in inputs]
    several = sum(isinstance(s[0], Axis) for s in one_by_one if s) > 1
    return [one_by_one, together] if several else [one_by_one]


def _named_shape(name: str, sizes: Sequence[int | None], first: str) -> Shape:
    base = re.sub(r"\W+", "_", name).strip("_") or "x"
    base = base if base[0].isalpha() or base[0] == "_" else f"x_{base}"
    return tuple(
        Axis(1, first if first and k == 0 else f"{base}_{k}") if size is None else size
        for k, size in enumerate(sizes)
    )


def _given_shapes(inputs: Sequence[tuple[str, TensorSpec]], shapes: dict[str, str]) -> list[Shape]:
    """Shapes given by the user as "batch, 16*h, 3"; the others from the signature."""
    extra = set(shapes) - {n for n, _ in inputs}
    if extra:
        raise ValueError(f"export: shapes names {sorted(extra)}; the arguments are {[n for n, _ in inputs]}.")
    out = []
    for name, kind in inputs:
        if name not in shapes:
            out.append(_named_shape(name, kind.shape.as_list(), ""))
            continue
        parts: list[Any] = []
        for word in filter(str.strip, shapes[name].strip("() ").split(",")):
            symbol = _NAME.match(word)
            if symbol is None and not word.strip().isdigit():
                raise ValueError(
                    f"export: a size in shapes[{name!r}] is {word.strip()!r}; expected a number, a name, or such as 8*n."
                )
            parts.append(Axis(int(symbol[1] or 1), symbol[2]) if symbol else int(word))
        sizes = [p if type(p) is int else None for p in parts]
        if not kind.shape.is_compatible_with(sizes):
            raise ValueError(
                f"export: shapes[{name!r}] is {shapes[name]!r}; the signature says {kind.shape}."
            )
        out.append(tuple(parts))
    return out


def _write(folder: str, exporter: Exporter, exported: Any) -> None:
    """Writes all files, or none."""
    try:
        program = exported.serialize()
    except ImportError as e:
        raise ImportError(
            f'export: {e}. Hint: pip install "gradtape[xla]" has what JAX needs to write files.'
        ) from e
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    temporary = tempfile.mkdtemp(prefix=".export-", dir=os.path.dirname(folder))
    try:
        os.chmod(temporary, 0o755)
        with open(os.path.join(temporary, "function.bin"), "wb") as f:
            f.write(program)
        with open(os.path.join(temporary, "description.json"), "w") as text:
            json.dump(
                exporter.description() | {"sha256": hashlib.sha256(program).hexdigest()}, text, indent=1
            )
        with open(os.path.join(temporary, "load.py"), "w") as text:
            text.write(inspect.getsource(loader))
        if exporter.variables:
            np.savez(os.path.join(temporary, "variables.npz"), **exporter.values())  # type: ignore[arg-type]
        if os.path.exists(folder):
            shutil.rmtree(folder)
        os.rename(temporary, folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
