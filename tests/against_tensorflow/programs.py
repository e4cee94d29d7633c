"""Random programs on both libraries: results, final values of the variables, and gradients, eagerly and as a function.

The programs are those of `make fuzz` (tools/fuzz/programs.py), which checks whether gradtape agrees with itself; here
TensorFlow is the reference. A program that fails on TensorFlow must fail with the same class of error.
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from tools.fuzz.programs import Programs

# Tolerances by the least precise type in a program: the two libraries round in a different order.
_LIMITS = {"bfloat16": 0.25, "float16": 0.05, "float32": 2e-3, "complex64": 2e-3}
_LIMIT = 1e-8


def _array(tf: Any, value: Any) -> Any:
    if value is None:
        return None
    value = tf.convert_to_tensor(value)
    return np.asarray(tf.cast(value, tf.float32) if value.dtype == tf.bfloat16 else value)


def _run(tf: Any, text: str, file: str, function: bool) -> list:
    """The results of the program: arrays, None for gradients that do not exist; or the class of an error."""
    names: dict[str, Any] = {"tf": tf, "np": np, "__name__": "program"}
    try:
        exec(compile(text, file, "exec"), names)
        inputs, variables, body = names["inputs"], names["variables"], names["body"]

        def step(*xs: Any) -> Any:
            with tf.GradientTape() as tape:
                tape.watch(xs)
                results = body(*xs)
            return results, tape.gradient(results, [*xs, *variables])

        results, gradients = (tf.function(step) if function else step)(*inputs)
        return [_array(tf, v) for v in (*results, *variables, *gradients)]
    except Exception as e:
        return [type(e).__name__]


def _difference(ours: list, theirs: list, limit: float, free: bool) -> str:
    """Where two outcomes differ; an empty string if they agree.

    `free`: control flow depends on values. A loop over a tensor whose rows are not used connects it in TensorFlow, with
    zeros; here it does not.
    """
    if len(ours) != len(theirs):
        return f"{ours if len(ours) == 1 else 'runs'} here, {theirs if len(theirs) == 1 else 'runs'} there"
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        if free and a is None and isinstance(b, np.ndarray) and not b.any():
            continue
        if a is None or b is None or isinstance(a, str) or isinstance(b, str):
            if a is not b and not (isinstance(a, str) and a == b):
                return f"value {i}: {a} here, {b} there"
        elif a.shape != b.shape or a.dtype != b.dtype:
            return f"value {i}: {a.dtype}{a.shape} here, {b.dtype}{b.shape} there"
        elif not np.allclose(a, b, rtol=limit, atol=limit, equal_nan=True):
            return f"value {i}: {a} here, {b} there"
    return ""


def main(count: int, seed: int) -> int:
    """Compares the libraries, and returns the number of programs that differ."""
    import tensorflow

    import gradtape

    tensorflow.get_logger().setLevel("ERROR")
    warnings.simplefilter("ignore")
    programs, bad = Programs(seed), 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            text = programs.text(number)
            if "recompute_grad" in text:
                continue  # TensorFlow gives 0 for a variable that is also an argument
            limit = max([_LIMITS[d] for d in _LIMITS if f"tf.{d}" in text], default=_LIMIT)
            file = Path(folder) / f"program{number}.py"  # autograph reads it
            file.write_text(text)
            for function in (False, True):
                ours, theirs = (_run(tf, text, str(file), function) for tf in (gradtape, tensorflow))
                words = _difference(ours, theirs, limit, "FREE" in text)
                if words:
                    bad += 1
                    print(f"program {seed}:{number}, {'function' if function else 'eager'}: {words}\n{text}")
                    break
    print(f"programs: {count} of seed {seed}, {bad} differ")
    return bad


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    sys.exit(bool(main(int(sys.argv[1]), int(sys.argv[2]))))
