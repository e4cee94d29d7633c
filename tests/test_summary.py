"""tf.summary: event files read back, field by field; writers, steps, conditions; inside functions.

That TensorBoard reads the files was tried by hand (tensorboard 2.21, EventAccumulator): it is no
dependency, so these tests read the format themselves.
"""

import logging
import struct
import threading
import time
import zlib

import numpy as np
import pytest

import gradtape as tf
from gradtape.io import wire
from gradtape.io.framing import masked
from gradtape.summary import encode

S = tf.summary


def records(folder):
    """The records of all event files of a folder, with their checksums compared."""
    for path in sorted(folder.iterdir()):
        data, at = path.read_bytes(), 0
        while at < len(data):
            (length,) = struct.unpack_from("<Q", data, at)
            body = data[at + 12 : at + 12 + length]
            assert data[at + 8 : at + 12] == masked(data[at : at + 8])
            assert data[at + 12 + length : at + 16 + length] == masked(body)
            yield body
            at += 16 + length


def one(data, *path):
    """The field of a nested message, by the numbers of the fields on the way."""
    for number in path:
        data = next((v for f, _, v in wire.fields(data) if f == number), b"")
    return data


def values(folder):
    """(step, tag, plugin, class, array or strings) of all summaries."""
    out = []
    for event in records(folder):
        if not one(event, 5):
            continue
        value = one(event, 5, 1)
        tensor = one(value, 8)
        shape = [one(d, 1) or 0 for f, _, d in wire.fields(one(tensor, 2)) if f == 2]
        if one(tensor, 1) == 7:
            content = [v for f, _, v in wire.fields(tensor) if f == 8]
        else:
            kind = tf.as_dtype(one(tensor, 1)).as_numpy_dtype
            content = np.frombuffer(one(tensor, 4) or b"", kind).reshape(shape)
        step = one(event, 2) or 0
        out.append(
            (
                wire.signed(step),
                one(value, 1).decode(),
                one(value, 9, 1, 1).decode(),
                one(value, 9, 4),
                content,
            )
        )
    return out


def test_the_file(tmp_path):
    before = time.time()
    writer = S.create_file_writer(tmp_path / "a" / "b")
    (path,) = (tmp_path / "a" / "b").iterdir()
    assert path.name.startswith("events.out.tfevents.") and path.name.endswith(".v2")
    with writer.as_default():
        written = S.scalar("loss", 0.5, step=7, description="*words*")
    assert written.numpy() == True and written.dtype == tf.bool  # noqa: E712
    first, event = records(tmp_path / "a" / "b")
    assert one(first, 3) == b"brain.Event:2" and isinstance(writer, S.SummaryWriter)
    assert before <= struct.unpack("<d", one(event, 1))[0] <= time.time()
    assert one(event, 5, 1, 9, 3) == b"*words*"
    assert values(tmp_path / "a" / "b") == [(7, "loss", "scalars", 1, np.float32(0.5))]


@pytest.mark.parametrize(
    "data", [1, 2.5, np.float64(3), tf.constant(4), tf.Variable(5.0), True, tf.constant(1.5, tf.bfloat16)]
)
def test_scalars_of_all_kinds(tmp_path, data):
    with S.create_file_writer(tmp_path).as_default(step=1):
        S.scalar("x", data)
    ((*_, value),) = values(tmp_path)
    assert value.dtype == np.float32 and value.shape == () and value == float(data)


def test_scalars_that_are_none(tmp_path):
    with S.create_file_writer(tmp_path).as_default(step=1):
        with pytest.raises(ValueError, match=r"Expected scalar shape, saw shape: \(2,\)"):
            S.scalar("x", [1.0, 2.0])
        with pytest.raises(ValueError, match="rank 4"):
            S.image("x", tf.zeros([8, 8, 3]))
        with pytest.raises(ValueError, match="1, 2, 3 or 4 channels"):
            S.image("x", tf.zeros([1, 8, 8, 5]))
        with pytest.raises(TypeError, match="must be strings"):
            S.text("x", 3)
        with pytest.raises(ValueError, match="Unknown encoding"):
            S.audio("x", tf.zeros([1, 2, 1]), 8000, encoding="mp3")


def test_histogram(tmp_path):
    x = tf.constant([0.0, 1.0, 1.0, 4.0])
    with S.create_file_writer(tmp_path).as_default(step=1):
        S.histogram("h", x, buckets=4)
        S.histogram("same", [[3, 3]], buckets=2)
        S.histogram("none", tf.zeros([0]), buckets=2)
        S.histogram("default", tf.random.normal([100]))
    (_, tag, plugin, kind, h), (*_, same), (*_, none), (*_, default) = values(tmp_path)
    assert (tag, plugin, kind) == ("h", "histograms", 2)
    assert h.tolist() == [[0, 1, 1], [1, 2, 2], [2, 3, 0], [3, 4, 1]]
    assert same.tolist() == [[3, 3, 0], [3, 3, 2]] and none.tolist() == [[0, 0, 0]] * 2
    assert default.shape == (30, 3) and default[:, 2].sum() == 100


def pixels(png):
    """A PNG file of our own kind as an array."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height, depth, colour = struct.unpack_from(">IIBB", png, 16)
    channels = {0: 1, 4: 2, 2: 3, 6: 4}[colour]
    at, body = 33, b""
    while at < len(png):
        length, kind = int.from_bytes(png[at : at + 4], "big"), png[at + 4 : at + 8]
        assert (
            zlib.crc32(png[at + 4 : at + 8 + length]).to_bytes(4, "big")
            == png[at + 8 + length : at + 12 + length]
        )
        body += png[at + 8 : at + 8 + length] if kind == b"IDAT" else b""
        at += 12 + length
    rows = np.frombuffer(zlib.decompress(body), np.uint8).reshape(height, 1 + width * channels)
    assert depth == 8 and (rows[:, 0] == 2).all()  # each row is the difference to the one above
    return np.cumsum(rows[:, 1:], 0, dtype=np.uint8).reshape(height, width, channels)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_images(tmp_path, channels):
    x = np.random.default_rng(0).integers(0, 256, (5, 3, 4, channels)).astype(np.uint8)
    with S.create_file_writer(tmp_path).as_default(step=1):
        S.image("i", x, max_outputs=2)
        S.image("f", x / 255.0, max_outputs=9)
    (_, _, plugin, kind, two), (*_, five) = values(tmp_path)
    assert (plugin, kind) == ("images", 3)
    assert two[:2] == [b"4", b"3"] and len(two) == 4 and len(five) == 7
    assert np.array_equal(pixels(two[3]), x[1]) and np.array_equal(pixels(five[2]), x[0])


def test_pixels_are_clipped():
    assert encode.as_uint8(np.array([-1.0, 0.0, 0.5, 1.0, 7.0, np.nan])).tolist() == [0, 0, 127, 255, 255, 0]
    assert encode.as_uint8(np.array([True, False])).tolist() == [255, 0]
    assert encode.as_uint8(np.array([-5, 0, 1 << 30], np.int32)).tolist() == [0, 0, 128]
    assert encode.as_uint8(np.array([65535], np.uint16)).tolist() == [255]


def test_audio(tmp_path):
    x = np.array([[[0.0], [1.0], [-1.0], [0.5]]], np.float32)
    with S.create_file_writer(tmp_path).as_default(step=1):
        S.audio("a", x, 8000)
    ((_, _, plugin, kind, (wav, label)),) = values(tmp_path)
    assert (plugin, kind, label) == ("audio", 3, b"")
    assert (
        wav[:4] == b"RIFF" and wav[8:16] == b"WAVEfmt " and int.from_bytes(wav[4:8], "little") == len(wav) - 8
    )
    assert struct.unpack_from("<HHIIHH", wav, 20) == (1, 1, 8000, 16000, 2, 16)
    assert np.frombuffer(wav[44:], "<i2").tolist() == [0, 32767, -32768, 16384]


def test_text_and_raw_tensors(tmp_path):
    with S.create_file_writer(tmp_path).as_default(step=1):
        S.text("t", "ü *b*")
        S.text("table", [["a", "b"]])
        S.write("raw", tf.range(3), metadata=b"")
        S.write("late", lambda: tf.constant([1.5]))
        S.experimental.write_raw_pb(encode.value("pb", encode.array(np.float32(2)), b""))
        with S.experimental.summary_scope("mine", "default") as (tag, scope):
            assert (tag, scope) == ("mine", "mine/")
    t, table, raw, late, pb = values(tmp_path)
    assert t[2:4] == ("text", 2) and t[4] == ["ü *b*".encode()] and table[4] == [b"a", b"b"]
    assert raw[4].tolist() == [0, 1, 2] and raw[4].dtype == np.int32 and late[4].tolist() == [1.5]
    assert pb[1] == "pb" and pb[4] == 2


# ---- writers, steps, conditions -------------------------------------------------------------------


def test_without_a_writer():
    assert not S.scalar("x", 1.0).numpy()  # no step is needed either
    assert S.should_record_summaries() is False


def test_steps(tmp_path):
    writer = S.create_file_writer(tmp_path)
    with writer.as_default():
        with pytest.raises(ValueError, match="No step set. Please specify one"):
            S.scalar("x", 1.0)
        S.experimental.set_step(3)
        S.scalar("x", 1.0)
        step = tf.Variable(4, dtype=tf.int64)
        with S.create_noop_writer().as_default():
            assert not S.scalar("x", 1.0).numpy()
        with writer.as_default(step=step):
            assert S.experimental.get_step() is step
            S.scalar("x", 1.0)
            step.assign_add(1)
            S.scalar("x", 1.0)
        S.scalar("x", 1.0, step=-9)
        assert S.experimental.get_step() == 3
        S.experimental.set_step(None)
    assert [v[0] for v in values(tmp_path)] == [3, 4, 5, -9]


def test_name_scopes(tmp_path):
    with S.create_file_writer(tmp_path).as_default(step=0), tf.name_scope("train"), tf.name_scope("b"):
        S.scalar("loss", 1.0)
    assert [v[1] for v in values(tmp_path)] == ["train/b/loss"]


def test_conditions(tmp_path):
    with S.create_file_writer(tmp_path).as_default(step=0):
        with S.record_if(False):
            assert not S.scalar("a", 1.0).numpy() and not S.should_record_summaries()
            with S.record_if(tf.constant(True)):
                S.scalar("b", 1.0)
        with S.record_if(lambda: True):
            S.scalar("c", 1.0)
            assert S.should_record_summaries()
    assert [v[1] for v in values(tmp_path)] == ["b", "c"]


def test_inside_functions(tmp_path):
    writer = S.create_file_writer(tmp_path)
    step = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def train(x):
        S.scalar("square", x * x, step=step)
        S.histogram("h", tf.stack([x, x]), buckets=1, step=step)
        with S.record_if(step % 2 == 0):
            S.scalar("even", x, step=step)
        step.assign_add(1)

    with writer.as_default():
        for i in range(3):
            train(tf.constant(float(i)))
    writer.flush()
    seen = [(v[0], v[1], float(v[4].reshape(-1)[-1])) for v in values(tmp_path)]
    assert seen == [
        (0, "square", 0.0), (0, "h", 2.0), (0, "even", 0.0), (1, "square", 1.0), (1, "h", 2.0),
        (2, "square", 4.0), (2, "h", 2.0), (2, "even", 2.0),
    ]  # fmt: skip


def test_nothing_is_recorded_by_tapes(tmp_path):
    v = tf.Variable(3.0)
    with S.create_file_writer(tmp_path).as_default(step=0), tf.GradientTape() as tape:
        y = v * v
        S.scalar("y", y)
    assert tape.gradient(y, v).numpy() == 6.0


def test_queue_flush_and_close(tmp_path):
    writer = S.create_file_writer(tmp_path, max_queue=3)
    writer.set_as_default(step=0)
    try:
        for _ in range(4):
            S.scalar("x", 1.0)
        assert len(values(tmp_path)) == 3
        S.flush()
        assert len(values(tmp_path)) == 4
        S.scalar("x", 1.0)
        writer.close()
        writer.close()
        assert len(values(tmp_path)) == 5
        with pytest.raises(RuntimeError, match="SummaryWriter is already closed"):
            S.scalar("x", 1.0)
        with pytest.raises(RuntimeError, match="already closed"), writer.as_default():
            pass
    finally:
        S.create_noop_writer().set_as_default()
        S.experimental.set_step(None)


def test_time_brings_to_the_file(tmp_path):
    with S.create_file_writer(tmp_path, flush_millis=0).as_default(step=0):
        time.sleep(0.002)
        S.scalar("x", 1.0)
        assert len(values(tmp_path)) == 1


def test_a_writer_that_is_forgotten_leaves_a_whole_file(tmp_path):
    writer = S.create_file_writer(tmp_path)
    writer.write_event(1, b"")
    del writer
    assert len(list(records(tmp_path))) == 2


def test_threads_have_writers_of_their_own(tmp_path):
    seen = []
    with S.create_file_writer(tmp_path).as_default(step=0):
        thread = threading.Thread(target=lambda: seen.append(bool(S.scalar("x", 1.0).numpy())))
        thread.start()
        thread.join()
    assert seen == [False]


def test_two_writers_have_two_files(tmp_path):
    a, b = S.create_file_writer(tmp_path), S.create_file_writer(tmp_path, filename_suffix=".mine")
    assert len(list(tmp_path.iterdir())) == 2 and any(p.name.endswith(".mine") for p in tmp_path.iterdir())
    a.close()
    b.close()


def test_functions_that_write_nothing_warn(caplog):
    with caplog.at_level(logging.WARNING, "gradtape"):
        S.trace_on(graph=True)
        S.trace_export("x", step=0)
        S.trace_off()
        assert not S.graph(None).numpy()
    assert [r.message.split(" ")[0] for r in caplog.records] == [
        "tf.summary.trace_on", "tf.summary.trace_export", "tf.summary.graph",
    ]  # fmt: skip
