"""`tf.DeviceSpec`: names of devices taken apart and put together, with TensorFlow's answers."""

import pytest

import gradtape as tf

WHOLE = "/job:worker/replica:0/task:1/device:CPU:0"


@pytest.mark.parametrize(
    "name, shown, parts",
    [
        (WHOLE, WHOLE, ("worker", 0, 1, "CPU", 0)),
        ("/cpu:0", "/device:CPU:0", (None, None, None, "CPU", 0)),
        ("GPU:1", "/device:GPU:1", (None, None, None, "GPU", 1)),
        ("/device:gpu:*", "/device:GPU:*", (None, None, None, "GPU", None)),
        ("/CPU", "/device:CPU:*", (None, None, None, "CPU", None)),
        ("/job:*/task:3", "/job:*/task:3", ("*", None, 3, None, None)),
        ("/task:0/tpu:2", "/task:0/device:TPU:2", (None, None, 0, "TPU", 2)),
        ("", "", (None,) * 5),
    ],
)
def test_names(name, shown, parts):
    spec = tf.DeviceSpec.from_string(name)
    assert spec.to_string() == shown
    assert (spec.job, spec.replica, spec.task, spec.device_type, spec.device_index) == parts
    assert spec == tf.DeviceSpec(*parts) and hash(spec) == hash(tf.DeviceSpec(*parts))


def test_what_is_no_name():
    with pytest.raises(ValueError, match="Unknown attribute 'foo'"):
        tf.DeviceSpec.from_string("/foo:1")
    with pytest.raises(ValueError, match="Multiple device types"):
        tf.DeviceSpec.from_string("/cpu:0/gpu:1")


def test_specs_are_merged_and_replaced():
    spec = tf.DeviceSpec(job="worker", device_type="gpu")
    assert spec.make_merged_spec(tf.DeviceSpec(task=2)).to_string() == "/job:worker/task:2/device:GPU:*"
    assert spec.replace(job=None, device_index=3).to_string() == "/device:GPU:3"
    assert spec.to_string() == "/job:worker/device:GPU:*"


def test_a_spec_names_a_device():
    with tf.device(tf.DeviceSpec(device_type="CPU", device_index=0)):
        assert tf.DeviceSpec.from_string((tf.constant(1.0) + 1.0).device).device_type == "CPU"
