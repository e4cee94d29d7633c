"""tf.io: files, image files, records, examples, CSV, serialised tensors, gfile."""

import gzip
import io
import os
import zlib

import numpy as np
import pytest

import gradtape as tf
from gradtape._src.base import errors
from gradtape.io import png, wire
from gradtape.io.framing import masked
from gradtape.io.records import read_records

A = np.random.default_rng(0).integers(0, 256, (11, 13, 3)).astype(np.uint8)


# ---- bytes and files ------------------------------------------------------------------------------


def test_read_and_write(tmp_path):
    path = str(tmp_path / "new" / "folder" / "a.txt")
    tf.io.write_file(path, "hello")
    text = tf.io.read_file(path)
    assert text.numpy() == b"hello" and text.dtype == tf.string and text.shape == ()
    assert tf.io.read_file(tmp_path / "new" / "folder" / "a.txt").numpy() == b"hello"
    tf.io.write_file(path, text)
    assert tf.io.read_file(path.encode()).numpy() == b"hello"
    with pytest.raises(errors.NotFoundError, match="No such file"):
        tf.io.read_file(str(tmp_path / "nothing"))
    with pytest.raises(errors.FailedPreconditionError, match="Is a directory"):
        tf.io.read_file(str(tmp_path))
    found = tf.io.matching_files([str(tmp_path / "new/folder/*.txt"), "/nowhere/*"])
    assert found.numpy().tolist() == [path.encode()]


def test_files_are_read_when_a_function_runs(tmp_path):
    path = str(tmp_path / "a")

    @tf.function
    def size():
        return tf.io.decode_raw(tf.io.read_file(path), tf.uint8)

    for content in (b"12", b"345"):
        tf.io.write_file(path, content)
        assert size().numpy().tobytes() == content
    assert size.get_concrete_function().output_shapes == tf.TensorShape([None])


def test_decode_raw():
    assert tf.io.decode_raw(b"\x01\x02\x03\x04", tf.int16).numpy().tolist() == [513, 1027]
    assert tf.io.decode_raw(b"\x01\x02\x03\x04", tf.int16, little_endian=False).numpy().tolist() == [258, 772]
    assert tf.io.decode_raw([b"ab", b"cd"], tf.uint8).numpy().tolist() == [[97, 98], [99, 100]]
    assert tf.io.decode_raw([b"abc", b"d"], tf.uint8, fixed_length=2).numpy().tolist() == [[97, 98], [100, 0]]
    assert tf.io.decode_raw(b"\x80\x3f", tf.bfloat16).numpy().tolist() == [1.0]
    for bad in (
        {"input_bytes": b"abc", "out_type": tf.int16},
        {"input_bytes": [b"a", b"bc"], "out_type": tf.uint8},
    ):
        with pytest.raises(errors.InvalidArgumentError):
            tf.io.decode_raw(**bad)


def test_packing():
    assert tf.io.encode_base64(b"hello?>").numpy() == b"aGVsbG8_Pg"
    assert tf.io.decode_base64(tf.io.encode_base64([b"a", b"bc"], pad=True)).numpy().tolist() == [b"a", b"bc"]
    with pytest.raises(errors.InvalidArgumentError):
        tf.io.decode_base64("%%%")
    assert tf.io.decode_compressed(zlib.compress(b"abc"), "ZLIB").numpy() == b"abc"
    assert tf.io.decode_compressed(gzip.compress(b"abc"), "GZIP").numpy() == b"abc"
    with pytest.raises(errors.DataLossError, match="Not a gzipped file"):  # as in TensorFlow
        tf.io.decode_compressed(b"abc", "GZIP")


def test_decode_csv():
    number, x, word = tf.io.decode_csv(["1,2.5,'a'", '3,,"b,c"'], [0, 0.5, ""])
    assert number.numpy().tolist() == [1, 3] and number.dtype is tf.int32
    assert x.numpy().tolist() == [2.5, 0.5]
    assert word.numpy().tolist() == [b"'a'", b"b,c"]
    assert tf.io.decode_csv("7\tx", [[0], ["y"]], field_delim="\t")[0].shape == ()
    a, b = tf.io.decode_csv("1,2,NA", [0, tf.constant([5], tf.int64)], na_value="NA", select_cols=[0, 2])
    assert (int(a), int(b), b.dtype) == (1, 5, tf.int64)
    for lines, defaults, words in (
        ("1,2", [0], "Expect 1 fields but have 2"),
        ("x,2", [0, 0], "not a valid int32: x"),
        (",2", [tf.constant([], tf.int32), 0], "required but missing"),
    ):
        with pytest.raises(errors.InvalidArgumentError, match=words):
            tf.io.decode_csv(lines, defaults)


def test_serialised_tensors():
    # the bytes that TensorFlow writes
    assert tf.io.serialize_tensor(tf.constant([[1.0, 2.0]])).numpy() == (
        b'\x08\x01\x12\x08\x12\x02\x08\x01\x12\x02\x08\x02"\x08\x00\x00\x80?\x00\x00\x00@'
    )
    assert tf.io.serialize_tensor(["a", "bc"]).numpy() == b"\x08\x07\x12\x04\x12\x02\x08\x02B\x01aB\x02bc"
    for x in (
        tf.constant(True),
        tf.zeros([0, 3]),
        tf.constant([1, -2], tf.int64),
        tf.constant([0.5], tf.bfloat16),
    ):
        back = tf.io.parse_tensor(tf.io.serialize_tensor(x), x.dtype)
        assert (back.shape, back.dtype) == (x.shape, x.dtype)
        np.testing.assert_array_equal(back, x)
    assert tf.io.parse_tensor(tf.io.serialize_tensor(["a", "bc"]), tf.string).numpy().tolist() == [
        b"a",
        b"bc",
    ]
    # numbers that are listed one by one, the last of which stands for the rest
    assert tf.io.parse_tensor(b"\x08\x03\x12\x04\x12\x02\x08\x03\x3a\x01\x07", tf.int32).numpy().tolist() == [
        7,
        7,
        7,
    ]
    assert tf.io.parse_tensor(
        b"\x08\x13\x12\x04\x12\x02\x08\x01\x6a\x02\x80\x78", tf.float16
    ).numpy().tolist() == [1.0]
    with pytest.raises(errors.InvalidArgumentError, match=r"int32\) and dtype \(float32"):
        tf.io.parse_tensor(tf.io.serialize_tensor([1]), tf.float32)


# ---- images ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_png_comes_back(channels, dtype):
    pytest.importorskip("PIL")
    x = np.random.default_rng(channels).integers(0, np.iinfo(dtype).max, (7, 5, channels)).astype(dtype)
    data = tf.io.encode_png(x)
    np.testing.assert_array_equal(tf.io.decode_png(data, dtype=dtype), x)
    narrow = tf.io.decode_png(data).numpy()
    np.testing.assert_array_equal(narrow, x if dtype == "uint8" else x >> 8)


def _paeth(left, up, corner):
    """The nearest to left + up - corner, by the words of the PNG specification."""
    guess = left + up - corner
    near = [abs(guess - x) for x in (left, up, corner)]
    first = (near[0] <= near[1]) & (near[0] <= near[2])
    return np.where(first, left, np.where(near[1] <= near[2], up, corner))


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_png_filters(channels, dtype):
    """Rows that are predicted from their neighbours, in each of the five ways, after rows of each of them."""
    pixels = np.random.default_rng(0).integers(0, np.iinfo(dtype).max + 1, (25, 7, channels)).astype(dtype)
    step = channels * pixels.itemsize
    raw = pixels.astype(pixels.dtype.newbyteorder(">")).view(np.uint8).reshape(25, 7, step).astype(int)
    lines = []
    for y in range(25):
        kind = (y + y // 5) % 5
        left = np.concatenate([np.zeros((1, step), int), raw[y, :-1]])
        up = raw[y - 1] if y else np.zeros((7, step), int)
        corner = np.concatenate([np.zeros((1, step), int), up[:-1]])
        guess = [0, left, up, (left + up) // 2, _paeth(left, up, corner)][kind]
        lines.append(bytes([kind]) + (raw[y] - guess).astype(np.uint8).tobytes())
    data = png.encode(pixels)
    start = data.index(b"IDAT") - 4
    end = data[data.index(b"IEND") - 4 :]

    def file(lines):
        packed = zlib.compress(b"".join(lines))  # in two chunks
        return data[:start] + png._chunk(b"IDAT", packed[:50]) + png._chunk(b"IDAT", packed[50:]) + end

    kind = tf.uint8 if dtype is np.uint8 else tf.uint16
    np.testing.assert_array_equal(tf.io.decode_png(file(lines), dtype=kind), pixels)
    whole = file(lines)
    for damaged in (
        whole[: start + 70],
        file(lines[:-1]),
        file([*lines, b"more"]),
        file([b"\5" + lines[0][1:], *lines[1:]]),
        whole[: start + 20] + bytes([whole[start + 20] ^ 1]) + whole[start + 21 :],
    ):
        with pytest.raises(errors.InvalidArgumentError, match="Invalid PNG data"):
            tf.io.decode_png(damaged, dtype=kind)


@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA", "P", "1"])
@pytest.mark.parametrize("extra", ["", "transparent"])
def test_png_files_are_read_as_pillow_reads_them(mode, extra):
    Image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(1).integers(0, 256, (11, 9, 4)).astype(np.uint8)
    image = Image.fromarray(pixels[..., :3] if mode == "P" else pixels).convert(mode)
    out = io.BytesIO()
    transparent = {"L": 7, "RGB": (1, 2, 3), "P": 3}.get(mode) if extra == "transparent" else None
    image.save(out, "PNG", **({} if transparent is None else {"transparency": transparent}))
    with Image.open(io.BytesIO(out.getvalue())) as read:
        own = "RGBA" if mode == "P" and transparent is not None else {"1": "L", "P": "RGB"}.get(mode, mode)
        expected = np.asarray(read.convert(own)).reshape(11, 9, -1)
    np.testing.assert_array_equal(tf.io.decode_png(out.getvalue()), expected)
    np.testing.assert_array_equal(
        tf.io.decode_png(out.getvalue(), channels=3)[..., 0],
        np.asarray(Image.open(io.BytesIO(out.getvalue())).convert("RGB"))[..., 0],
    )


def test_batches_of_png():
    pytest.importorskip("PIL")
    files = tf.io.encode_png(np.stack([A, A[::-1]]))
    assert files.shape == (2,)
    np.testing.assert_array_equal(tf.io.decode_png(files[1]), A[::-1])


def test_jpeg(tmp_path):
    pytest.importorskip("PIL")
    smooth = np.stack([np.add.outer(np.arange(40), np.arange(50)) % 200 + 20] * 3, -1).astype(np.uint8)
    path = str(tmp_path / "a.jpg")
    tf.io.write_file(path, tf.io.encode_jpeg(smooth, quality=98))
    image = tf.io.read_file(path)
    image = tf.image.decode_jpeg(image, channels=3)
    assert image.dtype is tf.uint8 and np.abs(image.numpy().astype(int) - smooth).max() < 40
    data = tf.io.read_file(path)
    assert tf.io.decode_jpeg(data, channels=1).shape == (40, 50, 1)
    assert tf.io.decode_jpeg(data, ratio=2).shape == (20, 25, 3)
    assert tf.io.extract_jpeg_shape(data).numpy().tolist() == [40, 50, 3]
    assert bool(tf.io.is_jpeg(data)) and not bool(tf.io.is_jpeg(b"PNG"))
    np.testing.assert_array_equal(tf.io.decode_and_crop_jpeg(data, [1, 2, 3, 4]), image[1:4, 2:6])
    np.testing.assert_array_equal(tf.io.decode_image(data), image)
    np.testing.assert_allclose(tf.io.decode_image(data, dtype=tf.float32), image.numpy() / 255, 1e-5)
    cut = bytes(data.numpy()[:-100])
    with pytest.raises(errors.InvalidArgumentError, match="Invalid JPEG data"):
        tf.io.decode_jpeg(cut)
    assert tf.io.decode_jpeg(cut, try_recover_truncated=True).shape == (40, 50, 3)
    for bad in (lambda: tf.io.decode_jpeg(data, channels=2), lambda: tf.io.decode_jpeg(data, channels=4),
                lambda: tf.io.decode_jpeg(data, ratio=3), lambda: tf.io.encode_jpeg(tf.zeros([3, 3, 3])),
                lambda: tf.io.encode_jpeg(A[0]), lambda: tf.io.encode_jpeg(A, quality=101),
                lambda: tf.io.decode_jpeg([data.numpy()] * 2), lambda: tf.io.decode_image(b"no image")):  # fmt: skip
        with pytest.raises(errors.InvalidArgumentError):
            bad()


def test_other_formats(tmp_path):
    image = pytest.importorskip("PIL.Image")
    one = image.fromarray(A)
    path = tmp_path / "a.gif"
    one.quantize(8).save(
        path, save_all=True, append_images=[image.fromarray(A[::-1].copy()).quantize(8)], loop=0
    )
    frames = tf.io.decode_gif(tf.io.read_file(path))
    assert frames.shape == (2, 11, 13, 3)
    np.testing.assert_array_equal(tf.io.decode_image(tf.io.read_file(path)), frames)
    np.testing.assert_array_equal(
        tf.io.decode_image(tf.io.read_file(path), expand_animations=False), frames[0]
    )
    with pytest.raises(errors.InvalidArgumentError, match="animated"):
        tf.io.decode_png(tf.io.read_file(path))
    one.save(tmp_path / "a.bmp")
    np.testing.assert_array_equal(tf.io.decode_bmp(tf.io.read_file(tmp_path / "a.bmp")), A)
    np.testing.assert_array_equal(tf.io.decode_image(tf.io.read_file(tmp_path / "a.bmp")), A)
    alpha = np.concatenate([A, A[..., :1]], -1)
    image.fromarray(alpha).save(tmp_path / "b.bmp")
    np.testing.assert_array_equal(tf.io.decode_bmp(tf.io.read_file(tmp_path / "b.bmp")), alpha)


def test_without_pillow(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    with pytest.raises(ImportError, match=r"pip install gradtape\[image\]"):
        tf.io.decode_jpeg(b"\xff\xd8\xff")
    assert tf.io.encode_png(A).numpy()[:4] == b"\x89PNG"


def test_pictures_in_a_pipeline(tmp_path):
    pytest.importorskip("PIL")
    paths = []
    for k in range(4):
        paths.append(str(tmp_path / f"{k}.png"))
        tf.io.write_file(paths[-1], tf.io.encode_png(np.full((6, 4 + k, 3), 50 * k, np.uint8)))

    def load(path):
        image = tf.image.decode_png(tf.io.read_file(path), channels=3)
        return tf.image.resize(tf.image.convert_image_dtype(image, tf.float32), [3, 3])

    batches = list(tf.data.Dataset.from_tensor_slices(paths).map(load).batch(2))
    assert [b.shape for b in batches] == [(2, 3, 3, 3)] * 2
    np.testing.assert_allclose(batches[1][1], 150 / 255, 1e-5)


# ---- records and examples -------------------------------------------------------------------------

RECORDS = [b"", b"one", bytes(range(256)) * 50]


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_records(tmp_path, compression):
    path = str(tmp_path / "a.tfrecord")
    with tf.io.TFRecordWriter(path, compression or None) as writer:
        for record in RECORDS:
            writer.write(record)
        writer.flush()
    assert list(read_records(path, compression)) == RECORDS
    assert list(tf.io.tf_record_iterator(path, tf.io.TFRecordOptions(compression))) == RECORDS
    with pytest.raises(errors.FailedPreconditionError, match="closed"):
        writer.write(b"more")


def test_records_are_those_of_tensorflow(tmp_path):
    path = tmp_path / "a"
    with tf.io.TFRecordWriter(str(path)) as writer:
        writer.write(b"abc")
    assert path.read_bytes().hex() == "0300000000000000b099490e6162636e57f121"


@pytest.mark.parametrize(
    "sizes", [[1 << 18] * 3, [(1 << 18) - 16, 5, 0], [700_000, 1, 700_000], [999] * 1000]
)
@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_records_that_lie_across_what_is_read_at_a_time(tmp_path, sizes, compression):
    path = str(tmp_path / "a")
    records = [bytes([i % 256]) * size for i, size in enumerate(sizes)]
    with tf.io.TFRecordWriter(path, compression or None) as writer:
        for record in records:
            writer.write(record)
    assert list(read_records(path, compression)) == records
    assert [x.numpy() for x in tf.data.TFRecordDataset(path, compression)] == records


def test_records_before_a_damaged_one_are_read(tmp_path):
    path = tmp_path / "a"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for i in range(4000):
            writer.write(b"%d" % i * 100)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    got = []
    with pytest.raises(errors.DataLossError, match="corrupted record at"):
        for record in read_records(path):
            got.append(record)  # noqa: PERF402 (as many as come)
    assert len(got) > 1900
    assert got == [b"%d" % i * 100 for i in range(len(got))]


def test_a_record_that_claims_to_be_longer_than_the_file(tmp_path):
    path = tmp_path / "a"
    for size in (1000, 1 << 40, (1 << 64) - 1):
        length = size.to_bytes(8, "little")
        path.write_bytes(length + masked(length) + b"few bytes")
        with pytest.raises(errors.DataLossError, match="truncated record at 0"):
            list(read_records(path))


def test_damaged_records(tmp_path):
    path = tmp_path / "a"
    with tf.io.TFRecordWriter(str(path)) as writer:
        writer.write(b"first")
        writer.write(b"second")
    good = path.read_bytes()
    for damage, words in (
        (good[:-1], "truncated record at 21"),
        (good[:25], "truncated record at 21"),
        (good[:13] + b"x" + good[14:], "corrupted record at 0"),
        (b"x" + good[1:], "corrupted record at 0"),
    ):
        path.write_bytes(damage)
        with pytest.raises(errors.DataLossError, match=words):
            list(read_records(path))
    with pytest.raises(errors.DataLossError):
        list(read_records(path, "GZIP"))
    with pytest.raises(errors.NotFoundError):
        list(read_records(str(tmp_path / "nothing")))
    with pytest.raises(ValueError, match="compression"):
        tf.io.TFRecordOptions("LZMA")


def example(**features):
    made = {}
    for key, values in features.items():
        if isinstance(values[0], bytes):
            made[key] = tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
        elif isinstance(values[0], float):
            made[key] = tf.train.Feature(float_list=tf.train.FloatList(value=values))
        else:
            made[key] = tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    return tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString()


ONE = example(i=[1, -2], f=[1.5, 2.5], s=[b"hi"])
TWO = example(i=[300, 2**62], f=[0.5, 1.0], s=[b"yo"])


def test_parse_example():
    features = {
        "s": tf.io.FixedLenFeature([], tf.string),
        "i": tf.io.FixedLenFeature([2], tf.int64),
        "f": tf.io.FixedLenFeature([2, 1], tf.float32),
        "z": tf.io.FixedLenFeature([], tf.int64, 7),
    }
    one = tf.io.parse_single_example(ONE, features)
    assert list(one) == ["f", "i", "s", "z"]
    assert one["i"].numpy().tolist() == [1, -2] and one["i"].dtype is tf.int64
    assert one["f"].numpy().tolist() == [[1.5], [2.5]]
    assert one["s"].numpy() == b"hi"
    assert one["z"].shape == () and int(one["z"]) == 7
    both = tf.io.parse_example([ONE, TWO], features)
    assert both["i"].numpy().tolist() == [[1, -2], [300, 2**62]]
    assert both["s"].numpy().tolist() == [b"hi", b"yo"]
    assert both["z"].numpy().tolist() == [7, 7]


def test_features_of_different_lengths():
    data = [ONE, example(i=[5], s=[b"a", b"b"])]
    found = tf.io.parse_example(
        data,
        {
            "i": tf.io.VarLenFeature(tf.int64),
            "s": tf.io.FixedLenSequenceFeature([], tf.string, allow_missing=True),
            "f": tf.io.FixedLenSequenceFeature([2], tf.float32, allow_missing=True, default_value=-1.0),
        },
    )
    assert tf.sparse.to_dense(found["i"]).numpy().tolist() == [[1, -2], [5, 0]]
    assert found["s"].numpy().tolist() == [[b"hi", b""], [b"a", b"b"]]
    assert found["f"].numpy().tolist() == [[[1.5, 2.5]], [[-1.0, -1.0]]]
    single = tf.io.parse_single_example(
        ONE, {"i": tf.io.VarLenFeature(tf.int64), "q": tf.io.VarLenFeature(tf.float32)}
    )
    assert single["i"].values.numpy().tolist() == [1, -2] and single["q"].dense_shape.numpy().tolist() == [0]
    assert found["i"].indices.numpy().tolist() == [[0, 0], [0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("features", "error", "words"),
    [
        ({"q": tf.io.FixedLenFeature([], tf.int64)}, errors.InvalidArgumentError, "q .* is required"),
        (
            {"i": tf.io.FixedLenFeature([2], tf.float32)},
            errors.InvalidArgumentError,
            "Data types don't match",
        ),
        (
            {"i": tf.io.FixedLenFeature([3], tf.int64)},
            errors.InvalidArgumentError,
            r"Values size: 2 but output shape: \[3\]",
        ),
        ({"i": tf.io.FixedLenFeature([2], tf.int32)}, errors.InvalidArgumentError, "tf.cast"),
        ({"i": tf.io.FixedLenFeature([None], tf.int64)}, ValueError, "FixedLenSequenceFeature"),
        ({"i": tf.io.FixedLenSequenceFeature([], tf.int64)}, ValueError, "allow_missing"),
        ({"q": tf.io.FixedLenFeature([2], tf.int64, 1)}, errors.InvalidArgumentError, "default"),
        ({"i": tf.int64}, ValueError, "Invalid feature"),
        ({}, ValueError, "empty"),
        (None, ValueError, "None"),
    ],
)
def test_wrong_features(features, error, words):
    with pytest.raises(error, match=words):
        tf.io.parse_single_example(ONE, features)


def test_damaged_examples():
    feature = {"i": tf.io.FixedLenFeature([2], tf.int64)}
    for data in (b"\xff\xff", ONE[:-3], b"\x0a\x0d\x0a\x0b\x0a\x01i\x12\x06\x1a\x04\x0a\x02\x81\x82"):
        with pytest.raises(errors.InvalidArgumentError):
            tf.io.parse_single_example(data, feature)
    for make in (tf.io.decode_proto, tf.io.encode_proto):
        with pytest.raises(errors.UnimplementedError, match="Hint"):
            make("x")


def test_sequences():
    def steps(*values):
        return tf.train.FeatureList(
            feature=[tf.train.Feature(int64_list=tf.train.Int64List(value=v)) for v in values]
        )

    data = tf.train.SequenceExample(
        context=tf.train.Features(feature={"n": tf.train.Feature(int64_list=tf.train.Int64List(value=[3]))}),
        feature_lists=tf.train.FeatureLists(
            feature_list={"pairs": steps([1, 2], [3, 4], [5, 6]), "some": steps([1], [2, 3], [])}
        ),
    ).SerializeToString()
    context, lists = tf.io.parse_single_sequence_example(
        data,
        {"n": tf.io.FixedLenFeature([], tf.int64)},
        {"pairs": tf.io.FixedLenSequenceFeature([2], tf.int64), "some": tf.io.VarLenFeature(tf.int64)},
    )
    assert int(context["n"]) == 3
    assert lists["pairs"].numpy().tolist() == [[1, 2], [3, 4], [5, 6]]
    assert tf.sparse.to_dense(lists["some"]).numpy().tolist() == [[1, 0], [2, 3], [0, 0]]
    _, batch, lengths = tf.io.parse_sequence_example(
        [data, data], None, {"pairs": tf.io.FixedLenSequenceFeature([2], tf.int64)}
    )
    assert batch["pairs"].shape == (2, 3, 2) and lengths["pairs"].numpy().tolist() == [3, 3]
    with pytest.raises(errors.InvalidArgumentError, match="required"):
        tf.io.parse_single_sequence_example(data, None, {"q": tf.io.FixedLenSequenceFeature([], tf.int64)})


def test_json():
    data = '{"features": {"feature": {"i": {"int64List": {"value": ["1", 2]}}, "s": {"bytesList": {"value": ["aGk="]}}}}}'
    parsed = tf.io.parse_single_example(
        tf.io.decode_json_example(data),
        {"i": tf.io.FixedLenFeature([2], tf.int64), "s": tf.io.FixedLenFeature([], tf.string)},
    )
    assert parsed["i"].numpy().tolist() == [1, 2] and parsed["s"].numpy() == b"hi"
    with pytest.raises(errors.InvalidArgumentError):
        tf.io.decode_json_example("{}")


def test_records_in_a_pipeline(tmp_path):
    path = str(tmp_path / "a.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for k in range(5):
            writer.write(example(x=[float(k)] * 3, y=[k]))
    features = {"x": tf.io.FixedLenFeature([3], tf.float32), "y": tf.io.FixedLenFeature([], tf.int64)}
    rows = tf.data.TFRecordDataset(path).map(lambda r: tf.io.parse_single_example(r, features)).batch(2)
    assert [b["y"].numpy().tolist() for b in rows] == [[0, 1], [2, 3], [4]]
    whole = tf.data.TFRecordDataset(path).batch(5).map(lambda r: tf.io.parse_example(r, features))
    assert next(iter(whole))["x"].shape == (5, 3)


# ---- gfile ----------------------------------------------------------------------------------------


def test_gfile(tmp_path):
    gfile, here = tf.io.gfile, str(tmp_path)
    a, b = os.path.join(here, "a.txt"), gfile.join(here, "b.txt")
    with gfile.GFile(a, "w") as f:
        f.write("one\n")
        f.write(b"two\n")
    with gfile.GFile(a, "a") as f:
        f.write("three")
    with gfile.GFile(a) as f:
        assert (f.read(2), f.readline(), f.tell(), f.size()) == ("on", "e\n", 4, 13)
        assert f.readlines() == ["two\n", "three"] and f.read() == ""
        f.seek(4)
        assert list(f) == ["two\n", "three"]
    assert gfile.GFile(a, "rb").read(3) == b"one"
    assert gfile.exists(a) and not gfile.isdir(a) and gfile.isdir(here)
    gfile.copy(a, b)
    with pytest.raises(errors.AlreadyExistsError, match="already exists"):
        gfile.copy(a, b)
    gfile.copy(a, b, overwrite=True)
    assert gfile.glob(os.path.join(here, "*.txt")) == [a, b]
    assert gfile.stat(b).length == 13 and not gfile.stat(b).is_directory
    gfile.makedirs(os.path.join(here, "x", "y"))
    gfile.makedirs(os.path.join(here, "x", "y"))
    gfile.mkdir(os.path.join(here, "x"))
    gfile.rename(b, os.path.join(here, "x", "b.txt"))
    assert gfile.listdir(here) == ["a.txt", "x"]
    assert list(gfile.walk(here)) == [
        (here, ["x"], ["a.txt"]),
        (os.path.join(here, "x"), ["y"], ["b.txt"]),
        (os.path.join(here, "x", "y"), [], []),
    ]
    gfile.rmtree(os.path.join(here, "x"))
    gfile.remove(a)
    assert gfile.listdir(here) == []
    nothing = os.path.join(here, "nothing")
    for call in (
        lambda: gfile.GFile(nothing).read(), lambda: gfile.listdir(nothing), lambda: gfile.remove(nothing),
        lambda: gfile.rmtree(nothing), lambda: gfile.stat(nothing), lambda: gfile.copy(nothing, a),
        lambda: gfile.rename(nothing, a), lambda: gfile.mkdir(os.path.join(nothing, "x")),
    ):  # fmt: skip
        with pytest.raises(errors.NotFoundError):
            call()
    with pytest.raises(errors.InvalidArgumentError, match="mode"):
        gfile.GFile(a, "q")
    with gfile.GFile(a, "w") as f, pytest.raises(errors.PermissionDeniedError):
        f.read()


def test_all_names_of_tensorflow_exist():
    names = """FixedLenFeature FixedLenSequenceFeature RaggedFeature SparseFeature TFRecordOptions TFRecordWriter
        VarLenFeature decode_and_crop_jpeg decode_base64 decode_bmp decode_compressed decode_csv decode_gif decode_image
        decode_jpeg decode_json_example decode_jxl decode_png decode_proto decode_raw decode_webp deserialize_many_sparse
        encode_base64 encode_jpeg encode_png encode_proto extract_jpeg_shape gfile is_jpeg match_filenames_once
        matching_files parse_example parse_sequence_example parse_single_example parse_single_sequence_example
        parse_tensor read_file serialize_many_sparse serialize_sparse serialize_tensor write_file write_graph"""
    assert set(names.split()) <= set(tf.io.__all__)


def test_every_way_to_write_a_feature():
    """Numbers packed or one by one, in several pieces, fields that are not known, and a list that is replaced."""
    packed = wire.message(1, np.array([1.5, -2.5], "<f4").tobytes())
    floats = packed + wire.varint(9, 7) + wire.float_(1, 3.5)
    ints = wire.packed(1, [1, -2, 300]) + wire.varint(1, -4) + wire.packed(1, [1 << 62])
    words = wire.text(1, b"a") + wire.text(2, b"not this") + wire.text(1, b"")
    features = {
        "f": wire.message(3, wire.packed(1, [5])) + wire.message(2, floats),
        "i": wire.message(3, ints) + wire.double(7, 1.0),
        "s": wire.message(1, words),
        "none": b"",
    }
    entries = [wire.message(1, wire.text(1, key) + wire.message(2, v)) for key, v in features.items()]
    half = len(entries) // 2  # a message may come in two parts
    data = b"".join(wire.message(1, b"".join(some)) for some in (entries[:half], entries[half:]))
    got = tf.io.parse_single_example(
        data,
        {
            "f": tf.io.FixedLenFeature([3], tf.float32),
            "i": tf.io.FixedLenFeature([5], tf.int64),
            "s": tf.io.FixedLenFeature([2], tf.string),
            "none": tf.io.FixedLenFeature([], tf.int64, 7),
        },
    )
    assert got["f"].numpy().tolist() == [1.5, -2.5, 3.5]
    assert got["i"].numpy().tolist() == [1, -2, 300, -4, 1 << 62]
    assert got["s"].numpy().tolist() == [b"a", b""]
    assert got["none"].numpy() == 7


@pytest.mark.parametrize(
    "feature",
    [
        wire.message(2, wire.message(1, b"abc")),  # three bytes of a float
        wire.message(3, wire.message(1, b"\x80")),  # an integer that is cut off
        wire.message(3, wire.message(1, b"\xff" * 10 + b"\1")),  # and one of more than 64 bits
        wire.message(3, b"\x08"),
        b"\x1b",
        b"\x12\x7f",
    ],
)
def test_features_that_are_damaged(feature):
    data = wire.message(1, wire.message(1, wire.text(1, "x") + wire.message(2, feature)))
    for kind in (tf.float32, tf.int64):
        with pytest.raises(errors.InvalidArgumentError, match=r"Key: x.*(Can't parse|types don't match)"):
            tf.io.parse_single_example(data, {"x": tf.io.FixedLenFeature([1], kind)})


@pytest.mark.parametrize(
    "data", [b"\x0a\x05ab", b"\x0a\x03\x0a\x05a", b"\xff", b"\x00", b"\x0b", b"\x0a\x04\x0a\x02\x0a\x7f"]
)
def test_examples_that_are_damaged(data):
    with pytest.raises(errors.InvalidArgumentError, match="Could not parse example input"):
        tf.io.parse_single_example(data, {"x": tf.io.FixedLenFeature([1], tf.int64, 0)})
