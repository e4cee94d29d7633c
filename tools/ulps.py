"""How accurate float32 functions are: compares all 2^32 values, or a sample, with the C library's double functions.

    python tools/ulps.py                  # 18 functions of every float, pow, atan2 and hypot of many pairs: an hour or so
    python tools/ulps.py tanh --every 64  # every 64th block of 2^16 neighbours

Errors are in units of the last place of the exact result, as a float. Results that should be NaN, infinite or a
signed zero must be exactly that. Exits with 1 if an error is larger than the bound. GRADTAPE_ISA chooses the kernels.
"""

import argparse
import sys

import numpy as np
from scipy import special

import gradtape as tf

UNARY = {
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "erf": special.erf, "erfc": special.erfc,
}  # fmt: skip
BINARY = {"pow": np.power, "atan2": np.arctan2, "hypot": np.hypot}
BOUND = 2.0
BLOCK = 1 << 16
FEW = 16  # blocks at a time
LARGEST = float(np.finfo(np.float32).max)


def errors(name, *xs):
    """The errors of the function at the float32 values xs, in units of the last place; infinity where it is wrong."""
    got = ours(name)(*(tf.constant(x) for x in xs)).numpy()
    with np.errstate(all="ignore"):
        exact = (UNARY | BINARY)[name](*(x.astype(np.float64) for x in xs))
        rounded = exact.astype(np.float32)
        # Where the exact result is just beyond the largest float, returning the largest is no error; and vice versa.
        edge = (np.abs(exact) > LARGEST * (1 - 2.0**-23)) & (np.abs(exact) < LARGEST * (1 + 2.0**-23))
        off = np.abs(got.astype(np.float64) - exact) / np.spacing(np.abs(rounded))
    special_value = ~np.isfinite(rounded) | ~np.isfinite(got) | (rounded == 0) & (exact == 0)
    same = (got == rounded) & (np.signbit(got) == np.signbit(rounded)) | np.isnan(got) & np.isnan(rounded)
    near_edge = edge & (np.abs(got) >= LARGEST * (1 - 2.0**-23)) & (np.sign(got) == np.sign(exact))
    off[special_value] = np.where(same | near_edge, 0, np.inf)[special_value]
    off[np.isnan(off)] = np.inf
    return off


def ours(name):
    return tf.experimental.numpy.hypot if name == "hypot" else getattr(tf.math, name)


def blocks(every):
    """Every `every`-th block of neighbouring floats, some at a time."""
    starts = np.arange(0, 1 << 32, BLOCK * every, dtype=np.uint64)
    for k in range(0, len(starts), FEW):
        bits = starts[k : k + FEW, None] + np.arange(BLOCK, dtype=np.uint64)
        yield (bits.astype(np.uint32).reshape(-1).view(np.float32),)


def pairs(count):
    """Special values with each other, then random pairs: any bits, and sizes near 1."""
    edges = np.float32([0, 1e-45, 1e-38, 0.5, 1, 1.5, 2, 3, 127, 2**24 - 1, 2**24, 3e38, np.inf, np.nan])
    edges = np.concatenate([edges, -edges])
    yield tuple(x.reshape(-1) for x in np.meshgrid(edges, edges))
    random = np.random.RandomState(3)
    for _ in range(max(1, count // (FEW * BLOCK))):
        n = FEW * BLOCK
        yield tuple(
            random.randint(0, 1 << 32, n, np.uint64).astype(np.uint32).view(np.float32) for _ in range(2)
        )
        sizes = np.exp(random.uniform(-4, 4, (2, n))) * random.choice([-1, 1], (2, n))
        yield np.float32(np.abs(sizes[0])), np.float32(sizes[1])
        yield np.float32(sizes[0]), np.rint(np.float32(sizes[1]))


def worst(name, every=1):
    """The largest error over every `every`-th block of neighbouring floats, or so many pairs; and where it is."""
    largest, at = 0.0, (np.float32(0),)
    for xs in blocks(every) if name in UNARY else pairs((1 << 28) // every):
        off = errors(name, *xs)
        i = off.argmax()
        if off[i] > largest:
            largest, at = float(off[i]), tuple(x[i] for x in xs)
    return largest, at


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=[*UNARY, *BINARY], metavar="name")
    parser.add_argument("--every", type=int, default=1)
    options = parser.parse_args()
    failed = False
    for name in options.names:
        largest, at = worst(name, options.every)
        wrong = largest > BOUND
        failed |= wrong
        where = ", ".join(f"{x:.9g}" for x in at)
        print(
            f"{name:5} at most {largest:.3f} ulp, at {where}{'  <-- too much' if wrong else ''}", flush=True
        )
    sys.exit(failed)


if __name__ == "__main__":
    main()
