"""Runs the mistakes, and records their output: with TensorFlow, in tensorflow.json.

python tests/mistakes/record.py            # with the Python of an environment that has TensorFlow
"""

from __future__ import annotations

import contextlib
import io
import json
import linecache
import re
import sys
import tomllib
import warnings
from pathlib import Path

HERE = Path(__file__).parent


def mistakes() -> list[dict]:
    return tomllib.loads((HERE / "mistakes.toml").read_text(encoding="utf-8"))["mistake"]


def names(tf) -> dict:
    """The names that the code of a mistake may use."""
    import numpy as np

    tf.keras.utils.set_random_seed(0)
    model = tf.keras.Sequential([tf.keras.layers.Dense(2)])
    x = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    model(x)
    return {"tf": tf, "np": np, "x": x, "y": tf.constant([1.0, 2.0]), "model": model,
            "v": tf.Variable(2.0, name="v"), "w": tf.Variable(3.0, name="w")}  # fmt: skip


def seen(mistake: dict, known: dict, folder: Path, ask: bool = False) -> str:
    """The output of a mistake: printed text, warnings, and the error with its notes. No traceback."""
    file = folder / "mistake.py"  # a file, as AutoGraph reads the source
    file.write_text(
        mistake["code"].strip() + "\n" + (f"print({mistake['ask']})\n" if ask and "ask" in mistake else "")
    )
    linecache.clearcache()
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            exec(
                compile(file.read_text(), str(file), "exec"),
                dict(known, __name__="mistake", __file__=str(file)),
            )
        except Exception as error:
            with contextlib.redirect_stderr(out):  # as the interpreter prints it, with suggested names
                sys.__excepthook__(type(error), error.with_traceback(None), None)
    lines = [f"{w.category.__name__}: {w.message}" for w in warned]
    return "\n".join([*lines, out.getvalue()]).replace(str(folder), "").strip()


def main() -> None:
    import tempfile

    import tensorflow as tf

    known = names(tf)
    with tempfile.TemporaryDirectory() as folder:
        said = {m["title"]: seen(m, known, Path(folder)) for m in mistakes()}
    said = {title: re.sub(r"0x[0-9a-f]+", "0x...", text) for title, text in said.items()}
    text = json.dumps({"version": tf.__version__, "said": said}, indent=1, ensure_ascii=False) + "\n"
    (HERE / "tensorflow.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
