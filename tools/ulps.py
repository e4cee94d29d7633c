"""How exact functions of float32 are: compares all 2^32 values, or a sample, with the C library's functions of double.

    python tools/ulps.py                  # exp, log, tanh, erf and erfc of every float: some minutes each on one thread
    python tools/ulps.py tanh --every 64  # every 64th block of 2^16 neighbours

Errors are in units of the last place of the exact result, as a float. Results that ought to be NaN, infinite or a zero
of a sign have to be just that. Exits with 1 where an error is larger than the bound. GRADTAPE_ISA chooses the kernels.
"""

import argparse
import sys

import numpy as np

import gradtape as tf

BOUNDS = {"exp": 2.0, "log": 2.0, "tanh": 2.0, "erf": 2.0, "erfc": 2.0}
BLOCK = 1 << 16
FEW = 16  # blocks at a time


def errors(name, x):
    """The errors of the function at the float32 values x, in units of the last place; infinity where it is wrong."""
    function = getattr(tf.math, name)
    got = function(tf.constant(x)).numpy()
    with np.errstate(all="ignore"):
        exact = function(tf.constant(x.astype(np.float64))).numpy()
        rounded = exact.astype(np.float32)
        off = np.abs(got.astype(np.float64) - exact) / np.spacing(np.abs(rounded))
    special = ~np.isfinite(rounded) | (rounded == 0) & (exact == 0)
    same = (got == rounded) & (np.signbit(got) == np.signbit(rounded)) | np.isnan(got) & np.isnan(rounded)
    off[special] = np.where(same[special], 0, np.inf)
    off[np.isnan(off)] = np.inf
    return off


def worst(name, every=1):
    """The largest error over every `every`-th block of neighbouring floats, and where it is."""
    largest, at = 0.0, np.float32(0)
    starts = np.arange(0, 1 << 32, BLOCK * every, dtype=np.uint64)
    for k in range(0, len(starts), FEW):
        bits = starts[k : k + FEW, None] + np.arange(BLOCK, dtype=np.uint64)
        x = bits.astype(np.uint32).reshape(-1).view(np.float32)
        off = errors(name, x)
        i = off.argmax()
        if off[i] > largest:
            largest, at = float(off[i]), x[i]
    return largest, at


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(BOUNDS), metavar="name")
    parser.add_argument("--every", type=int, default=1)
    options = parser.parse_args()
    failed = False
    for name in options.names:
        largest, at = worst(name, options.every)
        wrong = largest > BOUNDS[name]
        failed |= wrong
        print(
            f"{name:5} at most {largest:.3f} ulp, at {at:.9g}{'  <-- too much' if wrong else ''}", flush=True
        )
    sys.exit(failed)


if __name__ == "__main__":
    main()
