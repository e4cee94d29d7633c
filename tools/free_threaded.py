"""CPython without its lock, from Debian's source package, and the tests in it: `make free-threaded`.

    python tools/free_threaded.py                  # interpreter, environment, core, thread tests, then all tests
    python tools/free_threaded.py tests/ops        # these tests instead
    python tools/free_threaded.py 3.14             # another Python: the first argument, 3.13 if there is none
    python tools/free_threaded.py --tsan           # interpreter and core under ThreadSanitizer, the tests of threads
    python tools/free_threaded.py --only-python    # no more than the interpreter

The interpreter goes into ~/.cache/gradtape-pythons/3.13t (five minutes on two cores, once), the environment beside
it, the core into build/free-threaded-3.13t. No package of the machine is changed: apt works with lists of its own. A
complete run that passes writes its row of docs/platforms.md.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import platforms

ROOT = platforms.ROOT
CACHE = Path.home() / ".cache" / "gradtape-pythons"
SUITES = {"3.13": "trixie", "3.14": "sid"}  # of Debian, which packages neither without its lock

# numpy and the others come as wheels for the free-threaded ABI.
PACKAGES = """
numpy scipy scipy-openblas32 pytest pytest-xdist hypothesis pillow matplotlib attrs tqdm nanobind scikit-build-core cmake
ninja absl-py rich namex optree ml-dtypes packaging
""".split()
# Keras is installed without what it names: h5py, which it saves models with, has no wheel for 3.13t.
ALONE = ["keras>=3.15,<3.17"]

# The tests in which threads meet come first.
THREADS = "tests/reliability/test_threads.py tests/reliability/test_free_threads.py".split()

# What is not run here, and why. (The pages and tools are the same with every interpreter, which has tried them.)
ASIDE = {
    "xla": "JAX has wheels, but this environment has not: its tests take half an hour",
    "test_examples.py": "they train for minutes",
    "test_package.py": "the checkout's own rules",
}

# What ThreadSanitizer watches: the tests in which threads meet, except those whose processes use another core, and
# one that compares times.
WATCHED = """
tests/reliability/test_free_threads.py tests/reliability/test_threads.py tests/reliability/test_contexts.py
tests/semantics/test_tape_context.py tests/test_scopes.py
--deselect=tests/reliability/test_threads.py::test_results_do_not_depend_on_the_number_of_threads
--deselect=tests/reliability/test_threads.py::test_first_compilation_raced
""".split()
SUPPRESSED = ROOT / "tools" / "sanitize" / "free_threaded.supp"

# These count or trace the bytecodes of the interpreter with the lock: without it their steps are others.
DESELECTED = "not at_every_bytecode"


class Target(NamedTuple):
    version: str = "3.13"
    sanitizer: str = ""  # "thread", or none

    @property
    def name(self) -> str:
        return f"{self.version}t-{self.sanitizer}" if self.sanitizer else f"{self.version}t"


def run(*command: object, **options: object) -> None:
    subprocess.run([str(part) for part in command], check=True, **options)  # type: ignore[call-overload]


def apt_site() -> str:
    """The archive this machine's apt is set up for."""
    out = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)"], capture_output=True, text=True, check=True
    ).stdout
    sites = [line for line in out.split() if "debian" in line and "security" not in line]
    if not sites:
        raise SystemExit("No archive is known to apt. Hint: set up /etc/apt and run apt-get update.")
    return sites[0]


def apt_lists(into: Path, suite: str, *kinds: str) -> list[str]:
    """Options of apt for lists of its own, which are of this suite; `kinds` are deb and deb-src."""
    apt = into / "apt"
    for part in ("lists/partial", "cache/archives/partial", "etc"):
        (apt / part).mkdir(parents=True, exist_ok=True)
    keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
    lines = [f"{kind} [signed-by={keys}] {apt_site()} {suite} main\n" for kind in kinds]
    (apt / "etc" / "sources.list").write_text("".join(lines))
    options = [
        f"-oDir::Etc::sourcelist={apt}/etc/sources.list",
        "-oDir::Etc::sourceparts=-",
        f"-oDir::State::lists={apt}/lists",
        f"-oDir::Cache={apt}/cache",
        "-oAPT::Sandbox::User=root",
    ]
    run("apt-get", *options, "-q", "update")
    return options


def source_of(version: str) -> Path:
    """Debian's sources of CPython, unpacked."""
    package = f"python{version}"
    into = CACHE / "source" / package
    folder = into / "unpacked"
    if (folder / "configure").exists():
        return folder
    options = apt_lists(into, SUITES[version], "deb-src")
    # Unpacked by hand: dpkg-source would want the tools of the package's build.
    run("apt-get", *options, "-q", "source", "--download-only", package, cwd=into)
    (archive,) = into.glob(f"{package}_*.orig.tar.xz")
    folder.mkdir(exist_ok=True)
    run("tar", "-xf", archive, "-C", folder, "--strip-components=1")
    return folder


def interpreter(target: Target) -> Path:
    """CPython configured with --disable-gil, and with ThreadSanitizer in it if that is asked for."""
    home = CACHE / target.name
    python, done = home / "bin" / f"python{target.version}t", home / ".done"
    if done.exists():
        return python
    source = source_of(target.version)
    work = CACHE / f"build-{target.name}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    flags = ["--with-thread-sanitizer"] if target.sanitizer else []
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
    # Under the sanitizer its library would take a quarter of an hour to compile: what is imported is enough.
    only_top = ["COMPILEALL_OPTS=-l"] if target.sanitizer else []
    run("make", "-s", "install", *only_top, cwd=work, env=quiet, stdout=subprocess.DEVNULL)
    done.touch()
    shutil.rmtree(work)
    return python


def environment(version: str) -> Path:
    """An environment with what the tests need; the interpreter under a sanitizer uses it, too."""
    home = CACHE / f"env-{version}t"
    done, wanted = home / ".done", " ".join(PACKAGES + ALONE)
    if not done.exists() or done.read_text() != wanted:
        run(interpreter(Target(version)), "-m", "venv", home)
        # Wheels only: a package that has none would be built, with tools that may not be here.
        run(home / "bin" / "python", "-m", "pip", "install", "-q", "--only-binary=:all:", *PACKAGES)
        run(home / "bin" / "python", "-m", "pip", "install", "-q", "--no-deps", *ALONE)
        done.write_text(wanted)
    return home


def compiler() -> str:
    return platforms.need("g++", "g++")


def build(target: Target, home: Path) -> Path:
    """The core for that interpreter.

    Under a sanitizer its kernels are those of the other builds, which bounds the time: `make sanitize` watches them.
    """
    where = ROOT / "build" / f"free-threaded-{target.name}"
    defined: dict[str, object] = {
        "CMAKE_CXX_COMPILER": compiler(),
        "CMAKE_MAKE_PROGRAM": home / "bin" / "ninja",
        "Python_EXECUTABLE": home / "bin" / "python",
    }
    if target.sanitizer:
        defined |= {
            "GRADTAPE_SANITIZE": target.sanitizer,
            "GRADTAPE_SANITIZE_KERNELS": "OFF",
        }
    else:
        defined["GRADTAPE_WERROR"] = "ON"
    given = [f"-D{name}={value}" for name, value in defined.items()]
    cmake = home / "bin" / "cmake"
    run(cmake, "-S", ROOT, "-B", where, "-G", "Ninja", *given, stdout=subprocess.DEVNULL)
    run(cmake, "--build", where, "--target", "_core", "--parallel", os.cpu_count())
    (core,) = where.glob(f"_core.*{target.version.replace('.', '')}t*.so")
    return core


def link(core: Path) -> None:
    """Puts the core beside those for other interpreters, where `import gradtape` finds it."""
    there = ROOT / "gradtape" / core.name
    there.unlink(missing_ok=True)
    there.symlink_to(core)


def watch(target: Target, home: Path, core: Path, tests: list[str]) -> None:
    """The tests under ThreadSanitizer: each race is a report, and reports are a failure."""
    folder = core.parent
    packages = home / "lib" / f"python{target.version}t" / "site-packages"
    for report in folder.glob("report.*"):
        report.unlink()
    # CPython keeps a list of what is known of its own; the sanitizer takes one file.
    theirs = source_of(target.version) / "Tools" / "tsan" / "suppressions_free_threading.txt"
    suppressions = folder / "suppressions"
    suppressions.write_text(SUPPRESSED.read_text() + theirs.read_text())
    options = f"suppressions={suppressions}:log_path={folder / 'report'}:exitcode=0:second_deadlock_stack=1"
    here = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT, SUPPRESSED.parent, packages))),
        "GRADTAPE_CORE": str(core),
        "TSAN_OPTIONS": options + ":die_after_fork=0:history_size=4",
    }
    pytest = [interpreter(target), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "sanitized_core"]
    run(*pytest, "-k", DESELECTED, *(tests or WATCHED), env=here, cwd=ROOT)
    reports = sorted(folder.glob("report.*"))
    for report in reports:
        print(report.read_text())
    if reports:
        raise SystemExit(f"{len(reports)} processes had races: {folder}/report.*")


def main(arguments: list[str]) -> None:
    versions = [a for a in arguments if a in SUITES]
    flags = [a for a in arguments if a in ("--only-python", "--tsan")]
    tests = [a for a in arguments if a not in (*versions, *flags)]
    target = Target(versions[0] if versions else "3.13", "thread" if "--tsan" in flags else "")
    if "--only-python" in flags:
        print(interpreter(target))
        return
    home = environment(target.version)
    core = build(target, home)
    if target.sanitizer:
        watch(target, home, core, tests)
        return
    link(core)
    here = {**os.environ, "PYTHONPATH": str(ROOT)}
    off = "import sys, gradtape; assert not sys._is_gil_enabled(), 'the core has turned the lock on'"
    run(home / "bin" / "python", "-c", off, env=here, cwd=ROOT)
    pytest = [home / "bin" / "python", "-m", "pytest", "-q", "-k", DESELECTED]
    parallel = ["-n", "auto", "--dist", "worksteal"]
    if tests:
        run(*pytest, *parallel, *tests, env=here, cwd=ROOT)
        return
    run(*pytest, "-n", "0", *THREADS, env=here, cwd=ROOT)
    report = core.parent / "tests.xml"
    aside = [f"--ignore=tests/{name}" for name in ASIDE]
    run(*pytest, *parallel, f"--junit-xml={report}", "tests", *aside, env=here, cwd=ROOT)
    keep(target, home / "bin" / "python", report)


def keep(target: Target, python: Path, report: Path) -> None:
    """Writes the row of docs/platforms.md."""
    row = platforms.make_row(
        platforms.HERE,
        f"CPython {target.name}, without the GIL",
        platforms.processor_name(),
        platforms.compiler_name(platforms.output(compiler(), "--version")),
        python,
        platforms.counted(report.read_text()),
    )
    platforms.keep(row)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except subprocess.CalledProcessError as e:
        sys.exit(e.returncode)
    except platforms.Failed as e:
        sys.exit(f"make free-threaded: {e}")
