"""Runs the corpus on TensorFlow and stores the results: `python tests/programs/referee.py`.

Needs an interpreter that has TensorFlow. `reference.json` has, for each program, two numbers per
result (see `runner.summary`); the tests compare with them.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
FILE = HERE / "reference.json"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="programs; all by default")
    parser.add_argument(
        "--mode", default="eager", help="run in another mode and compare with the file instead"
    )
    options = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    sys.path.insert(0, str(HERE.parent))
    import tensorflow as tf

    from programs import runner

    tf.get_logger().setLevel("ERROR")
    written = json.loads(FILE.read_text()) if FILE.exists() else {}
    failed = 0
    for name in options.names or runner.CORPUS:
        start = time.time()
        try:
            (results,) = runner.run(tf, name, options.mode)
        except Exception as e:
            failed += 1
            print(f"{name}: {type(e).__name__}: {e}")
            continue
        found = runner.summary(results)
        if options.mode == "eager":
            written[name] = found
        else:
            off = runner.summary_difference(found, written[name], results)
            failed += off is not None
            print(f"{name}: {off or 'agrees'} ({time.time() - start:.1f} s)")
    if options.mode == "eager":
        gone = [name for name in written if name not in runner.CORPUS]
        for name in gone:
            del written[name]
        lines = (f"{json.dumps(k)}: {json.dumps(written[k])}" for k in sorted(written))
        FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        print(f"{len(written)} programs in {FILE}, TensorFlow {tf.__version__}")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
