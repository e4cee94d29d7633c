"""Builds gradtape with other compilers, for other processors and other Pythons, tests it there, and keeps a table of it.

    make clang      clang 16 and 19, warnings as errors (benchmarks/compilers.py compares the speed of their loops)
    make arm        aarch64: a cross build, tested under qemu-user in a chroot of Debian
    make pythons    CPython 3.11 to 3.15: the host's, and those of Debian's trixie and sid, in chroots

Each run that passes writes its row into docs/platforms.json, and docs/platforms.md is made of that (`--page`); so do
runs of `make free-threaded`, `make musl` and `make systems`. A run works on a copy of the tracked files in
~/.cache/gradtape-platforms: neither `.venv` nor the working tree is touched. What it needs from Debian (compilers,
debootstrap, qemu-user-static), it names where it is missing.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
ROWS = ROOT / "docs" / "platforms.json"
PAGE = ROOT / "docs" / "platforms.md"
CACHE = Path.home() / ".cache" / "gradtape-platforms"
CHROOTS = Path.home() / ".cache" / "gradtape-chroots"

# The fast half of the tests: behaviour, every op, the native checks, whole programs. NumPy, OpenBLAS and pytest are
# all they need, so they run where there is no wheel of JAX or Keras.
FAST = ("tests/semantics", "tests/ops", "tests/native", "tests/programs", "tests/test_install.py")
NEEDED = ("numpy", "scipy-openblas32>=0.3.27,<0.4", "pytest", "pytest-xdist", "hypothesis")
BUILD = ("nanobind>=2.4", "cmake>=3.20", "ninja")


class Failed(Exception):
    """What did not work; the message is for whoever ran make."""


class Row(NamedTuple):
    """What was tested, with what, and how many tests passed."""

    target: str
    processor: str
    compiler: str
    python: str
    libc: str
    tests: str
    date: str
    commit: str


def run(*command: str | Path, **options: object) -> None:
    """Runs a command and shows what it says.

    Raises:
      Failed: if it fails.
    """
    done = subprocess.run(list(map(str, command)), **options)  # type: ignore[call-overload]
    if done.returncode:
        raise Failed(f"this ended with {done.returncode}: {' '.join(map(str, command))}")


def output(*command: str | Path) -> str:
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout.strip()


def need(program: str, package: str) -> str:
    """The path of a program.

    Raises:
      Failed: if there is none.
    """
    found = shutil.which(program)
    if not found:
        raise Failed(f"there is no {program}. Hint: apt install {package}")
    return found


# ---- a copy of the sources, built and tested ---------------------------------------------------


def copy_sources(place: Path) -> None:
    """The tracked files as they are now; files that are the same stay, so that a second build is short."""
    names = output("git", "-C", ROOT, "ls-files").splitlines()
    wanted = {name for name in names if (ROOT / name).is_file()}
    listed = place / ".copied"
    before = set(listed.read_text().splitlines()) if listed.exists() else set()
    for name in before - wanted:
        (place / name).unlink(missing_ok=True)
    for name in wanted:
        source, copy = ROOT / name, place / name
        if copy.is_file() and copy.read_bytes() == source.read_bytes():
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, copy)
    listed.write_text("\n".join(sorted(wanted)))


class Machine(NamedTuple):
    """Where commands run: here, or in a chroot."""

    root: Path | None = None

    def path(self, inside: str | Path) -> Path:
        """A path of that machine, as this one sees it."""
        return Path(str(self.root) + str(inside)) if self.root else Path(inside)

    def command(self, *words: str | Path, env: dict[str, str] | None = None) -> list[str]:
        words = tuple(map(str, words))
        settings = [f"{k}={v}" for k, v in (env or {}).items()]
        if self.root is None:
            return ["env", *settings, *words]
        plain = ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8"]
        kept = [f"{k}={v}" for k, v in os.environ.items() if k.startswith("PIP_") or k.endswith("_proxy")]
        return ["chroot", str(self.root), "env", "-i", *plain, *kept, *settings, *words]

    def run(self, *words: str | Path, env: dict[str, str] | None = None) -> None:
        run(*self.command(*words, env=env))

    def output(self, *words: str | Path) -> str:
        return output(*self.command(*words))


HERE = Machine()


def environment(machine: Machine, python: str, name: str, packages: tuple[str, ...]) -> Path:
    """The Python of a virtual environment with those packages."""
    folder = (
        (Path("/root") if machine.root else Path.home()) / ".cache" / "gradtape-platforms" / f"venv-{name}"
    )
    done = machine.path(folder) / "packages.txt"
    if not done.exists() or done.read_text() != "\n".join(packages):
        machine.run(python, "-m", "venv", folder)
        machine.run(folder / "bin" / "python", "-m", "pip", "install", "-q", "--only-binary=:all:", *packages)
        done.write_text("\n".join(packages))
    return folder / "bin" / "python"


def build(machine: Machine, source: Path, python: Path, compiler: str, *settings: str, tag: str = "") -> Path:
    """Builds core and native checks in `source`, puts the core beside its package; gives the folder of the build."""
    tag = tag or machine.output(python, "-c", "import sys; print('cp%d%d' % sys.version_info[:2])")
    folder = source / "build" / f"{tag}-platforms"
    tools = python.parent
    machine.run(
        tools / "cmake", "-S", source, "-B", folder, "-G", "Ninja", "-Wno-dev", f"-DCMAKE_CXX_COMPILER={compiler}",
        f"-DCMAKE_MAKE_PROGRAM={tools / 'ninja'}", f"-DPython_EXECUTABLE={python}", "-DCMAKE_BUILD_TYPE=Release",
        "-DGRADTAPE_WERROR=ON", "-DGRADTAPE_CHECKS=ON", *settings,
    )  # fmt: skip
    # What ccache knows of another copy of the sources serves this one; one run shows all that does not compile.
    machine.run(
        tools / "ninja", "-k", "0", "-j", str(os.cpu_count()), "-C", folder,
        env={"CCACHE_BASEDIR": str(source), "CCACHE_NOHASHDIR": "1"},
    )  # fmt: skip
    for core in machine.path(source / "gradtape").glob("_core.*.so"):
        core.unlink()
    for core in machine.path(folder).glob("_core.*.so"):
        shutil.copy(core, machine.path(source / "gradtape"))
    return folder


def test(machine: Machine, source: Path, python: Path, *more: str, jobs: int = 0, **env: str) -> str:
    """Runs the fast half of the tests there; gives pytest's count of them.

    Raises:
      Failed: if one fails.
    """
    report = source / "build" / "tests.xml"
    words = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", str(jobs or os.cpu_count()), "--dist",
             "worksteal", "--rootdir", source, "-c", source / "pyproject.toml", f"--junit-xml={report}",
             *(source / folder for folder in FAST), *more]  # fmt: skip
    env["PYTHONPATH"] = str(source)
    run(*machine.command("sh", "-c", 'cd "$0" && exec "$@"', source, *words, env=env))
    return counted(machine.path(report).read_text())


def counted(report: str) -> str:
    """What a report of pytest (JUnit's form) says in short: how many passed, how many were skipped."""
    numbers = dict(re.findall(r'\b(tests|failures|errors|skipped)="(\d+)"', report.partition("<testcase")[0]))
    total, skipped = int(numbers["tests"]), int(numbers["skipped"])
    if int(numbers["failures"]) or int(numbers["errors"]) or total <= skipped:
        raise Failed(f"tests failed: {numbers}")
    return f"{total - skipped:,} passed, {skipped:,} skipped"


def make_row(machine: Machine, target: str, processor: str, compiler: str, python: Path, tests: str) -> Row:
    said = machine.output(
        python, "-c", "import platform; print(platform.python_version(), *platform.libc_ver())"
    )
    version, _, libc = said.partition(" ")
    others = (".", f":!{ROWS}", f":!{PAGE}")
    changed = output("git", "-C", ROOT, "status", "--porcelain", "--untracked-files=no", "--", *others)
    commit = output("git", "-C", ROOT, "rev-parse", "--short=10", "HEAD") + ("+" if changed else "")
    today = datetime.date.today().isoformat()
    return Row(target, processor, compiler, version, libc, tests, today, commit)


def compiler_name(said: str) -> str:
    """`gcc 12.2.0` of what `--version` says."""
    first = said.splitlines()[0]
    kind = "clang" if "clang" in first else "gcc"
    return f"{kind} {re.search(r'([0-9]+[.][0-9]+[.][0-9]+)', first)[1]}"  # type: ignore[index]


# ---- the targets -------------------------------------------------------------------------------


def on_host(target: str, compiler: str, package: str, python: str = sys.executable) -> tuple[Path, Row]:
    """A compiler of this machine, with one of its Pythons."""
    path = need(compiler, package)
    name = output(python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])")
    source = CACHE / target.replace(" ", "-").replace(",", "")
    copy_sources(source)
    env = environment(HERE, base_python(python), name, NEEDED + BUILD)
    folder = build(HERE, source, env, path)
    tests = test(HERE, source, env)
    return folder, make_row(
        HERE, target, processor_name(), compiler_name(output(path, "--version")), env, tests
    )


def host_python(version: str) -> str:
    """A Python of this machine: on the PATH, or one of pyenv's."""
    kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
    return (
        str(kept[-1])
        if kept
        else need(f"python{version}", f"python{version}-venv (or: pyenv install {version})")
    )


def base_python(python: str) -> str:
    """The interpreter behind a virtual environment."""
    return output(python, "-c", "import sys; print(getattr(sys, '_base_executable', sys.executable))")


def processor_name() -> str:
    machine = platform.machine()
    return {"x86_64": "x86-64", "arm64": "aarch64"}.get(machine, machine)


def clang(options: argparse.Namespace) -> None:
    """clang: warnings as errors, the tests."""
    for version in options.versions or ("16", "19"):
        _, row = on_host(f"clang {version}", f"clang++-{version}", f"clang-{version}")
        keep(row)


def pythons(options: argparse.Namespace) -> None:
    """CPython 3.11 to 3.15: the host's own, and those of newer Debians in chroots."""
    places = {"3.11": None, "3.12": None, "3.13": "trixie", "3.14": "sid", "3.15": "sid"}
    for version in options.versions or places:
        if version not in places:
            raise Failed(f"there is no chroot for Python {version}: {', '.join(places)}")
        suite = places[version]
        if suite is None:
            _, row = on_host(f"CPython {version}", "g++", "g++", host_python(version))
        else:
            row = in_chroot(suite, version)
        keep(row)


def chroot(suite: str, packages: tuple[str, ...], architecture: str = "") -> Machine:
    """Debian's suite in a folder, with packages; made once."""
    place = CHROOTS / (f"{suite}-{architecture}" if architecture else suite)
    machine = Machine(place)
    if os.geteuid():
        raise Failed("a chroot is for root alone. Hint: sudo, or a container")
    if not (place / ".made").exists():
        debootstrap = need("debootstrap", "debootstrap")
        shutil.rmtree(place, ignore_errors=True)  # what was interrupted cannot be continued
        place.mkdir(parents=True)
        foreign = ["--foreign", f"--arch={architecture}"] if architecture else []
        run(debootstrap, "--variant=minbase", *foreign, "--include=ca-certificates", suite, place)
        if architecture:
            machine.run("/debootstrap/debootstrap", "--second-stage")
        (place / ".made").touch()
    # Names of hosts, the index of packages and its certificates are this machine's.
    for name in ("/etc/resolv.conf", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt"):
        if Path(name).exists():
            shutil.copy(name, machine.path(name))
    for kind, name in (("proc", "/proc"), ("tmpfs", "/dev/shm")):
        machine.path(name).mkdir(exist_ok=True)
        if not os.path.ismount(machine.path(name)):
            run("mount", "-t", kind, kind, machine.path(name))
            _mounted.append(machine.path(name))
    installed = set(machine.output("dpkg-query", "-Wf", "${Package}\n").split())
    if missing := [p for p in packages if p not in installed]:
        # A mirror that stands still has lists that are signed but "expired"; there is no terminal for dpkg.
        settings = ("-qq", "-oAcquire::Check-Valid-Until=false", "-oDpkg::Use-Pty=0")
        machine.run("apt-get", *settings, "update")
        machine.run(
            "apt-get", *settings, "install", "-y", "--no-install-recommends", *missing,
            env={"DEBIAN_FRONTEND": "noninteractive"},
        )  # fmt: skip
    return machine


_mounted: list[Path] = []


def unmount() -> None:
    """Takes off what `chroot` mounted."""
    for place in _mounted:
        subprocess.run(["umount", "--lazy", str(place)], check=False)


def in_chroot(suite: str, version: str) -> Row:
    python = f"python{version}"
    machine = chroot(suite, ("g++", "ccache", python, f"{python}-dev", f"{python}-venv"))
    source = Path("/root/gradtape")
    copy_sources(machine.path(source))
    env = environment(machine, f"/usr/bin/{python}", version, NEEDED + BUILD)
    build(machine, source, env, "/usr/bin/g++")
    tests = test(machine, source, env)
    compiler = compiler_name(machine.output("g++", "--version"))
    return make_row(machine, f"CPython {version}", processor_name(), compiler, env, tests)


# A widespread processor. Left to itself, qemu plays one with everything that Arm has specified: OpenBLAS takes its kernels
# for SME, and its products of a transposed matrix are wrong there (by OpenBLAS 0.3.34 or qemu 7.2).
ARM = "neoverse-n1"


def arm(options: argparse.Namespace) -> None:
    """aarch64: compiled here, tested under qemu-user."""
    compiler = need("aarch64-linux-gnu-g++", "g++-aarch64-linux-gnu")
    need("qemu-aarch64-static", "qemu-user-static")
    understand_aarch64()
    machine = chroot("bookworm", ("python3", "python3-dev", "python3-venv", "libstdc++6"), "arm64")
    source = CACHE / "aarch64"
    copy_sources(source)
    tools = environment(HERE, base_python(sys.executable), "cross", BUILD)
    suffix = sysconfig.get_config_var("EXT_SUFFIX").replace("x86_64", "aarch64")
    folder = build(
        HERE, source, tools, compiler, "-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64",
        f"-DPython_INCLUDE_DIR={machine.path('/usr/include/python3.11')}", f"-DNB_SUFFIX={suffix}",
        f"-DCMAKE_CXX_FLAGS=-idirafter {machine.path('/usr/include')}",  # Debian has pyconfig.h of each processor there
        tag="cp311",
    )  # fmt: skip
    inside = Path("/root/gradtape")
    copy_sources(machine.path(inside))
    for core in machine.path(inside / "gradtape").glob("_core.*.so"):
        core.unlink()
    shutil.copytree(folder, machine.path(inside / "build" / folder.name), dirs_exist_ok=True, symlinks=True)
    shutil.copy(folder / f"_core{suffix}", machine.path(inside / "gradtape"))
    env = environment(machine, "/usr/bin/python3", "3.11", NEEDED)
    tests = test(machine, inside, env, QEMU_CPU=ARM)
    name = compiler_name(output(compiler, "--version"))
    keep(make_row(machine, "aarch64, qemu-user", f"aarch64 ({ARM})", name, env, tests))


def understand_aarch64() -> None:
    """Has the kernel start programs for aarch64 through qemu, if it does not yet."""
    here = Path("/proc/sys/fs/binfmt_misc")
    if not (here / "register").exists():
        run("mount", "-t", "binfmt_misc", "binfmt_misc", here)
    if not (here / "qemu-aarch64").exists():
        # What Debian's package has for systemd. F: the interpreter is opened now, so that a chroot needs no copy of it.
        (here / "register").write_text(Path("/usr/lib/binfmt.d/qemu-aarch64.conf").read_text().strip())


# ---- the table ---------------------------------------------------------------------------------


def rows() -> list[Row]:
    return [Row(**row) for row in json.loads(ROWS.read_text())] if ROWS.exists() else []


def keep(row: Row) -> None:
    """Puts a row into the table, in the place of an older one of the same target."""
    found = {old.target: old for old in rows()}
    found[row.target] = row
    ordered = sorted(found.values(), key=lambda r: r.target)
    ROWS.write_text(json.dumps([r._asdict() for r in ordered], indent=1) + "\n")
    PAGE.write_text(page())
    print(f"{row.target}: {row.tests}")


def page() -> str:
    """The page, of its frame and the rows."""
    frame = (ROOT / "tools" / "platforms.md.in").read_text()
    head = "| target | processor | compiler | Python | C library | tests | date | commit |"
    lines = [head, "|---|---|---|---|---|---|---|---|"]
    lines += [f"| {' | '.join(row)} |" for row in rows()]
    return frame.replace("@ROWS@", "\n".join(lines)).replace("@FAST@", ", ".join(f"`{f}`" for f in FAST))


TARGETS: dict[str, Callable[[argparse.Namespace], None]] = {"clang": clang, "arm": arm, "pythons": pythons}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("target", nargs="?", choices=TARGETS)
    parser.add_argument(
        "versions", nargs="*", help="of the compiler or of Python; all of them if there are none"
    )
    parser.add_argument("--page", action="store_true", help="write docs/platforms.md again")
    options = parser.parse_args()
    if options.target:
        # What is mounted is taken off then, too.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
        try:
            TARGETS[options.target](options)
        except Failed as e:
            sys.exit(f"make {options.target}: {e}")
        finally:
            unmount()
    elif options.page:
        PAGE.write_text(page())
    else:
        parser.print_help()


if __name__ == "__main__":
    main()
