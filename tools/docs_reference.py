"""The API reference for `make docs`: one Markdown page per namespace, from signatures and docstrings.

Ops are native objects without a Python function behind them, so their signatures come from the op table; and
docstrings here are Markdown, which Sphinx' own autodoc does not read. An object is described once, under its first
name in `NAMESPACES`; its other names link there.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from gradtape._core import Op
from gradtape._src import ops
from gradtape._src.public import absent

# Namespaces in the order of the reference. Of several names of one object, the first here is its own; names
# directly under `tf` come after those of the mathematical namespaces.
NAMESPACES = {
    "math": "Element-wise functions, reductions, scans, segments.",
    "math.special": "Bessel functions, integrals and the like.",
    "nn": "Activations, convolutions, pooling, normalisation, losses.",
    "nn.experimental": "Dropout with seeds of its own.",
    "linalg": "Products, factorisations, solvers, norms; matrices as operators.",
    "linalg.experimental": "Solvers for operators.",
    "ragged": "Tensors whose rows have different lengths.",
    "signal": "Fourier transforms, windows, frames, spectrograms.",
    "bitwise": "Integers as bits.",
    "quantization": "Rounding to few bits, with gradients.",
    "sets": "Set operations on the rows of a tensor.",
    "sparse": "Tensors of which only the elements that are not 0 are kept.",
    "": "GradientTape, tensors, variables, functions, shapes, control flow.",
    "autodiff": "Forward mode, Jacobians, Hessians, implicit and per-example gradients.",
    "debug": "Why a gradient is None, and which op made the first NaN.",
    "random": "Random numbers: TensorFlow's, bit for bit.",
    "random.experimental": "Further names of generators and stateless functions.",
    "optimizers": "Optimizers without Keras.",
    "optimizers.schedules": "Learning rates that change.",
    "initializers": "First values of variables.",
    "data": "Input pipelines.",
    "data.experimental": "Further sources and transformations.",
    "train": "Checkpoints, moving averages, examples.",
    "train.experimental": "State of objects that are not variables.",
    "image": "Resizing, cropping, colours, boxes, measures of similarity.",
    "io": "Files, records, encoded images.",
    "io.gfile": "Files and folders.",
    "strings": "Functions of strings.",
    "audio": "WAV files.",
    "lookup": "Tables from keys to values.",
    "lookup.experimental": "Tables that programs write to.",
    "summary": "Event files for TensorBoard.",
    "summary.experimental": "The step of summaries.",
    "saved_model": "Modules, saved with their class and variables.",
    "export": "Functions that were exported as StableHLO.",
    "config": "Threads, memory, determinism, devices.",
    "config.experimental": "Further settings, most without effect on a CPU.",
    "debugging": "Assertions, and checks for NaN.",
    "dtypes": "Element types.",
    "errors": "Exceptions.",
    "nest": "Structures of tensors: lists, tuples, dicts.",
    "autograph": "How `if`, `while` and `for` become part of a graph.",
    "autograph.experimental": "Settings of single functions and loops.",
    "xla.experimental": "Scopes for XLA.",
    "distribute": "Strategies: replicas on several devices, and in several processes.",
    "distribute.experimental": "Further strategies.",
    "distribute.experimental.partitioners": "Cuts of large variables.",
    "distribute.cluster_resolver": "Descriptions of clusters.",
    "distribute.coordinator": "The coordinator of parameter servers.",
    "experimental": "Classes of one's own that are made of tensors, and what ops mean for them.",
    "experimental.extension_type": "Fields of extension types.",
    "experimental.dlpack": "The same under TensorFlow's names.",
    "experimental.numpy": "NumPy's names and conventions.",
    "experimental.numpy.random": "NumPy's random functions.",
    "test": "Test cases and gradient checks, as in TensorFlow.",
    "test.experimental": "What tests synchronise on.",
    "testing": "The contract that every op is held to.",
    "types.experimental": "Types for annotations.",
    "profiler.experimental": "Accepted, without effect.",
    "tpu.experimental": "Accepted, without effect.",
    "lite": "Names of TensorFlow Lite, for `isinstance`.",
    "raw_ops": "Ops under the names of TensorFlow's kernels, with keyword arguments only.",
    "sysconfig": "How this build was made.",
    "version": "Versions.",
    "compat": "Text, bytes and dimensions in both versions of Python and of TensorFlow.",
    "compat.v1": "What programs in eager mode use of TensorFlow 1.",
    "compat.v1.sparse": "Functions on sparse tensors with the arguments of TensorFlow 1.",
}  # fmt: skip

# Keras documents itself, and compat.v2 is tf once more.
ELSEWHERE = ("keras", "losses", "metrics", "compat.v2")

# Names that a module creates on access, besides those in gradtape/_src/public/absent.py.
LATE = frozenset(("test.TestCase",))


_SECTION = re.compile(r"^(Args|Arguments|Returns|Raises|Yields|Attributes|Examples?|Note|Notes)\b([^:`]*):$")
_ITEM = re.compile(r"^(\*{0,2}\w[\w.*, ]*?)(?: \([^)]*\))?: (.*)$")


class Entry(NamedTuple):
    """A public object: its own name, without `tf.`, the object, and its other names."""

    name: str
    value: Any
    aliases: tuple[str, ...]


def namespace(name: str) -> Any:
    """The module of a namespace, or the class that serves as one."""
    value: Any = importlib.import_module("gradtape")
    for part in name.split(".") if name else ():
        value = getattr(value, part)
    return value


def public_names(name: str) -> list[str]:
    """The public names of a namespace, other than namespaces."""
    where = namespace(name)
    prefix = name + "." if name else ""
    late = {n.removeprefix(prefix) for n in LATE.union(absent._ELSEWHERE) if n.rpartition(".")[0] == name}
    table = {n.removeprefix(prefix) for n in ops.PUBLIC if n.rpartition(".")[0] == name}
    listed = getattr(where, "__all__", None)
    # A module without a list: names defined in the package, and not those that its file imports.
    own = listed if listed is not None else [n for n, v in vars(where).items() if _belongs(where, name, n, v)]
    names = {n for n in {*own, *late, *table} if not n.startswith("_")}
    return sorted((n for n in names if not _is_namespace(prefix + n)), key=lambda n: (n.lower(), n))


def _is_namespace(full: str) -> bool:
    return full in NAMESPACES or full in ELSEWHERE or isinstance(namespace(full), types.ModuleType)


def _belongs(where: Any, space: str, name: str, value: Any) -> bool:
    if name.startswith("_") or isinstance(value, types.ModuleType):
        return False
    if hasattr(where, "__all__"):
        return name in where.__all__
    home = getattr(value, "__module__", None)
    if not isinstance(where, types.ModuleType) or not getattr(where, "__file__", None):
        return True  # made in code: a class, or a module with given contents
    if not isinstance(home, str):  # a constant
        return isinstance(value, (int, float, str)) or name == "newaxis"
    # The package itself gathers what is defined in its modules.
    return home == where.__name__ or home.startswith(where.__name__ + ".")


def entries() -> list[Entry]:
    """Every public object once, in the order of the namespaces."""
    out: dict[Any, tuple[str, Any, list[str]]] = {}
    for space in NAMESPACES:
        for name in public_names(space):
            full = f"{space}.{name}" if space else name
            value = namespace(full)
            constant = not callable(value) and not inspect.isclass(value)
            key = full if constant else id(value)
            if key in out:
                out[key][2].append(full)
            else:
                out[key] = full, value, []
    return [Entry(name, value, tuple(others)) for name, value, others in out.values()]


def signature(value: Any) -> str:
    """`(x, axis=None)`, or "" for an object that is not callable or has no signature."""
    if isinstance(value, Op):
        params = value.row.params
        parts = [p.name if p.default is ... else f"{p.name}={p.default!r}" for p in params]
        return f"({', '.join(parts)})"
    try:
        full_signature = inspect.signature(value)
    except (TypeError, ValueError):
        return "(*args, **kwargs)" if callable(value) and not inspect.isclass(value) else ""
    plain = [_plain(p) for p in full_signature.parameters.values() if p.name not in ("self", "cls")]
    return str(full_signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))


class _Text(str):
    """A default value that is shown as this text."""

    def __repr__(self) -> str:
        return str(self)


def _plain(p: inspect.Parameter) -> inspect.Parameter:
    default = p.default
    if isinstance(default, enum.Enum):
        default = _Text(f"{type(default).__name__}.{default.name}")
    elif default is not p.empty and re.search(r" at 0x|^<", repr(default)):
        default = _Text(getattr(default, "__name__", "..."))
    return p.replace(annotation=p.empty, default=default)


def sentence(value: Any) -> str:
    """The first sentence of a docstring, on one line; of a constant its value."""
    if not callable(value):
        return f"`{value!r}`"
    text = docstring(value).partition("\n\n")[0].replace("\n", " ")
    return re.split(r"(?<=[a-z0-9`)\]])\. (?=[A-Z`])", text)[0].rstrip(".:") + "." if text else ""


def docstring(value: Any) -> str:
    """The docstring of an object; for a constant, its value."""
    if not callable(value) and not isinstance(value, property) and not inspect.isdatadescriptor(value):
        return ""
    return inspect.cleandoc(value.__doc__) if value.__doc__ else ""


def markdown(text: str) -> str:
    """A docstring as Markdown: sections become lists, examples become blocks."""
    out: list[str] = []
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        line = lines[at]
        section = _SECTION.match(line)
        if section:
            body, at = _indented(lines, at + 1)
            title = section[1] + section[2]
            if section[1] in ("Args", "Arguments", "Raises", "Attributes"):
                out += ["", f"**{title}**", "", *_items(body), ""]
            else:
                out += ["", f"**{title}**", "", markdown("\n".join(body)), ""]
        elif line.startswith(">>>"):
            block = []
            while at < len(lines) and lines[at].strip():
                block.append(lines[at])
                at += 1
            out += ["", "```pycon", *block, "```", ""]
        else:
            out.append(line)
            at += 1
    return "\n".join(out).strip()


def _indented(lines: list[str], at: int) -> tuple[list[str], int]:
    end = at
    while end < len(lines) and (not lines[end].strip() or lines[end].startswith(" ")):
        end += 1
    return inspect.cleandoc("\n" + "\n".join(lines[at:end])).splitlines(), end


def _items(body: list[str]) -> Iterator[str]:
    for line in body:
        item = _ITEM.match(line)
        if item:
            yield f"- `{item[1]}`: {item[2]}"
        elif line.strip():
            yield "  " + line.strip()


def members(cls: type, described: set[int]) -> Iterator[tuple[str, Any]]:
    """Public members of a class, and of its bases that are not described themselves."""
    seen = set()
    for base in cls.__mro__:
        if not base.__module__.startswith("gradtape") or base is not cls and id(base) in described:
            continue
        for name, value in vars(base).items():
            # A method without a docstring does what the one it overrides does; slots are listed as attributes.
            repeated = not docstring(plain_member(value)) and any(name in vars(b) for b in base.__mro__[1:])
            hidden = repeated or inspect.ismemberdescriptor(value) or _is_refusal(value)
            if not name.startswith("_") and name not in seen and not hidden:
                seen.add(name)
                yield name, value


def plain_member(member: Any) -> Any:
    return inspect.unwrap(member.__func__ if isinstance(member, (classmethod, staticmethod)) else member)


def _is_refusal(member: Any) -> bool:
    """Attributes that exist to raise an error with a hint: descriptors that are no function or property."""
    plain = plain_member(member)
    return hasattr(type(plain), "__get__") and not callable(plain) and not inspect.isdatadescriptor(plain)


def _describe(entry: Entry, described: set[int]) -> Iterator[str]:
    full, value = "tf." + entry.name, entry.value
    others = ", ".join(f"`tf.{name}`" for name in entry.aliases if not name.startswith("compat."))
    also = f"Also {others}." if others else ""
    if inspect.isclass(value):
        yield f"::::{{py:class}} {full}{signature(value)}"
        bases = [b for b in value.__bases__ if id(b) in described and b is not object]
        if bases:
            also = f"Is a `{_name_of(bases[0])}`. {also}"
        yield from (also, "", markdown(docstring(value)), "")
        for name, member in sorted(members(value, described), key=lambda m: m[0].lower()):
            yield from _describe_member(name, member)
        yield from ("::::", "")
    elif callable(value):
        yield from (
            f"::::{{py:function}} {full}{signature(value)}",
            also,
            "",
            markdown(docstring(value)),
            "::::",
            "",
        )
    else:
        yield from (f"::::{{py:data}} {full}", also, "", f"`{value!r}`", "::::", "")


_NAMES: dict[int, str] = {}


def _name_of(value: Any) -> str:
    if not _NAMES:
        _NAMES.update({id(e.value): "tf." + e.name for e in entries()})
    return _NAMES[id(value)]


def _describe_member(name: str, member: Any) -> Iterator[str]:
    plain = plain_member(member)
    if callable(plain) and not inspect.isclass(plain):
        call = "(" + re.sub(r"^\((self|cls)(, )?", "", signature(plain)).lstrip("(")
        kind = "classmethod" if isinstance(member, classmethod) else "method"
        yield f":::{{py:{kind}}} {name}{call or '()'}"
    elif isinstance(plain, property) or inspect.isdatadescriptor(plain):
        yield f":::{{py:property}} {name}"
    else:
        yield f":::{{py:attribute}} {name}"
    yield from (markdown(docstring(plain)), ":::", "")


def aliases() -> dict[str, str]:
    """Each public name, with `tf.`, and the name that its object is described under."""
    return {f"tf.{n}": f"tf.{e.name}" for e in entries() for n in (e.name, *e.aliases)}


def write(folder: Path) -> None:
    """Writes the pages of the reference into `folder`."""
    everything = entries()
    described = {id(e.value) for e in everything if inspect.isclass(e.value)}
    own = {n: e for e in everything for n in (e.name, *e.aliases)}
    for space, words in NAMESPACES.items():
        title = f"tf.{space}" if space else "tf"
        lines = [f"# {title}", "", words, "", "| | |", "|---|---|"]
        full_names = [f"{space}.{n}" if space else n for n in public_names(space)]
        for name in full_names:
            short, target = name.rpartition(".")[2], own[name].name
            lines.append(
                f"| {{py:obj}}`{short} <tf.{target}>` | {sentence(own[name].value).replace('|', chr(92) + '|')} |"
            )
        lines.append("")
        for name in full_names:
            if own[name].name == name:
                lines += _describe(own[name], described)
        (folder / f"{space or 'tf'}.md").write_text("\n".join(lines) + "\n")


def contents() -> str:
    """The list of namespaces, for the first page of the reference."""
    order = ["", *(space for space in NAMESPACES if space)]
    rows = [f"| [tf{'.' + s if s else ''}]({s or 'tf'}.md) | {NAMESPACES[s]} |" for s in order]
    tree = [f"tf{'.' + s if s else ''} <{s or 'tf'}>" for s in order]
    return "\n".join(["| | |", "|---|---|", *rows, "", "```{toctree}", ":hidden:", "", *tree, "```"])
