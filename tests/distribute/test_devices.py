"""Replicas on several devices of XLA at once: eight host devices train as one does."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason='JAX is an extra: "gradtape[xla]"'
)
PROGRAM = Path(__file__).parent / "programs" / "devices.py"


def trained(count, engine):
    env = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "GRADTAPE_ENGINE", "TF_CONFIG")}
    done = subprocess.run(
        [sys.executable, PROGRAM, str(count), engine], capture_output=True, text=True, env=env, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def one():
    return trained(1, "native")


def test_eight_devices_train_as_one(one):
    eight = trained(8, "xla")
    assert eight["devices"] == 8  # each has a copy of the variables
    np.testing.assert_allclose(eight["losses"], one["losses"], rtol=1e-5)
    np.testing.assert_allclose(eight["bias"], one["bias"], atol=1e-5)
    assert eight["right"] == one["right"]
    assert (eight["rows"], eight["steps"], eight["largest"]) == (128.0, 8, 3.5)
    assert len({tuple(x) for x in eight["noise"]}) == 8  # every replica draws its own
    assert "different values" in eight["error"] and "replica 1" in eight["error"]


def test_replicas_that_take_turns_train_as_one(one):
    two = trained(2, "native")
    np.testing.assert_allclose(two["losses"], one["losses"], rtol=1e-5)
    assert "different values" in two["error"]


def test_strategies_run_on_accelerators():
    """Host devices of XLA stand in for GPUs and TPUs."""
    program = PROGRAM.with_name("accelerators.py")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["listed"] == [f"/physical_device:GPU:{i}" for i in range(4)]
    assert found["tf.device"] == [[2], [3.0, 5.0]]
    assert (found["moved"], found["from another"], found["inside"], found["one device"]) == (
        None,
        [1],
        [3],
        [1],
    )
    assert found["mirrored"][0] == [0, 1, 2, 3] and found["mirrored"][3] == found["replicas"] == 4
    np.testing.assert_allclose(found["mirrored"][1], [0.6, 1.6], rtol=1e-6)
    assert found["mirrored"][2] == pytest.approx(2.2)
    assert found["two of them"] == [[1, 3], 4.0]
    assert "no device 'GPU:7'" in found["unknown"]
    assert "Could not satisfy device specification '/device:GPU:9'" in found["hard"]
    assert found["tpus"] == 4


def test_tensorflow_agrees_with_replicas_on_devices():
    golden = PROGRAM.parents[1] / "golden"
    names = ("p3_reduce", "p4_all_reduce", "p5_custom_loop", "p6_keras_fit", "p7_function_run", "p8_on_read")
    env = dict(os.environ, GRADTAPE_ENGINE="xla")
    if importlib.util.find_spec("keras") is None:
        names = [name for name in names if "keras" not in name]
    done = subprocess.run(
        [sys.executable, golden / "run.py", "gradtape", *names],
        capture_output=True, text=True, env=env, timeout=300, cwd=golden,
    )  # fmt: skip
    assert done.stdout.split("\n")[:-1] == [f"{name} agrees" for name in names], done.stderr[-2000:]


@pytest.mark.parametrize("name", ["distributed_custom_loop", "distributed_keras"])
def test_examples_learn_the_same_in_all_strategies(name):
    """Losses of one replica and of two, whose variables are where the strategy places them."""
    if "keras" in name and importlib.util.find_spec("keras") is None:
        pytest.skip("Keras is an extra")
    code = f"import json, {name}; print(json.dumps([float(x) for x in {name}.main(True, ['OPTION'])]))"
    examples = Path(__file__).parents[2] / "examples"
    found = {}
    for option in ("--mirrored", "--one-device", "--central-storage"):
        command = [sys.executable, "-c", code.replace("OPTION", option)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=examples)
        assert done.returncode == 0, done.stderr[-2000:]
        found[option] = json.loads(done.stdout.splitlines()[-1])
    np.testing.assert_allclose(found["--one-device"], found["--mirrored"], rtol=2e-4)
    np.testing.assert_allclose(found["--central-storage"], found["--mirrored"], rtol=1e-6)
