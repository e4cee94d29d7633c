"""Compiles and links the core for systems that are not at hand: musl and macOS. `make systems`.

    python tools/other_systems.py              # both
    python tools/other_systems.py macos        # one of them

The compiler is PyPI's `ziglang`, which is clang with headers and libraries of many systems. Every file of the core is
compiled with warnings as errors, for the processor's plainest level, and all are linked into one module, which nobody
runs: what this finds is code that only Linux with glibc and libstdc++ understands. The headers of Python are this
interpreter's. A run that passes writes its row of docs/platforms.md, as tools/platforms.py does.

Windows is not among them: `windows` can be asked for, compiles file by file, and lists what does not.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import platforms

CORE = platforms.ROOT / "core"
OBJECTS = platforms.CACHE / "other-systems"

# As CMakeLists.txt has them; -O1, because the code is not run.
COMMON = "-std=c++20 -fPIC -fvisibility=hidden -O1 -Wall -Wextra -Werror -Wno-deprecated-declarations".split()
KERNELS = (
    "-Dgt=gt_v1 -DGT_ISA_LEVEL=1 -fno-exceptions -fno-math-errno -fno-trapping-math -fopenmp-simd "
    "-fcx-limited-range -Wno-pass-failed"
).split()
PLAINEST = ["-DGT_ISA_COPIES=GT_COPY(1)"]

# Of zig: the triple, how a module of Python is linked there, and what the row says of processor and C library.
SYSTEMS = {
    "musl": ("x86_64-linux-musl", ["-shared"], "x86-64", "musl"),
    "macos": ("aarch64-macos", ["-shared", "-undefined", "dynamic_lookup"], "aarch64", "libSystem"),
    "windows": ("x86_64-windows-gnu", [], "x86-64", "MinGW"),
}


def zig() -> list[str]:
    if find_spec("ziglang") is None:
        raise platforms.Failed("there is no ziglang. Hint: .venv/bin/python -m pip install ziglang")
    return [sys.executable, "-m", "ziglang", "c++"]


def sources() -> dict[Path, list[str]]:
    """Every file of the core, with its flags."""
    headers = [sysconfig.get_path("include"), str(Path(nanobind_folder(), "include"))]
    includes = [f"-I{CORE}", *(f"-isystem{folder}" for folder in headers)]
    found = {
        path: [*includes, *PLAINEST]
        for part in ("", "ops", "py")
        for path in sorted((CORE / part).glob("*.cpp"))
    }
    return found | {path: [f"-I{CORE}", *KERNELS] for path in sorted((CORE / "kernels").glob("*.cpp"))}


def nanobind_folder() -> str:
    spec = find_spec("nanobind")
    if spec is None or not spec.submodule_search_locations:
        raise platforms.Failed("there is no nanobind. Hint: make dev")
    return spec.submodule_search_locations[0]


def compile_all(system: str) -> tuple[list[Path], list[str]]:
    """The objects, and what the compiler said where it made none."""
    triple = SYSTEMS[system][0]
    folder = OBJECTS / system
    folder.mkdir(parents=True, exist_ok=True)

    def one(item: tuple[Path, list[str]]) -> tuple[Path, str]:
        path, flags = item
        made = folder / "_".join(path.relative_to(CORE).with_suffix(".o").parts)
        command = [*zig(), "-target", triple, *COMMON, *flags, "-c", path, "-o", made]
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
    nanobind = objects[0].parent / "nanobind.o"
    combined = Path(nanobind_folder(), "src", "nb_combined.cpp")
    robin = Path(nanobind_folder(), "ext", "robin_map", "include")
    quiet = ["-std=c++17", "-fPIC", "-fvisibility=hidden", "-O1", f"-I{robin}", "-DNB_COMPACT_ASSERTIONS"]
    headers = [f"-isystem{sysconfig.get_path('include')}", f"-I{Path(nanobind_folder(), 'include')}"]
    platforms.run(*zig(), "-target", triple, *quiet, *headers, "-c", combined, "-o", nanobind)
    platforms.run(*zig(), "-target", triple, *how, *objects, nanobind, "-o", nanobind.parent / "_core.so")
    version = platforms.output(*zig(), "--version").splitlines()[0]
    row = platforms.make_row(
        platforms.HERE, f"{system}, compiled", processor, platforms.compiler_name(version), Path(sys.executable),
        "compiled and linked, not run",
    )  # fmt: skip
    platforms.keep(row._replace(libc=libc))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("systems", nargs="*", help=", ".join(SYSTEMS))
    for system in parser.parse_args().systems or ("musl", "macos"):
        try:
            compiled(system)
        except platforms.Failed as e:
            sys.exit(f"make systems: {system}: {e}")


if __name__ == "__main__":
    main()
