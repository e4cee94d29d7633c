"""Links what gcc compiled so that it runs with glibc 2.28, on a machine whose own glibc is newer.

    cmake -DCMAKE_CXX_LINKER_LAUNCHER="python;tools/old_glibc.py" ...

CMake calls it with the complete link command; `make wheel` sets it. The object files are those of gcc, so a wheel is as
fast as `make dev`'s core; only the linked symbols differ. A linker takes the newest version of each symbol that it finds
(dlsym of glibc 2.34 on Debian 12), so it must find an old library: PyPI's `ziglang`, the linker here, makes stubs of any
glibc. libstdc++ is linked statically, because systems with glibc 2.28 have an older one; the functions that it needs of
a newer glibc are in old_glibc.c.
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
    done = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def exported(arguments: list[str], folder: str) -> Path:
    """A version script: the module exports only its init function, and not the libstdc++ in it."""
    output = Path(arguments[arguments.index("-o") + 1])
    script = Path(folder, "exported")
    script.write_text(f"{{ global: PyInit_{output.name.partition('.')[0]}; local: *; }};\n")
    return script


def unknown(output: str) -> list[str]:
    """Undefined symbols of the module without a version, which old libraries lack, other than Python's."""
    done = subprocess.run(
        ["nm", "-D", "--undefined-only", output], capture_output=True, text=True, check=True
    )
    strong = [line.split()[-1] for line in done.stdout.splitlines() if line.split()[0] == "U"]
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
        sys.exit(f"glibc {OLDEST} lacks symbols that the core or libstdc++ uses: {', '.join(names)}")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except subprocess.CalledProcessError as e:
        sys.exit(e.returncode)
