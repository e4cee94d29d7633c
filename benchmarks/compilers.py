"""The core's element-wise loops as several compilers make them: are they as fast, and do they compute the same?

    python benchmarks/compilers.py                                    # gcc, clang 16 and 19, on every level of x86-64
    python benchmarks/compilers.py --compilers g++ clang++-19 --levels 3 4 --only sin mul --types float32

The first compiler is what the others are compared with: a loop that takes more than 1.2 times as long is listed, and so
is a function whose results have other bits. Both end with exit code 1. Each compiler's kernels are built in
~/.cache/gradtape-compilers, for some minutes the first time. Minima of short turns of one thread in the first cache.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CACHE = Path.home() / ".cache" / "gradtape-compilers"
BOUND = 1.2
TYPES = ("float32", "float64", "bfloat16", "float16", "int32", "int8", "complex64", "bool")
# The files that say themselves where a product is not rounded (CMakeLists.txt): their results are every compiler's.
EXACT = (
    "exp exp_sub expm1 log log1p sinh cosh tanh asinh acosh atanh sigmoid sin cos tan asin acos atan erf erfc erfinv "
    "lgamma pow atan2 hypot xlogy xlog1py elu selu softplus softsign silu gelu gelu_slope gelu_tanh sigmoid_xent "
    "add.add add.mul sub.mul mul.add mul.sub mul.div mul.under"
).split()

Times = dict[tuple[str, str], float]


def build(compiler: str) -> Path:
    """The program that runs single loops (tests/native/loops.cpp), built with a compiler."""
    folder, tools = CACHE / compiler.replace("/", "_"), Path(sys.executable).parent
    subprocess.run(
        [tools / "cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-Wno-dev", f"-DCMAKE_CXX_COMPILER={compiler}",
         f"-DCMAKE_MAKE_PROGRAM={tools / 'ninja'}", f"-DPython_EXECUTABLE={sys.executable}",
         "-DCMAKE_BUILD_TYPE=Release", "-DGRADTAPE_CHECKS=ON"], stdout=subprocess.DEVNULL, check=True,
    )  # fmt: skip
    subprocess.run([tools / "ninja", "-C", folder, "loops"], stdout=subprocess.DEVNULL, check=True)
    return folder / "tests" / "native" / "loops"


def run(program: Path, level: int, *words: str) -> list[list[str]]:
    done = subprocess.run(
        [program, *words],
        env={**os.environ, "GRADTAPE_ISA": str(level)},
        capture_output=True,
        text=True,
        check=True,
    )
    return [line.split() for line in done.stdout.splitlines()]


def times(programs: list[Path], level: int, names: list[str], rounds: int) -> list[Times]:
    """Nanoseconds an element by name and type, of each program in turn."""
    least: list[Times] = [{} for _ in programs]
    for _ in range(rounds):
        for program, found in zip(programs, least, strict=True):
            for name, dtype, took in run(program, level, "times", *names):
                found[name, dtype] = min(found.get((name, dtype), 1e9), float(took))
    return least


def slow(programs: list[Path], compilers: list[str], level: int, options: argparse.Namespace) -> int:
    """How many loops of other compilers take too long; a line for each."""
    least = times(programs, level, options.only, options.rounds)
    wanted = [key for key in least[0] if key[1] in options.types]
    # What seems slow is looked at again: on a busy machine most of it is not.
    again = {
        name for name, dtype in wanted for other in least[1:]
        if other[name, dtype] > BOUND * least[0][name, dtype]
    }  # fmt: skip
    if again:
        more = times(programs, level, sorted(again), 4 * options.rounds)
        for found, second in zip(least, more, strict=True):
            for key, took in second.items():
                found[key] = min(found[key], took)
    count = 0
    for compiler, other in zip(compilers[1:], least[1:], strict=True):
        ratios = {key: other[key] / least[0][key] for key in wanted}
        beyond = sorted((key for key in wanted if ratios[key] > BOUND), key=lambda key: -ratios[key])
        middle = sorted(ratios.values())[len(ratios) // 2]
        print(
            f"v{level} {compiler}: {len(wanted)} loops, {middle:.2f} of {compilers[0]}'s time in the middle, "
            f"{len(beyond)} above {BOUND}",
            flush=True,
        )
        for key in beyond:
            print(
                f"   {key[0]:18} {key[1]:10} {least[0][key]:8.3f} -> {other[key]:8.3f} ns  {ratios[key]:5.2f}"
            )
        count += len(beyond)
    return count


def different(programs: list[Path], compilers: list[str], level: int, options: argparse.Namespace) -> int:
    """How many functions have other bits from another compiler; a line for each."""
    names = [name for name in EXACT if not options.only or name in options.only]
    if not names:
        return 0
    hashes = [
        {(n, t): h for n, t, h in run(p, level, "hashes", *names) if t in options.types} for p in programs
    ]
    count = 0
    for compiler, other in zip(compilers[1:], hashes[1:], strict=True):
        wrong = [" ".join(key) for key, value in hashes[0].items() if other[key] != value]
        print(
            f"v{level} {compiler}: results of {len(hashes[0])} functions, {len(wrong)} differ: {', '.join(wrong)}"
        )
        count += len(wrong)
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compilers", nargs="+", default=["g++", "clang++-16", "clang++-19"])
    parser.add_argument("--levels", nargs="*", type=int, default=[2, 3, 4], help="of x86-64: 2, 3, 4")
    parser.add_argument("--only", nargs="*", default=[], metavar="name")
    parser.add_argument("--types", nargs="*", default=list(TYPES), choices=TYPES, metavar="type")
    parser.add_argument("--rounds", type=int, default=5, help="of times; 0: results alone")
    options = parser.parse_args()
    programs = [build(compiler) for compiler in options.compilers]
    count = 0
    for level in options.levels:
        count += different(programs, options.compilers, level, options)
        if options.rounds:
            count += slow(programs, options.compilers, level, options)
    sys.exit(bool(count))


if __name__ == "__main__":
    main()
