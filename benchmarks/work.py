"""How much work the workloads are, whatever the library: what a step must multiply and move, and how long that takes.

Products count two operations for each pair of factors, as the measured rates of `limits` do. Bytes are the least
that must come from memory and go back: parameters with their optimizer's state, inputs, results; gradients and
activations may stay in the caches. Functions of elements count where they are most of the work (W11), at the best
rate that any library reaches for the function by itself in the part `large`; elsewhere tanh, exp and random numbers
count for nothing. So a limit is a lower bound for programs that multiply in the ordinary way, not a reachable time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import report
from workloads.data import BATCH, HEADS, SEQUENCE, WIDTH

_FLOAT = 4  # bytes
_ADAM_STATE = 6 * _FLOAT  # a parameter and its two moments are read and written


class Work(NamedTuple):
    """Operations of products, bytes of memory, functions of elements; what takes the rest (from profiles), and how near
    we want to be."""

    operations: float
    bytes: float
    rest: str
    bar: float | None = None
    functions: tuple[str, ...] = ()  # of the part `large`, each once
    elements: float = 0  # of each of them


def _product(rows: float, inner: float, columns: float) -> float:
    return 2 * rows * inner * columns


def _layers(batch: int, *widths: int) -> float:
    """A training step of dense layers: the product, that of the weights' gradient, and, except in the first layer,
    that of the gradient of the input."""
    each = [_product(batch, i, o) for i, o in zip(widths, widths[1:], strict=False)]
    return 3 * sum(each) - each[0]


def _parameters(*widths: int) -> int:
    return sum(i * o + o for i, o in zip(widths, widths[1:], strict=False))


def _mlp(batch: int, *widths: int) -> tuple[float, float]:
    inputs = batch * (widths[0] + widths[-1])
    return _layers(batch, *widths), _ADAM_STATE * _parameters(*widths) + _FLOAT * inputs


def _cnn() -> tuple[float, float]:
    """W5. A convolution is a product of as many rows as there are pixels; no gradient of the images is requested."""
    images = 64
    first, second = (
        _product(images * 28 * 28, 9 * 1, 32),
        _product(images * 14 * 14, 9 * 32, 64),
    )
    dense = (7 * 7 * 64, 128, 10)
    # The first dense layer also needs the gradient of its input, since there are layers below.
    operations = 2 * first + 3 * second + _layers(images, *dense) + _product(images, *dense[:2])
    parameters = 9 * 32 + 32 + 9 * 32 * 64 + 64 + _parameters(*dense)
    return operations, _ADAM_STATE * parameters + _FLOAT * images * 28 * 28


def _lstm() -> tuple[float, float]:
    """W6. Inputs have no gradient, states have one; the first state is zero."""
    steps, batch, width, hidden = 50, 32, 64, 128
    inputs, states = (
        steps * _product(batch, width, 4 * hidden),
        (steps - 1) * _product(batch, hidden, 4 * hidden),
    )
    parameters = (width + hidden + 1) * 4 * hidden
    return 2 * inputs + 3 * states, _ADAM_STATE * parameters + _FLOAT * steps * batch * width


def _transformer() -> tuple[float, float]:
    """W7. All products of both blocks have two gradients: the first layer norm has gradients for scale and shift."""
    rows = BATCH * SEQUENCE
    dense = [(WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)]
    scores = _product(
        BATCH * HEADS * SEQUENCE, WIDTH // HEADS, SEQUENCE
    )  # queries and keys; then weights and values
    forward = sum(_product(rows, i, o) for i, o in dense) + 2 * scores
    parameters = 2 * (sum(i * o + o for i, o in dense) + 4 * WIDTH)
    return 3 * 2 * forward, _ADAM_STATE * parameters + _FLOAT * rows * WIDTH


def _jacobian(batch: int) -> tuple[float, float]:
    """W8: the value, and 64 rows that are scaled by tanh's derivative and go back through one product."""
    value = _product(batch, 64, 128) + _product(batch, 128, 64)
    return value + batch * _product(64, 128, 64), _FLOAT * (batch * 64 * 64 + batch * 64 + 2 * 64 * 128)


def _pinn() -> tuple[float, float]:
    """W10: u, its first derivatives and the second one are four passes over the layers, each of which has two
    gradients; the weights do not need the derivative with respect to the points' x and t."""
    points, widths = 1024, (2, 32, 32, 32, 1)
    once = sum(_product(points, i, o) for i, o in zip(widths, widths[1:], strict=False))
    return 3 * 4 * once, _ADAM_STATE * _parameters(*widths) + _FLOAT * 2 * points


ADAM = "Adam, 4 tensors of 1,000,000"  # of the part `optimizers`
WORK = {
    "W1": Work(
        0,
        2 * _FLOAT,
        "200 steps on one number, each waiting for the one before: a fifth is sin and cos, the rest the start of each step.",
    ),
    "W2": Work(
        *_mlp(1, 4, 64, 64, 2),
        "the call itself and about 30 small steps of a program; far from any rate of the machine.",
    ),
    "W3": Work(*_mlp(32, 32, 64, 64, 1), "as W2; products of 32 rows take one or two microseconds each."),
    "W4": Work(
        *_mlp(128, 784, 512, 512, 10),
        "nearly all of it is Adam's pass over 670,000 parameters, which the limit assumes to overlap with the products.",
        1.5,
    ),
    "W5": Work(
        *_cnn(),
        "Winograd's algorithm for the 3 x 3 convolutions needs fewer multiplications than are counted, which makes up for "
        "pooling, biases, relu (together a fifth of the time) and Adam.",
        1.5,
    ),
    "W6": Work(
        *_lstm(),
        "the gates (an eighth of the time) and splitting them; products of 32 rows, one after the other, run below the rate "
        "of large ones.",
    ),
    "W7": Work(
        *_transformer(),
        "seven eighths of the time are products with 256 to 1,024 columns, which run below the rate of 2,048; the rest is "
        "gelu, layer norm, softmax, Adam (4 %) and transposing heads.",
        1.5,
    ),
    "W8a": Work(*_jacobian(1), "the call, tanh, and four products of a few microseconds in all."),
    "W8b": Work(
        *_jacobian(32),
        "32 products of 64 x 128 x 64, which run below the rate of large ones, and computing their operands (a sixth).",
    ),
    "W9": Work(
        0,
        _FLOAT * 100 * 100,
        "the call and some 20 loops over data in the cache; a quarter of the time goes into placing "
        "three diagonals in a matrix of zeros.",
    ),
    "W10": Work(
        *_pinn(),
        "two fifths of the time are tanh and its three derivatives on 1,024 x 32; products with 32 columns run at half "
        "the rate of large ones.",
    ),
    "W11": Work(
        0,
        2 * _FLOAT * 4_000_000,
        "one loop over tiles in the cache with 13 operations: tanh, sigmoid and exp take half of the "
        "time; products and sums, each a pass over a tile, take the rest. It is bound by arithmetic, not by memory.",
        2.0,
        ("tanh", "sigmoid", "exp"),
        4_000_000,
    ),
    "W12": Work(
        0,
        _FLOAT * (2 * 4096 * 64 + 2 * 4096),
        "reading rows of 256 bytes at random places (an eighth of the time) and updating them (a quarter); the mean and the "
        "rows of its gradient are written to memory in between.",
    ),
    ADAM: Work(
        0,
        (_ADAM_STATE + _FLOAT) * 4_000_000,
        "one loop that reads four arrays and writes three in place, with everything else in registers; the square root and "
        "the division of an element take as long as half of its 28 bytes of memory traffic (on one thread).",
        1.2,
    ),
}


class Limit(NamedTuple):
    """The least time in microseconds, and what takes it."""

    us: float
    of: str


def limit(
    work: Work, rates: dict[str, Any], threads: int, functions: dict[str, float] | None = None
) -> Limit:
    """The longest of multiplying at the best rate of any library, moving at the best rate of any pattern, and computing
    functions at the best rate of each (`rates_of_functions`)."""
    product = work.operations / max(rates["gflops"][str(threads)].values()) / 1e3
    memory = work.bytes / max(rates["memory_gb_s"][str(threads)].values()) / 1e3
    computed = sum((functions or {}).get(name, 0.0) for name in work.functions) * work.elements
    return max(Limit(product, "products"), Limit(memory, "memory"), Limit(computed, "functions"))


def rates_of_functions(parts: dict[str, Any]) -> dict[str, float]:
    """The least microseconds an element that any library takes for an op of the part `large`, at any size."""
    rates: dict[str, float] = {}
    for case, cells in parts.get("large", {}).get("cases", {}).items():
        name, size = case.rsplit(" ", 1)
        for cell in cells.values():
            if "min" in cell.get("op", {}):
                rates[name] = min(rates.get(name, float("inf")), cell["op"]["min"] / int(size))
    return rates


def near(parts: dict[str, Any], threads: int) -> str:
    """How far each workload is from the limit: a table, with the causes of the remaining time."""
    cases = parts.get("workloads", {}).get("cases", {}) | parts.get("optimizers", {}).get("cases", {})
    rows, words = [], []
    functions = rates_of_functions(parts)
    for name, work in WORK.items():
        ours = report.best(cases.get(name, {}), "step", "gradtape")
        if not ours:
            continue
        least = limit(work, parts["limits"], threads, functions)
        distance = ours[1]["min"] / least.us
        far = work.bar is not None and distance > work.bar
        rows.append([
            name, report.number(ours[1]["min"]), f"{work.operations / 1e6:,.1f}", f"{work.bytes / 1e6:,.2f}",
            f"{len(work.functions) * work.elements / 1e6:,.0f}" if work.functions else "",
            f"{report.number(least.us)} ({least.of})" if least.us >= 1 else "under 1",
            "" if least.us < 1 else f"**{report.factor(distance)}**" if far else report.factor(distance),
            "" if work.bar is None else f"at most {work.bar:g}",
        ])  # fmt: skip
        words.append(f"- {name}: {work.rest}")
    head = [
        "",
        "gradtape, us",
        "products, 10^6 operations",
        "memory, MB",
        "functions, 10^6",
        "limit, us",
        "ours / limit",
        "goal",
    ]
    return "\n\n".join([report._table(head, rows), "Where the rest is:", "\n".join(words)])
