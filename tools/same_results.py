"""Whether the functions of double give the same bits whichever compiler built them, for each level of instructions.

    python tools/same_results.py                       # the compilers of this machine, x86-64-v2 to v4
    python tools/same_results.py --compilers g++ clang++-19 --levels 3

Compiles tests/native/double_hash.cpp as the kernels are compiled, runs it, and compares a hash of a million results a
function. Exits with 1 where two compilers differ. Levels may differ from one another: v2 has no fused multiply-add.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KNOWN = ["g++", "g++-12", "g++-14", "clang++", "clang++-16", "clang++-19"]
FLAGS = (
    "-std=c++20 -O3 -ffp-contract=off -fno-math-errno -fno-trapping-math -fopenmp-simd -fno-exceptions -w -DGT_NO_CONTRACTION"
).split()


def different(compilers):
    """The compilers that are on this machine, each once."""
    found = {}
    for name in compilers:
        if path := shutil.which(name):
            found.setdefault(Path(path).resolve(), name)
    return list(found.values())


def hashes(compiler, level, folder):
    """The lines of double_hash, built by this compiler for this level."""
    program = Path(folder) / f"{compiler}_{level}"
    machine = [f"-march=x86-64-v{level}", *(["-mprefer-vector-width=512"] if level == 4 else [])]
    subprocess.run(
        [compiler, *FLAGS, *machine, f"-DGT_ISA_LEVEL={level}", "-I", ROOT / "core", ROOT / "tests/native/double_hash.cpp",
         ROOT / "core/erf_table.cpp", "-o", program], check=True,
    )  # fmt: skip
    return subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compilers", nargs="*", default=KNOWN, metavar="C++")
    parser.add_argument("--levels", nargs="*", type=int, default=[2, 3, 4])
    options = parser.parse_args()
    compilers = different(options.compilers)
    if len(compilers) < 2:
        sys.exit(
            f"nothing to compare: of {', '.join(options.compilers)} there is {', '.join(compilers) or 'none'}"
        )
    wrong = False
    with tempfile.TemporaryDirectory() as folder:
        for level in options.levels:
            first, *others = [(c, hashes(c, level, folder)) for c in compilers]
            for compiler, lines in others:
                differ = [a.split()[0] for a, b in zip(first[1], lines, strict=True) if a != b]
                wrong |= bool(differ)
                said = f"differ in {', '.join(differ)}" if differ else f"agree in all {len(lines)} functions"
                print(f"x86-64-v{level}: {first[0]} and {compiler} {said}", flush=True)
    sys.exit(wrong)


if __name__ == "__main__":
    main()
