"""Datasets and files: text, records, CSV, saved datasets, caches."""

import gzip
import os

import numpy as np
import pytest

import gradtape as tf

Dataset = tf.data.Dataset
Spec = tf.TensorSpec
InvalidArgument = tf.errors.InvalidArgumentError


def values(ds):
    return list(ds.as_numpy_iterator())


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"l1\nl2\r\n\nl4")
    (tmp_path / "b.txt").write_bytes(b"m1\n")
    return tmp_path


# ---- readers ------------------------------------------------------------------------------------


def test_lines(folder):
    a, b = str(folder / "a.txt"), str(folder / "b.txt")
    ds = tf.data.TextLineDataset([a, b])
    assert values(ds) == [b"l1", b"l2", b"", b"l4", b"m1"]
    assert ds.element_spec == Spec((), tf.string)
    assert isinstance(ds, Dataset)
    assert values(
        tf.data.TextLineDataset(Dataset.list_files(str(folder / "*.txt"), shuffle=False))
    ) == values(ds)
    assert values(ds.filter(lambda line: line != "").skip(1)) == [b"l2", b"l4", b"m1"]
    packed = folder / "c.gz"
    packed.write_bytes(gzip.compress(b"x\ny\n"))
    assert values(tf.data.TextLineDataset(str(packed), compression_type="GZIP")) == [b"x", b"y"]
    with pytest.raises(tf.errors.NotFoundError, match="No such file"):
        list(tf.data.TextLineDataset(str(folder / "none")))


def test_list_files(folder):
    pattern = str(folder / "*.txt")
    names = [os.path.basename(n) for n in values(Dataset.list_files(pattern, shuffle=False))]
    assert names == [b"a.txt", b"b.txt"]
    assert sorted(values(Dataset.list_files(pattern))) == values(Dataset.list_files(pattern, shuffle=False))
    two = Dataset.list_files([str(folder / "b*"), str(folder / "a*")], shuffle=False)
    assert [os.path.basename(n) for n in values(two)] == [b"a.txt", b"b.txt"]
    with pytest.raises(InvalidArgument, match="No files matched pattern"):
        Dataset.list_files(str(folder / "*.zzz"))


def test_interleaved_files(folder):
    files = Dataset.list_files(str(folder / "*.txt"), shuffle=False)
    assert values(files.interleave(tf.data.TextLineDataset, cycle_length=2)) == [
        b"l1",
        b"m1",
        b"l2",
        b"",
        b"l4",
    ]


def test_fixed_length_records(tmp_path):
    file = tmp_path / "f.bin"
    file.write_bytes(b"HH" + bytes(range(10)) + b"F")
    ds = tf.data.FixedLengthRecordDataset(str(file), 5, 2, 1)
    assert values(ds) == [bytes(range(5)), bytes(range(5, 10))]
    with pytest.raises(InvalidArgument, match="not an exact multiple of the record length"):
        list(tf.data.FixedLengthRecordDataset(str(file), 4, 2, 1))


def test_repr_as_in_tensorflow():
    x = next(iter(Dataset.from_tensor_slices(["é"])))
    assert x.numpy() == "é".encode()
    assert x.dtype is tf.string
    assert x.shape == ()
    assert str(x) == f"tf.Tensor({x.numpy()!r}, shape=(), dtype=string)"
    assert x.numpy().decode() == "é"


# ---- CSV ----------------------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "c.csv"
    file.write_text('a,b,c\n1,2.5,"x,y"\n3,,z\n')
    return str(file)


def test_csv(table):
    ds = tf.data.experimental.CsvDataset(table, [tf.int32, 0.0, tf.string], header=True)
    assert values(ds) == [(1, 2.5, b"x,y"), (3, 0.0, b"z")]
    assert ds.element_spec == (Spec((), tf.int32), Spec((), tf.float32), Spec((), tf.string))
    some = tf.data.experimental.CsvDataset(table, [tf.int64, tf.string], header=True, select_cols=[0, 2])
    assert values(some) == [(1, b"x,y"), (3, b"z")]


@pytest.mark.parametrize(
    ("defaults", "words"),
    [
        ([tf.int32, tf.float32, tf.string], "Field 1 is required but missing"),
        ([tf.int32, 0.0], "Expect 2 fields but have more"),
        ([tf.int32] + [0.0] * 3, "Expect 4 fields but have 3"),
        ([tf.int32, 0.0, 0], "Field 2 in record is not a valid int32"),
    ],
)
def test_wrong_csv(table, defaults, words):
    with pytest.raises(InvalidArgument, match=words):
        list(tf.data.experimental.CsvDataset(table, defaults, header=True))


def test_make_csv_dataset(table):
    ds = tf.data.experimental.make_csv_dataset(table, 2, label_name="a", shuffle=False, num_epochs=1)
    features, label = next(iter(ds))
    assert list(features) == ["b", "c"]
    assert features["b"].numpy().tolist() == [2.5, 0.0]
    assert features["c"].numpy().tolist() == [b"x,y", b"z"]
    assert label.dtype is tf.int32
    assert label.numpy().tolist() == [1, 3]
    endless = tf.data.experimental.make_csv_dataset(table, 3, select_columns=["a", "c"])
    assert endless.element_spec["a"] == Spec((3,), tf.int32)
    with pytest.raises(ValueError, match="must be one of the columns"):
        tf.data.experimental.make_csv_dataset(table, 2, label_name="q")


# ---- storage ------------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", [None, "GZIP"])
def test_save_and_load(tmp_path, compression):
    ds = Dataset.from_tensor_slices(
        {"x": np.arange(6.0).reshape(3, 2), "y": (["a", "bb", ""], [True, False, True])}
    )
    ds.save(str(tmp_path / "s"), compression)
    back = Dataset.load(str(tmp_path / "s"))
    assert back.element_spec == ds.element_spec
    assert str(values(back)) == str(values(ds))
    assert str(values(tf.data.experimental.load(str(tmp_path / "s")).batch(2))) == str(values(ds.batch(2)))


def test_save_of_lengths_and_halves(tmp_path):
    ds = Dataset.from_generator(
        lambda: iter([[1.0], [1.0, 2.0]]), output_signature=Spec((None,), tf.bfloat16)
    )
    tf.data.experimental.save(ds, str(tmp_path))
    back = list(Dataset.load(str(tmp_path)))
    assert [x.shape[0] for x in back] == [1, 2]
    assert back[0].dtype is tf.bfloat16


def test_a_broken_file_is_noticed(tmp_path):
    Dataset.range(3).save(str(tmp_path))
    file = tmp_path / "elements"
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.raises(tf.errors.DataLossError, match="truncated record"):
        list(Dataset.load(str(tmp_path)))
    file.write_bytes(b"nonsense, and more of it\n")
    with pytest.raises(tf.errors.DataLossError, match="corrupted record at 0"):
        list(Dataset.load(str(tmp_path)))
    (tmp_path / "dataset.json").write_text('{"format": "gradtape elements 2", "element": 5, "files": {}}')
    with pytest.raises(tf.errors.DataLossError, match="not a dataset saved by gradtape"):
        Dataset.load(str(tmp_path))
    with pytest.raises(tf.errors.NotFoundError):
        Dataset.load(str(tmp_path / "none"))


def test_batches_of_records_and_lines(folder):
    a, path = str(folder / "a.txt"), str(folder / "r")
    with tf.io.TFRecordWriter(path) as writer:
        for i in range(5):
            writer.write(b"%d" % i)
    for ds in (tf.data.TFRecordDataset(path), tf.data.TFRecordDataset([path], num_parallel_reads=2)):
        batches = ds.batch(2)
        assert batches.element_spec == Spec((None,), tf.string)
        assert [b.tolist() for b in values(batches)] == [[b"0", b"1"], [b"2", b"3"], [b"4"]]
        assert [b.tolist() for b in values(ds.batch(2, drop_remainder=True))] == [[b"0", b"1"], [b"2", b"3"]]
    assert [b.tolist() for b in values(tf.data.TextLineDataset(a).batch(3))] == [[b"l1", b"l2", b""], [b"l4"]]
    data = (folder / "r").read_bytes()
    (folder / "r").write_bytes(data[:-1])
    it = iter(tf.data.TFRecordDataset(path).batch(3))
    assert next(it).numpy().tolist() == [b"0", b"1", b"2"]
    with pytest.raises(tf.errors.DataLossError, match="truncated record"):
        next(it)


# ---- caches -------------------------------------------------------------------------------------


def counted(calls, n=4):
    def generate():
        calls.append(1)
        yield from range(n)

    return Dataset.from_generator(generate, output_signature=Spec((), tf.int64))


def test_cache_in_memory():
    calls = []
    ds = counted(calls).cache()
    assert values(ds) == values(ds) == [0, 1, 2, 3]
    assert len(calls) == 1
    assert ds._table() is not None, "elements of one shape become rows"
    assert sorted(values(ds.shuffle(4))) == [0, 1, 2, 3]
    assert len(calls) == 1


def test_cache_is_filled_by_full_iterations_only():
    calls = []
    ds = counted(calls).cache()
    it = iter(ds)
    next(it)
    del it
    assert values(ds) == values(ds) == [0, 1, 2, 3]
    assert len(calls) == 2


def test_cache_of_different_lengths():
    ds = Dataset.range(3).map(lambda n: tf.ones([n])).cache()
    for _ in range(2):
        assert [x.shape[0] for x in ds] == [0, 1, 2]


def test_cache_keeps_the_order_and_the_computed_values():
    ds = Dataset.range(20).shuffle(20).cache()
    assert values(ds) == values(ds)
    v = tf.Variable(1, dtype=tf.int64)
    ds = Dataset.range(20).map(lambda x: x * v).cache()
    first = values(ds)
    v.assign(7)
    assert values(ds) == first


@pytest.mark.parametrize("kind", ["cache", "snapshot"])
def test_cache_in_a_file(tmp_path, kind):
    path = str(tmp_path / "c")
    calls = []
    ds = getattr(counted(calls), kind)(path)
    next(iter(ds))
    assert not any("elements" in f and "incomplete" not in f for f in os.listdir(tmp_path))
    assert values(ds) == values(ds) == [0, 1, 2, 3]
    assert len(calls) == 2
    assert values(getattr(counted(calls), kind)(path)) == [0, 1, 2, 3]
    assert len(calls) == 2, "the file outlives the dataset"


# ---- TFRecords ----------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_records(tmp_path, compression):
    file = str(tmp_path / "some.tfrecord")
    records = [b"one", b"", bytes(range(256)) * 50]
    tf.data.experimental.TFRecordWriter(file, compression).write(Dataset.from_tensor_slices(records))
    ds = tf.data.TFRecordDataset(file, compression_type=compression)
    assert values(ds) == records
    assert values(tf.data.TFRecordDataset([file, file], compression).skip(3)) == records
    assert ds.element_spec == Spec((), tf.string)


def test_examples(tmp_path):
    file = str(tmp_path / "some.tfrecord")
    with tf.io.TFRecordWriter(file) as writer:
        for i in range(5):
            feature = {
                "x": tf.train.Feature(float_list=tf.train.FloatList(value=[i, i + 1.0])),
                "y": tf.train.Feature(int64_list=tf.train.Int64List(value=[i])),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    spec = {"x": tf.io.FixedLenFeature([2], tf.float32), "y": tf.io.FixedLenFeature([], tf.int64)}
    records = tf.data.TFRecordDataset(file)
    one_by_one = records.map(lambda s: tf.io.parse_single_example(s, spec)).batch(3)
    together = records.batch(3).map(lambda s: tf.io.parse_example(s, spec))
    for ds in (one_by_one, together):
        first = next(iter(ds))
        assert first["x"].numpy().tolist() == [[0, 1], [1, 2], [2, 3]]
        assert first["y"].numpy().tolist() == [0, 1, 2]


def test_missing_and_damaged_records(tmp_path):
    with pytest.raises(tf.errors.NotFoundError):
        list(tf.data.TFRecordDataset(str(tmp_path / "none")))
    file = tmp_path / "some.tfrecord"
    tf.data.experimental.TFRecordWriter(str(file)).write(Dataset.from_tensor_slices(["abc"]))
    file.write_bytes(file.read_bytes()[:-2])
    with pytest.raises(tf.errors.DataLossError):
        list(tf.data.TFRecordDataset(str(file)))


def test_batched_features(tmp_path):
    file = str(tmp_path / "some.tfrecord")
    with tf.io.TFRecordWriter(file) as writer:
        for i in range(5):
            feature = {
                "x": tf.train.Feature(float_list=tf.train.FloatList(value=[i])),
                "y": tf.train.Feature(int64_list=tf.train.Int64List(value=[i])),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    spec = {"x": tf.io.FixedLenFeature([], tf.float32), "y": tf.io.FixedLenFeature([], tf.int64)}
    ds = tf.data.experimental.make_batched_features_dataset(
        file, 3, spec, label_key="y", num_epochs=1, shuffle=False
    )
    assert [(x["x"].numpy().tolist(), y.numpy().tolist()) for x, y in ds] == [
        ([0.0, 1.0, 2.0], [0, 1, 2]),
        ([3.0, 4.0], [3, 4]),
    ]
    with pytest.raises(ValueError, match="must be one of the `features` keys"):
        tf.data.experimental.make_batched_features_dataset(file, 3, spec, label_key="z")


def test_database(tmp_path):
    import sqlite3

    file = str(tmp_path / "some.sqlite")
    with sqlite3.connect(file) as connection:
        connection.execute("create table people (name text, age integer, height real)")
        connection.executemany("insert into people values (?, ?, ?)", [("a", 3, 1.5), ("b", None, 2.0)])
    connection.close()
    types = (tf.string, tf.int32, tf.float64)
    ds = tf.data.experimental.SqlDataset("sqlite", file, "select * from people order by name", types)
    assert values(ds) == [(b"a", 3, 1.5), (b"b", 0, 2.0)]
    with pytest.raises(InvalidArgument, match="no such table"):
        list(tf.data.experimental.SqlDataset("sqlite", file, "select * from nobody", types))


def test_padding_to_a_cardinality():
    ds = Dataset.from_tensor_slices({"a": [1, 2]}).apply(tf.data.experimental.pad_to_cardinality(3))
    assert values(ds) == [{"a": 1, "valid": True}, {"a": 2, "valid": True}, {"a": 0, "valid": False}]
    assert len(ds) == 3


def test_missing_names():
    with pytest.raises(AttributeError, match="no data service"):
        tf.data.experimental.service  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        tf.data.experimental.nonsense  # noqa: B018


# ---- shards -------------------------------------------------------------------------------------


def test_saved_shards(tmp_path):
    Dataset.range(6).save(str(tmp_path), shard_func=lambda x: x % 2)
    ds = Dataset.load(str(tmp_path))
    assert values(ds) == [0, 1, 2, 3, 4, 5]
    one_after_the_other = Dataset.load(str(tmp_path), reader_func=lambda shards: shards.flat_map(lambda d: d))
    assert values(one_after_the_other) == [0, 2, 4, 1, 3, 5]
    with pytest.raises(TypeError, match="must return a `Dataset`"):
        Dataset.load(str(tmp_path), reader_func=lambda shards: 1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="must return a scalar int64"):
        Dataset.range(6).save(str(tmp_path), shard_func=lambda x: 0.5)


def test_saved_datasets_know_how_many_elements_they_have(tmp_path):
    Dataset.range(6).filter(lambda x: x > 1).save(str(tmp_path))
    assert int(Dataset.load(str(tmp_path)).cardinality()) == 4
    (tmp_path / "dataset.json").unlink()  # as written before there were shards
    assert values(Dataset.load(str(tmp_path))) == [2, 3, 4, 5]


def test_one_iterator_at_a_time_writes_a_cache(tmp_path):
    ds = Dataset.range(3).cache(str(tmp_path / "c"))
    first = iter(ds)
    next(first)
    with pytest.raises(tf.errors.AlreadyExistsError, match="concurrent caching iterator"):
        next(iter(ds))
    assert [int(x) for x in first] == [1, 2]
    assert values(ds) == [0, 1, 2]


def test_files_that_are_read_in_turns(folder):
    names = [str(folder / "a.txt"), str(folder / "b.txt")]
    in_turns = [b"l1", b"m1", b"l2", b"", b"l4"]
    assert values(tf.data.TextLineDataset(names, num_parallel_reads=2)) == in_turns
    assert (
        values(tf.data.TextLineDataset(Dataset.from_tensor_slices(names), num_parallel_reads=2)) == in_turns
    )
    with pytest.raises(TypeError, match="must contain `tf.string` elements"):
        tf.data.TextLineDataset(Dataset.range(3))
    with pytest.raises(ValueError, match="Found no files"):
        tf.data.experimental.make_csv_dataset(str(folder / "*.none"), 1)
