"""Links what gcc compiled so that it runs with glibc 2.28, on a machine whose own glibc is newer.

    cmake -DCMAKE_CXX_LINKER_LAUNCHER="python;tools/old_glibc.py" ...

CMake calls it with the whole command by which it would link, and `make wheel` sets it. The objects stay those of gcc, so
a wheel is as quick as `make dev`'s core; what changes is which symbols they meet. A linker takes the newest version of
each symbol that it sees (dlsym of glibc 2.34 on Debian 12), so it has to see an old library: PyPI's `ziglang` makes
stubs of any glibc, and is the linker here. libstdc++ is linked in, because that of glibc 2.28's time is older too; what
it wants of a newer glibc is in old_glibc.c.
"""

from __future__ import annotations

import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

OLDEST = "2.28"


def of_gcc(compiler: str, name: str) -> str:
    said = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return said.stdout.strip()


def exported(arguments: list[str], folder: str) -> Path:
    """A version script: a module of Python exports how it starts, and not the libstdc++ in it."""
    output = Path(arguments[arguments.index("-o") + 1])
    script = Path(folder, "exported")
    script.write_text(f"{{ global: PyInit_{output.name.partition('.')[0]}; local: *; }};\n")
    return script


def unknown(output: str) -> list[str]:
    """What the module wants of nobody: symbols that had no version to be had, and are not Python's."""
    said = subprocess.run(
        ["nm", "-D", "--undefined-only", output], capture_output=True, text=True, check=True
    )
    strong = [line.split()[-1] for line in said.stdout.splitlines() if line.split()[0] == "U"]
    return [name for name in strong if "@" not in name and not re.fullmatch(r"_?Py\w+", name)]


def main(compiler: str, *arguments: str) -> None:
    given = list(arguments)
    plain = [sys.executable, "-m", "ziglang", "cc", "-target", f"{platform.machine()}-linux-gnu.{OLDEST}"]
    libraries = [of_gcc(compiler, name) for name in ("libstdc++.a", "libgcc.a", "libgcc_s.so.1")]
    with tempfile.TemporaryDirectory() as folder:
        own = [f"-Wl,--version-script={exported(given, folder)}", Path(__file__).with_suffix(".c")]
        subprocess.run([*plain, *given, *own, *libraries, "-lpthread", "-ldl", "-lm"], check=True)
    output = given[given.index("-o") + 1]
    if names := unknown(output):
        Path(output).unlink()
        sys.exit(f"glibc {OLDEST} lacks what the core uses, or what libstdc++ does: {', '.join(names)}")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except subprocess.CalledProcessError as e:
        sys.exit(e.returncode)
