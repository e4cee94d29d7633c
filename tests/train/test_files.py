"""The safetensors format, damaged files, the file `checkpoint`, and checkpoints of TensorFlow's."""

import json
import logging
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

import gradtape as tf
from gradtape.io.framing import crc32c
from gradtape.train import safetensors

DATA = Path(__file__).parent / "data"


def header_of(path):
    data = Path(path).read_bytes()
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def test_the_format(tmp_path):
    path = str(tmp_path / "x.safetensors")
    x = tf.constant([[1.0, 2.0]])
    safetensors.save(path, {"b": tf.constant([True]), "a": x, "c": tf.constant(1 + 2j), "n": tf.constant(7)})
    header, data = header_of(path)
    about = header.pop("__metadata__")
    assert about["format"] == "gradtape" and json.loads(about["complex"]) == ["c"]
    assert header == {
        "c": {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]},
        "a": {"dtype": "F32", "shape": [1, 2], "data_offsets": [16, 24]},
        "n": {"dtype": "I32", "shape": [], "data_offsets": [24, 28]},
        "b": {"dtype": "BOOL", "shape": [1], "data_offsets": [28, 29]},
    }
    assert data == np.complex128(1 + 2j).tobytes() + x.numpy().tobytes() + np.int32(7).tobytes() + b"\x01"
    assert int.from_bytes(Path(path).read_bytes()[:8], "little") % 8 == 0


def test_files_of_other_libraries(tmp_path):
    """No checksum, unsorted, a header that is not padded."""
    array = np.arange(3, dtype=np.float32)
    header = json.dumps({"w": {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}}).encode()
    path = tmp_path / "m.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + array.tobytes())
    v = tf.Variable([0.0, 0.0, 0.0])
    tf.train.Checkpoint(w=v).read(path).assert_consumed()
    assert v.numpy().tolist() == [0.0, 1.0, 2.0]
    assert tf.train.list_variables(tmp_path / "m")[0][1] == [3]


def test_an_empty_checkpoint(tmp_path):
    path = tf.train.Checkpoint().write(tmp_path / "empty")
    tf.train.Checkpoint().read(path).assert_consumed()
    assert tf.train.list_variables(path) == []


def test_damage_anywhere_is_noticed(tmp_path):
    v = tf.Variable(tf.range(40.0))
    c = tf.train.Checkpoint(v=v, w=tf.Variable(1))
    path = Path(c.save(tmp_path / "ck") + ".safetensors")
    whole = path.read_bytes()
    v.assign(tf.zeros([40]))
    rng = random.Random(0)
    cases = [whole[:n] for n in (0, 1, 7, 8, 9, 50, len(whole) - 1)] + [whole + b"\0", b"garbage" * 9]
    for _ in range(100):
        at, byte = rng.randrange(len(whole)), rng.randrange(1, 256)
        cases.append(whole[:at] + bytes([whole[at] ^ byte]) + whole[at + 1 :])
    for data in cases:
        path.write_bytes(data)
        with pytest.raises(tf.errors.DataLossError, match="is damaged, or not a safetensors file: "):
            c.restore(tmp_path / "ck-1")
    assert v.numpy().max() == 0.0
    path.write_bytes(whole)
    c.restore(tmp_path / "ck-1").assert_consumed()
    assert v.numpy()[39] == 39.0


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}, "8 bytes for float32"),
        ({"dtype": "Q4", "shape": [2], "data_offsets": [0, 8]}, "Q4"),
        ({"dtype": "F32", "shape": [2]}, "data_offsets"),
        ({"dtype": "F32", "shape": [-2], "data_offsets": [8, 0]}, "damaged"),
        (3, "damaged"),
    ],
)
def test_wrong_headers(tmp_path, entry, words):
    header = json.dumps({"w": entry}).encode()
    path = tmp_path / "m.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\0" * 8)
    with pytest.raises(tf.errors.DataLossError, match=words):
        tf.train.load_checkpoint(tmp_path / "m")


# ---- the file `checkpoint` ------------------------------------------------------------------------


def test_state_moves_with_its_folder(tmp_path):
    c = tf.train.Checkpoint(v=tf.Variable(1.0))
    c.save(tmp_path / "a" / "ck")
    shutil.move(tmp_path / "a", tmp_path / "b")
    assert tf.train.latest_checkpoint(tmp_path / "b") == str(tmp_path / "b" / "ck-1")
    state = tf.train.get_checkpoint_state(tmp_path / "b")
    assert state.model_checkpoint_path == str(tmp_path / "b" / "ck-1")
    assert state.all_model_checkpoint_paths == [str(tmp_path / "b" / "ck-1")]


def test_state_without_files(tmp_path, caplog):
    assert tf.train.latest_checkpoint(tmp_path) is None
    c = tf.train.Checkpoint(v=tf.Variable(1.0))
    Path(c.save(tmp_path / "ck") + ".safetensors").unlink()
    with caplog.at_level(logging.ERROR, "gradtape"):
        assert tf.train.latest_checkpoint(tmp_path) is None
    assert "Couldn't match files" in caplog.text


@pytest.mark.parametrize("text", ["nonsense", 'all_model_checkpoint_paths: "a"\n', "\x00\xff"])
def test_damaged_state(tmp_path, caplog, text):
    (tmp_path / "checkpoint").write_bytes(text.encode("latin-1"))
    assert tf.train.latest_checkpoint(tmp_path) is None
    assert "checkpoint" in caplog.text


def test_relative_paths_and_odd_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    c = tf.train.Checkpoint(v=tf.Variable(1.0))
    assert c.save("here") == "here-1" and tf.train.latest_checkpoint(".") == "./here-1"
    assert c.save('./x/a "b"\\c\'ü') == './x/a "b"\\c\'ü-2'
    c.restore(tf.train.latest_checkpoint("x")).assert_consumed()
    assert c.save(tmp_path / "x" / "y") == str(tmp_path / "x" / "y-3")
    assert tf.train.latest_checkpoint("x") == "x/y-3"


def test_iterator_over_new_checkpoints(tmp_path):
    c = tf.train.Checkpoint(v=tf.Variable(1.0))
    found = []
    c.save(tmp_path / "ck")
    for path in tf.train.checkpoints_iterator(tmp_path, timeout=0.01):
        found.append(path)
        if len(found) < 3:
            c.save(tmp_path / "ck")
    assert found == [str(tmp_path / f"ck-{i}") for i in (1, 2, 3)]
    asked = []
    list(
        tf.train.checkpoints_iterator(
            tmp_path / "none", timeout=0.01, timeout_fn=lambda: asked.append(1) or len(asked) > 2
        )
    )
    assert len(asked) == 3


# ---- TensorFlow's checkpoints ---------------------------------------------------------------------


class Block(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable(tf.zeros([2, 3]))
        self.b = tf.Variable(tf.zeros([2], tf.bfloat16))


class Net(tf.Module):
    def __init__(self):
        super().__init__()
        self.blocks = [Block(), Block()]
        self.table = {"a": tf.Variable(0, dtype=tf.int64), "x/y": tf.Variable([False, False])}
        self.first = self.blocks[0]
        self.c = tf.Variable(tf.constant(0, tf.complex64))
        self.empty = tf.Variable(tf.ones([0, 3]))


def test_a_checkpoint_of_tensorflow(tmp_path):
    """The files were written by TensorFlow 2.21 from a module like this one."""
    net, step = Net(), tf.Variable(0)
    tf.train.Checkpoint(net=net, step=step).read(DATA / "from_tensorflow").assert_consumed()
    assert net.blocks[1].w.numpy().tolist() == [[10.0, 11.0, 12.0], [13.0, 14.0, 15.0]]
    assert net.first.b.numpy().tolist() == [1.5, -2.25]
    assert net.table["a"].numpy() == 7 and net.table["x/y"].numpy().tolist() == [True, False]
    assert net.c.numpy() == 1 + 2j and step.numpy() == 5
    assert tf.train.load_variable(DATA / "from_tensorflow", "step/.ATTRIBUTES/VARIABLE_VALUE") == 5


def test_damaged_checkpoints_of_tensorflow(tmp_path):
    for name in (".index", ".data-00000-of-00001"):
        shutil.copy(DATA / f"from_tensorflow{name}", tmp_path / f"ck{name}")
    for name, data in ((".data-00000-of-00001", b"xyz"), (".index", b"nonsense"), (".index", b"x" * 200)):
        (tmp_path / f"ck{name}").write_bytes(data)
        with pytest.raises(tf.errors.DataLossError, match="is damaged"):
            tf.train.Checkpoint(net=Net()).read(tmp_path / "ck")


def test_checksums():
    assert crc32c(b"123456789") == 0xE3069283 and crc32c(b"") == 0
    data = random.Random(0).randbytes(50_000)
    for n in (2048, 2049, 4097, 50_000):
        slow = 0xFFFFFFFF
        for byte in data[:n]:
            slow ^= byte
            for _ in range(8):
                slow = slow >> 1 ^ (0x82F63B78 if slow & 1 else 0)
        assert crc32c(data[:n]) == slow ^ 0xFFFFFFFF
