"""Compiles and links the core for a system that is not at hand, macOS: `make systems`.

    python tools/other_systems.py              # macos
    python tools/other_systems.py windows      # lists the files that do not compile there

The compiler is PyPI's `ziglang`, which is clang with headers and libraries of many systems. Every file of the core is
compiled with warnings as errors, for the processor's plainest level, with the flags that CMake has for it, and all are
linked into one module, which nobody runs: what this finds is code that only Linux with glibc and libstdc++ understands.
The headers of Python are this interpreter's. A run that passes writes its row of docs/platforms.md, as those of
tools/platforms.py do.

Windows is not supported. musl can be run here: `make musl`.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import platforms

OBJECTS = platforms.CACHE / "other-systems"

# Of zig: the triple, how a module of Python is linked there, and what the row says of processor and C library.
SYSTEMS = {
    "macos": ("aarch64-macos", ["-shared", "-undefined", "dynamic_lookup"], "aarch64", "libSystem"),
    "windows": ("x86_64-windows-gnu", [], "x86-64", "MinGW"),
}


def zig() -> Path:
    spec = find_spec("ziglang")
    if spec is None or not spec.submodule_search_locations:
        raise platforms.Failed("there is no ziglang. Hint: .venv/bin/python -m pip install ziglang")
    return Path(spec.submodule_search_locations[0], "zig")


def sources() -> dict[Path, list[str]]:
    """Every file of the core, and of nanobind in it, with the flags that CMakeLists.txt gives it."""
    tools = Path(sys.executable).parent
    folder = OBJECTS / "commands"
    platforms.run(
        tools / "cmake", "-S", platforms.ROOT, "-B", folder, "-G", "Ninja", "--log-level=WARNING",
        f"-DCMAKE_MAKE_PROGRAM={tools / 'ninja'}", f"-DCMAKE_CXX_COMPILER={zig()};c++",
        "-DCMAKE_CXX_COMPILER_LAUNCHER=", f"-DPython_EXECUTABLE={sys.executable}", "-DCMAKE_BUILD_TYPE=Release",
        "-DGRADTAPE_ISA_LEVELS=1", "-DGRADTAPE_WERROR=ON", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
    )  # fmt: skip
    found = {}
    for entry in json.loads((folder / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])  # zig c++ FLAGS -o OBJECT -c FILE
        # -m...: nanobind's, for this machine's processor.
        flags = [word for word in words[2 : words.index("-o")] if not word.startswith("-m")]
        found[Path(entry["file"])] = flags
    return found


def compile_all(system: str) -> tuple[list[Path], list[str]]:
    """The objects, and what the compiler said where it made none."""
    triple = SYSTEMS[system][0]
    folder = OBJECTS / system
    folder.mkdir(parents=True, exist_ok=True)

    def one(item: tuple[Path, list[str]]) -> tuple[Path, str]:
        path, flags = item
        made = folder / f"{path.parent.name}_{path.stem}.o"
        command = [zig(), "c++", "-target", triple, *flags, "-O1", "-c", path, "-o", made]  # it is not run
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        return made, f"{path.name}: {done.stderr.strip()}" if done.returncode else ""

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(one, sources().items()))
    return [made for made, said in results if not said], [said for _, said in results if said]


def compiled(system: str) -> None:
    """Compiles, links and writes the row.

    Raises:
      Failed: if one of the files is refused, or what they make together.
    """
    triple, how, processor, libc = SYSTEMS[system]
    objects, refused = compile_all(system)
    if refused or not how:
        said = "\n".join(refused) or "it compiles; how to link it is not written here yet"
        raise platforms.Failed(
            f"{len(refused)} of {len(refused) + len(objects)} files do not compile:\n{said}"
        )
    module = OBJECTS / system / "_core.so"
    platforms.run(zig(), "c++", "-target", triple, *how, *objects, "-o", module)
    version = platforms.output(zig(), "c++", "--version").splitlines()[0]
    row = platforms.make_row(
        platforms.HERE, f"{system}, compiled", processor, platforms.compiler_name(version), Path(sys.executable),
        "compiled and linked, not run",
    )  # fmt: skip
    platforms.keep(row._replace(libc=libc))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("systems", nargs="*", help=", ".join(SYSTEMS))
    for system in parser.parse_args().systems or ("macos",):
        try:
            compiled(system)
        except platforms.Failed as e:
            sys.exit(f"make systems: {system}: {e}")


if __name__ == "__main__":
    main()
