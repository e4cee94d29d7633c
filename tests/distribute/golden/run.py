"""Runs the programs and writes their results: golden/<name>.json. The reference is TensorFlow 2.21 with MirroredStrategy
over logical CPU devices.

    python run.py tensorflow [p1_variables ...]   # writes *.json
    python run.py gradtape [...]                                    # compares with them
"""

import importlib
import json
import os
import pathlib
import sys
import traceback

HERE = pathlib.Path(__file__).parent
REPLICAS = 2
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def plain(x):
    """Any result of a program as JSON: numbers, lists and strings."""
    import numpy as np

    if isinstance(x, dict):
        return {str(k): plain(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [plain(v) for v in x]
    if isinstance(x, (str, bool, int, float, type(None))):
        return x
    return np.asarray(x).tolist()


def error(f):
    """The class and the first line of what `f` raises."""
    try:
        f()
    except Exception as e:
        return [type(e).__name__, str(e).strip().split("\n")[0][:160]]
    return ["no error", ""]


def close(a, b, path=""):
    if isinstance(a, dict) and isinstance(b, dict):
        return [line for k in a for line in close(a[k], b.get(k), f"{path}.{k}")]
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return [
            line for i, (x, y) in enumerate(zip(a, b, strict=True)) for line in close(x, y, f"{path}[{i}]")
        ]
    if isinstance(a, (int, float)) and isinstance(b, (int, float)) and abs(a - b) <= 1e-5 * max(1, abs(a)):
        return []
    return [] if a == b else [f"{path}: {a} in TensorFlow; got {b}"]


def main(library, names):
    tf = importlib.import_module(library)
    cpus = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpus[0], [tf.config.LogicalDeviceConfiguration()] * REPLICAS)
    for name in names or sorted(p.stem for p in HERE.glob("p*_*.py")):
        program = importlib.import_module(name)
        strategy = tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(REPLICAS)])
        if library == "tensorflow":
            try:
                got = plain(program.program(tf, strategy))
            except Exception:
                traceback.print_exc()
                continue
            (HERE / f"{name}.json").write_text(json.dumps(got, indent=1) + "\n")
            print(name, "written", len(json.dumps(got)))
            continue
        want = json.loads((HERE / f"{name}.json").read_text())
        try:
            lines = close(want, plain(program.program(tf, strategy)))
        except Exception as e:
            lines = [f"{type(e).__name__}: {str(e)[:140]}"]
        print(name, "agrees" if not lines else f"{len(lines)} differences, first: {lines[0]}")


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    main(sys.argv[1], sys.argv[2:])
