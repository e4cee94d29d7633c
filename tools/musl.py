"""CPython for musl, from Debian's source package, and the tests in it: `make musl`.

    python tools/musl.py                  # interpreter, packages, core, the fast half of the tests
    python tools/musl.py --only-python    # no more than the interpreter

There is no CPython for musl in Debian or on PyPI. This one is compiled by PyPI's `ziglang`, which is clang with musl's
headers, and runs here through the loader of Debian's package `musl`: interpreter, zlib and libffi go into
~/.cache/gradtape-pythons/3.13-musl (three minutes on two cores, once). NumPy and OpenBLAS are PyPI's wheels for musl.
The core is built with all of its instruction sets, warnings as errors. Its C++ library is zig's libc++, linked
into it; Alpine's wheels have libstdc++. No package of the machine is changed. A run that passes writes its row of
docs/platforms.md.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import free_threaded
import other_systems
import platforms

VERSION, SUITE = "3.13", "trixie"
HOME = free_threaded.CACHE / f"{VERSION}-musl"
PYTHON = HOME / "bin" / f"python{VERSION}"
LOADER = HOME / "loader" / "usr" / "lib" / "ld-musl-x86_64.so.1"
TRIPLE = "x86_64-linux-musl"
PACKAGES = (*platforms.NEEDED, *(p for p in platforms.BUILD if p.startswith("nanobind")))

# As Alpine compiles it: threads of musl have 128 kB of stack if nobody asks for more.
STACK = "-DTHREAD_STACK_SIZE=0x100000"


def compilers() -> tuple[Path, Path]:
    """Programs that are zig's clang for musl: CMake and configure want each to be one word."""
    zig = other_systems.zig()
    made = []
    for name in ("cc", "c++"):
        path = HOME / "compilers" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # Without a level of optimisation zig adds a sanitizer; CPython says when it was compiled.
        text = (
            f"#!/bin/sh\nexec {zig} {name} -target {TRIPLE} -dynamic -fno-sanitize=undefined -Wno-date-time "
            f'-Wl,--dynamic-linker={LOADER} "$@"\n'
        )
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            path.chmod(0o755)
        made.append(path)
    return made[0], made[1]


def packages() -> Path:
    """musl's loader, and the sources of zlib and libffi, of Debian; gives the folder of the archives."""
    into = free_threaded.CACHE / "source" / "musl"
    apt = free_threaded.apt_lists(into, SUITE, "deb", "deb-src")
    free_threaded.run("apt-get", *apt, "-q", "download", "musl", cwd=into)
    free_threaded.run("apt-get", *apt, "-q", "source", "--download-only", "zlib", "libffi", cwd=into)
    return into


def unpack(archive: Path, name: str) -> Path:
    folder = HOME / "build" / name
    folder.mkdir(parents=True)
    free_threaded.run("tar", "-xf", archive, "-C", folder, "--strip-components=1")
    return folder


def interpreter() -> None:
    """CPython, with zlib and libffi linked in, and what else it needs no library for."""
    if (HOME / ".done").exists():
        return
    shutil.rmtree(HOME, ignore_errors=True)  # what was interrupted is not continued
    cc, cxx = compilers()
    archives = packages()
    free_threaded.run("dpkg", "-x", next(archives.glob("musl_*.deb")), HOME / "loader")
    environment = {**os.environ, "CC": str(cc), "CXX": str(cxx), "CFLAGS": "-O2 -fPIC"}
    parts, jobs = HOME / "parts", f"-j{os.cpu_count()}"
    autoreconf = platforms.need(
        "autoreconf", "autoconf automake libtool"
    )  # libffi comes without its configure
    for name, before, static in (
        ("zlib", ["true"], ["--static"]),
        ("libffi", [autoreconf, "-i"], ["-q", "--disable-shared", "--disable-docs"]),
    ):
        folder = unpack(next(archives.glob(f"{name}_*.orig.tar.*")), name)
        configure = ["./configure", f"--prefix={parts}", *static]
        for command in (before, configure, ["make", "-s", jobs, "install"]):
            free_threaded.run(*command, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
    work = HOME / "build" / "python"
    work.mkdir()
    # Libraries are those named here: what pkg-config knows is of this machine's glibc. CPython knows musl by a name
    # that musl's stdarg.h defines, and clang has a stdarg.h of its own.
    found = {
        "CPP": f"{cc} -E -D__DEFINED_va_list",
        "CFLAGS": STACK, "PKG_CONFIG": "false",
        "ZLIB_CFLAGS": f"-I{parts}/include", "ZLIB_LIBS": f"{parts}/lib/libz.a",
        "LIBFFI_CFLAGS": f"-I{parts}/include", "LIBFFI_LIBS": f"{parts}/lib/libffi.a",
    }  # fmt: skip
    free_threaded.run(
        free_threaded.source_of(VERSION) / "configure", "-q", f"--prefix={HOME}", "--without-static-libpython",
        "--disable-test-modules", "--without-ensurepip", cwd=work, env={**environment, **found},
    )  # fmt: skip
    free_threaded.run("make", "-s", jobs, cwd=work, env=environment)
    free_threaded.run("make", "-s", "install", cwd=work, env=environment, stdout=subprocess.DEVNULL)
    shutil.rmtree(HOME / "build")
    (HOME / ".done").touch()


def install() -> None:
    """What the tests need, by this machine's pip: the interpreter has no OpenSSL."""
    done = HOME / "packages.txt"
    wanted = "\n".join(PACKAGES)
    if done.exists() and done.read_text() == wanted:
        return
    folder = HOME / "lib" / f"python{VERSION}" / "site-packages"
    abi = f"cp{VERSION.replace('.', '')}"
    free_threaded.run(
        sys.executable, "-m", "pip", "install", "-q", "--upgrade", "--target", folder, "--only-binary=:all:",
        "--platform", "musllinux_1_2_x86_64", "--platform", "musllinux_1_1_x86_64", "--python-version", VERSION,
        "--implementation", "cp", "--abi", abi, "--abi", "abi3", "--abi", "none", *PACKAGES,
    )  # fmt: skip
    done.write_text(wanted)


def build(source: Path) -> None:
    """The core and the native checks; CMake and ninja are this machine's, and ask the interpreter for musl."""
    _, cxx = compilers()
    base = platforms.base_python(sys.executable)
    tools = platforms.environment(platforms.HERE, base, "cross", platforms.BUILD)
    tag = f"cp{VERSION.replace('.', '')}"
    # What __builtin_cpu_supports reads is in gcc's library, as on Alpine, and in clang's, but not in zig's.
    libgcc = platforms.output(platforms.need("g++", "g++"), "-print-libgcc-file-name")
    platforms.build(
        platforms.HERE, source, tools, str(cxx), f"-DPython_EXECUTABLE={PYTHON}",
        f"-DCMAKE_CXX_STANDARD_LIBRARIES={libgcc}", tag=tag,
    )  # fmt: skip


def version_of_musl() -> str:
    """As its loader says, which ends with 1 if it is to load nothing."""
    said = subprocess.run([LOADER], capture_output=True, text=True).stderr
    return next(line.split()[1] for line in said.splitlines() if line.startswith("Version"))


def main(arguments: list[str]) -> None:
    interpreter()
    if "--only-python" in arguments:
        print(PYTHON)
        return
    install()
    source = platforms.CACHE / "musl"
    platforms.copy_sources(source)
    build(source)
    tests = platforms.test(platforms.HERE, source, PYTHON)
    _, cxx = compilers()
    row = platforms.make_row(
        platforms.HERE, "musl", platforms.processor_name(),
        platforms.compiler_name(platforms.output(cxx, "--version")) + ", libc++", PYTHON, tests,
    )  # fmt: skip
    platforms.keep(row._replace(libc=f"musl {version_of_musl()}"))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except subprocess.CalledProcessError as e:
        sys.exit(f"make musl: this ended with {e.returncode}: {' '.join(map(str, e.cmd))}")
    except platforms.Failed as e:
        sys.exit(f"make musl: {e}")
