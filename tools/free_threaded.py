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
numpy scipy-openblas32 pytest pytest-xdist hypothesis pillow nanobind scikit-build-core cmake ninja
""".split()

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
    for folder in ("lists/partial", "cache/archives/partial", "etc"):
        (apt / folder).mkdir(parents=True, exist_ok=True)
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
    name = "3.13t-tsan" if sanitizer else "3.13t"
    home = CACHE / name
    python = home / "bin" / "python3.13t"
    if python.exists():
        return python
    source = (
        fetch(CACHE / "source") if (CACHE / "source").mkdir(parents=True, exist_ok=True) is None else None
    )
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
    jobs = f"-j{os.cpu_count()}"
    run("make", "-s", jobs, cwd=work)
    run("make", "-s", "install", cwd=work, stdout=subprocess.DEVNULL)
    shutil.rmtree(work)
    return python


def main(arguments: list[str]) -> None:
    interpreter("thread" if "--thread-sanitizer" in arguments else "")


if __name__ == "__main__":
    main(sys.argv[1:])
