"""The tables that kernels look up (`core/kernels/tables.h`), `core/float_tables.cpp` and `core/double_tables.cpp`:
writes both.

    pip install mpmath && python tools/fit_tables.py

The points of the table of doubles are those next to each i / 64 where erf(x) is a double to 8 digits more (Gal,
"Computing elementary functions: a new approach for achieving high accuracy and good performance", 1986).
"""

import struct
from pathlib import Path

import mpmath
from mpmath import mpf

mpmath.mp.dps = 60
CORE = Path(__file__).parents[1] / "core"
HEAD = """\
// {about}.
// Written by `python tools/fit_tables.py`, read by kernels/tables.h.
// clang-format off
"""


def bell(x):
    """The slope of erf."""
    return 2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-x * x)


def float_digits(x):
    single = struct.unpack("f", struct.pack("f", float(x)))[0]
    return single.hex().replace("0000000p", "p") + "f"


def double_digits(x):
    return float(x).hex()


def table(name, digits, kind, rows, in_line):
    """The lines of one table, in_line rows each."""
    texts = ["{" + ", ".join(digits(x) for x in row) + "}," for row in rows]
    declared = f"const {kind} {name}[{len(rows)}][{len(rows[0])}]"
    lines = [" ".join(texts[i : i + in_line]) for i in range(0, len(texts), in_line)]
    return [
        f'extern "C" [[gnu::visibility("hidden")]] {declared};',
        f"{declared} = {{",
        *(f"  {line}" for line in lines),
        "};",
    ]


def near_points(function, slope, last):
    """The function and a slope at 0, 1/64, ... last."""
    points = [mpf(i) / 64 for i in range(int(last * 64) + 1)]
    return [(function(y), slope(y)) for y in points]


def erf_row(i):
    """The point next to i / 64 at which erf is nearest to a double; erf, erfc and the slope of erf there."""

    def off(x):
        value = mpmath.erf(x)
        return abs(mpf(float(value)) / value - 1)

    x = min((mpf(i) / 64 + j * mpf(2) ** -36 for j in range(1, 400)), key=off) if i else mpf(0)
    return x, mpmath.erf(x), mpmath.erfc(x), bell(x)


def write(name, about, *tables):
    lines = [line for lines in tables for line in lines]
    (CORE / name).write_text(HEAD.format(about=about) + "\n".join(lines) + "\n")


if __name__ == "__main__":
    write(
        "float_tables.cpp",
        "What functions of float look up at i / 64: erf, erfc and tanh, each with a slope (that of erf for erfc)",
        table("gradtape_float_erf", float_digits, "float", near_points(mpmath.erf, bell, 4), 3),
        table("gradtape_float_erfc", float_digits, "float", near_points(mpmath.erfc, bell, 10.0625), 3),
        table(
            "gradtape_float_tanh",
            float_digits,
            "float",
            near_points(mpmath.tanh, lambda y: mpmath.sech(y) ** 2, 9.0625),
            3,
        ),
    )
    write(
        "double_tables.cpp",
        "What functions of double look up next to i / 64: a point x, erf(x), erfc(x) and the slope of erf",
        table("gradtape_double_erf", double_digits, "double", [erf_row(i) for i in range(385)], 1),
    )
