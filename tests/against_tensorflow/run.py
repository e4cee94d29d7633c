"""gradtape against TensorFlow: `python tests/against_tensorflow/run.py [ops] [semantics] [programs] [examples]`.

`make parity` runs it in an environment that has both. The parts:

  ops        every public function on the samples of the op table and on the calls written in `calls/`:
             values, types, shapes, gradients, second derivatives, exceptions, signatures
  semantics  tests/semantics with TensorFlow in gradtape's place
  programs   random programs of `make fuzz`, eagerly and as functions
  examples   the examples in both libraries, their losses step by step; `--only gan` for one of them

A difference that is not in `known.py`, and an entry of `known.py` that is not needed any more, is a failure.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("ops", "semantics", "programs", "examples")


def ops(options: argparse.Namespace) -> int:
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    from against_tensorflow import session

    return session.main(options.only, options.words, options.verbose)


def semantics(options: argparse.Namespace) -> int:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/semantics"]
    env = dict(os.environ, GRADTAPE_TEST_LIB="tensorflow", PYTHONPATH=str(ROOT))
    return subprocess.run([*command, "-W", "ignore"], cwd=ROOT, env=env).returncode


def programs(options: argparse.Namespace) -> int:
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    from against_tensorflow import programs

    return programs.main(200, seed=1)


def examples(options: argparse.Namespace) -> int:
    script = Path(__file__).parent / "examples.py"
    return subprocess.run([sys.executable, str(script), *options.only.split()], cwd=ROOT).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=PARTS, help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--only", default="", help="functions whose name has this in it (math., =math.tanh)")
    parser.add_argument("--words", default="", help="calls whose text has this in it")
    parser.add_argument("-v", "--verbose", action="store_true", help="shows known and wider differences, too")
    options = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")  # TensorFlow's own kernels: the same on every machine
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    failed = [part for part in options.parts if globals()[part](options)]
    if failed:
        print(f"failed: {', '.join(failed)}")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
