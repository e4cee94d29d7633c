"""Writes `core/tables/`, which kernels look up (`core/kernels/tables.h`): `python tools/fit_tables.py`, with mpmath."""

import struct
from pathlib import Path

import mpmath
from mpmath import mpf

mpmath.mp.dps = 60
TABLES = Path(__file__).parents[1] / "core" / "tables"
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


def near_points(function, slope, last, parts=64):
    """The function and a slope at 0, 1/parts, ... last."""
    points = [mpf(i) / parts for i in range(int(last * parts) + 1)]
    return [(function(y), slope(y)) for y in points]


def powers():
    """2^(j / 256) rounded, and the rest."""
    values = [mpf(2) ** (mpf(j) / 256) for j in range(256)]
    return [(value, value - mpf(float(value))) for value in values]


def write(name, about, *tables):
    lines = [line for lines in tables for line in lines]
    (TABLES / name).write_text(HEAD.format(about=about) + "\n".join(lines) + "\n")


if __name__ == "__main__":
    write(
        "float.cpp",
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
        "double_exp.cpp",
        "What exponentials of double look up: 2^(j / 256) and the rest",
        table("gradtape_double_exp", double_digits, "double", powers(), 2),
    )
    for function in mpmath.erf, mpmath.erfc:
        name = f"double_{function.__name__}"
        write(
            f"{name}.cpp",
            f"What {function.__name__} of double looks up: its values at i / 128, with the slope of erf",
            table(f"gradtape_{name}", double_digits, "double", near_points(function, bell, 6, 128), 2),
        )
