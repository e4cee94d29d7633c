"""CPython without its lock, from Debian's source package, and the tests in it: `make free-threaded`.

    python tools/free_threaded.py                  # interpreter, environment, core, thread tests, then all tests
    python tools/free_threaded.py tests/ops        # these tests instead
    python tools/free_threaded.py --only-python    # no more than the interpreter

The interpreter goes into ~/.cache/gradtape-pythons/3.13t (five minutes on two cores, once), the environment beside
it, the core into build/free-threaded. No package of the machine is changed: apt works with lists of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CACHE = Path.home() / ".cache" / "gradtape-pythons"
SUITE = "trixie"
SOURCE = "python3.13"

# numpy and the others come as wheels for the free-threaded ABI.
PACKAGES = """
numpy scipy scipy-openblas32 pytest pytest-xdist hypothesis pillow nanobind scikit-build-core cmake ninja
""".split()

# The tests in which threads meet come first.
THREADS = "tests/reliability/test_threads.py tests/reliability/test_free_threads.py".split()

# Keras and JAX are not in this environment; examples and packages are tested with the other interpreters.
ASIDE = "keras xla test_examples.py test_package.py".split()

# These count or trace the bytecodes of the interpreter with the lock: without it their steps are others.
DESELECTED = "not at_every_bytecode"


def run(*command: object, **options: object) -> None:
    subprocess.run([str(part) for part in command], check=True, **options)  # type: ignore[call-overload]


def apt_site() -> str:
    """The archive this machine's apt is set up for."""
    out = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)"], capture_output=True, text=True, check=True
    ).stdout
    sites = [line for line in out.split() if "security" not in line]
    if not sites:
        raise SystemExit("No archive is known to apt. Hint: set up /etc/apt and run apt-get update.")
    return sites[0]


def fetch(into: Path) -> Path:
    """Debian's sources of CPython, unpacked."""
    found = sorted(into.glob(f"{SOURCE}-*/configure"))
    if found:
        return found[-1].parent
    apt = into / "apt"
    for part in ("lists/partial", "cache/archives/partial", "etc"):
        (apt / part).mkdir(parents=True, exist_ok=True)
    keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
    (apt / "etc" / "sources.list").write_text(f"deb-src [signed-by={keys}] {apt_site()} {SUITE} main\n")
    options = [
        f"-oDir::Etc::sourcelist={apt}/etc/sources.list",
        "-oDir::Etc::sourceparts=-",
        f"-oDir::State::lists={apt}/lists",
        f"-oDir::Cache={apt}/cache",
        "-oAPT::Sandbox::User=root",
    ]
    run("apt-get", *options, "-q", "update")
    # Unpacked by hand: dpkg-source would want the tools of the package's build.
    run("apt-get", *options, "-q", "source", "--download-only", SOURCE, cwd=into)
    (archive,) = into.glob(f"{SOURCE}_*.orig.tar.xz")
    folder = into / f"{SOURCE}-source"
    folder.mkdir(exist_ok=True)
    run("tar", "-xf", archive, "-C", folder, "--strip-components=1")
    return folder


def interpreter(sanitizer: str = "") -> Path:
    """CPython 3.13 configured with --disable-gil; with ThreadSanitizer in it if `sanitizer` is "thread"."""
    name = f"3.13t-{sanitizer}" if sanitizer else "3.13t"
    home = CACHE / name
    python = home / "bin" / "python3.13t"
    if python.exists():
        return python
    (CACHE / "source").mkdir(parents=True, exist_ok=True)
    source = fetch(CACHE / "source")
    work = CACHE / f"build-{name}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    flags = ["--with-thread-sanitizer"] if sanitizer else []
    run(
        source / "configure",
        "-q",
        "--disable-gil",
        "--without-static-libpython",
        *flags,
        f"--prefix={home}",
        cwd=work,
    )
    # The interpreter is its own tool while it is built: what the sanitizer says of it then is not ours.
    quiet = {**os.environ, "TSAN_OPTIONS": "report_bugs=0"}
    run("make", "-s", f"-j{os.cpu_count()}", cwd=work, env=quiet)
    run("make", "-s", "install", cwd=work, env=quiet, stdout=subprocess.DEVNULL)
    shutil.rmtree(work)
    return python


def environment(sanitizer: str = "") -> Path:
    """The bin folder of an environment with what the tests need."""
    home = CACHE / (f"env-3.13t-{sanitizer}" if sanitizer else "env-3.13t")
    done = home / ".done"
    if not done.exists() or done.read_text() != " ".join(PACKAGES):
        run(interpreter(sanitizer), "-m", "venv", home)
        # Wheels only: a package that has none would be built, with tools that may not be here.
        run(home / "bin" / "python", "-m", "pip", "install", "-q", "--only-binary=:all:", *PACKAGES)
        done.write_text(" ".join(PACKAGES))
    return home / "bin"


def build(binaries: Path, *settings: str, folder: str = "free-threaded") -> Path:
    """The core for that interpreter."""
    where = ROOT / "build" / folder
    defined = {"CMAKE_MAKE_PROGRAM": binaries / "ninja", "Python_EXECUTABLE": binaries / "python"}
    given = [f"-D{name}={value}" for name, value in defined.items()]
    run(
        binaries / "cmake",
        "-S",
        ROOT,
        "-B",
        where,
        "-G",
        "Ninja",
        *given,
        *settings,
        stdout=subprocess.DEVNULL,
    )
    run(binaries / "cmake", "--build", where, "--target", "_core")
    (core,) = where.glob("_core.*313t*.so")
    return core


def link(core: Path) -> None:
    """Puts the core beside those for other interpreters, where `import gradtape` finds it."""
    there = ROOT / "gradtape" / core.name
    there.unlink(missing_ok=True)
    there.symlink_to(core)


def main(arguments: list[str]) -> None:
    if "--only-python" in arguments:
        print(interpreter())
        return
    binaries = environment()
    link(build(binaries))
    here = {**os.environ, "PYTHONPATH": str(ROOT)}
    off = "import sys, gradtape; assert not sys._is_gil_enabled(), 'the core has turned the lock on'"
    run(binaries / "python", "-c", off, env=here, cwd=ROOT)
    pytest = [binaries / "python", "-m", "pytest", "-q", "-k", DESELECTED]
    if not arguments:
        run(*pytest, "-n", "0", *THREADS, env=here, cwd=ROOT)
    aside = [] if arguments else [f"--ignore=tests/{name}" for name in ASIDE]
    run(*pytest, "-n", "auto", "--dist", "worksteal", *(arguments or ["tests"]), *aside, env=here, cwd=ROOT)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except subprocess.CalledProcessError as e:
        sys.exit(e.returncode)
