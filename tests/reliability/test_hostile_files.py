"""Malicious files: loading any format runs no code, opens nothing outside of its folder and allocates no huge memory."""

import gzip
import importlib.util
import json
import os
import pickle
import resource
import struct
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest

import gradtape as tf
from gradtape.io import framing, png, wire
from gradtape.train import safetensors

E = tf.errors
DATA = Path(__file__).resolve().parents[1] / "train/data"
MANY = 1 << 40  # a size in a file, more than there is memory for


class Net(tf.Module):
    """The class of the stored modules below."""

    def __init__(self):
        super().__init__(name="net")
        self.w = tf.Variable([1.0, 2.0])

    @property
    def trap(self):
        raise AssertionError("a property was asked")

    @trap.setter
    def trap(self, value):
        raise AssertionError("a property was set")

    def call(self, x):
        return x * self.w


class Careless(tf.Module):
    """Runs its attribute as a command when it is deleted: no file may create one."""

    def __del__(self):
        os.system(self.command)  # noqa: S605


def activation(x):
    return 2.0 * x


class Marks:
    """Unpickling it creates a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


@pytest.fixture
def marker(tmp_path):
    """The file that exists if something was executed."""
    path = tmp_path / "ran"
    yield path
    assert not path.exists()


@pytest.fixture
def little_memory():
    """A limit of a gigabyte more than the process has."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (1 << 30), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


# ---- saved_model ----------------------------------------------------------------------------------


def description_of(folder):
    return json.loads((folder / "saved_model.json").read_text())


def write_signed(folder, content):
    """Writes a description into a folder, with a matching checksum."""
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    (folder / "saved_model.json").write_bytes(text)
    values = folder / "variables/variables.safetensors"
    archive = safetensors.Archive(str(values))
    tensors = {key: archive.tensor(key) for key in archive}
    safetensors.save(str(values), tensors, {"description": f"{framing.crc32c(text):08x}"})


@pytest.fixture
def stored(tmp_path):
    tf.saved_model.save(Net(), tmp_path / "m")
    return tmp_path / "m"


def with_attribute(stored, value, name="x"):
    content = description_of(stored)
    content["objects"][0]["attributes"][name] = value
    write_signed(stored, content)


def test_names_that_a_saved_model_may_use(stored):
    with_attribute(stored, {"list": [{"name": "gradtape:nn.relu"}, {"name": f"{__name__}:activation"}]})
    relu, other = tf.saved_model.load(stored).x
    assert relu is tf.nn.relu and other is activation


def test_a_thread_whose_target_is_a_command(stored, marker):
    """A file that ran a command in earlier versions: an object with any class and any attributes."""
    content = description_of(stored)
    content["objects"].append({"class": "threading:Thread", "attributes": {"_target": {"name": "os:system"}}})
    content["objects"][0]["attributes"]["t"] = {"object": 1}
    write_signed(stored, content)
    with pytest.raises(
        ImportError, match="threading:Thread is not a subclass of tf.Module that this program"
    ):
        tf.saved_model.load(stored)


@pytest.mark.parametrize(
    "name",
    [
        "os:system", "subprocess:run", "builtins:eval", "builtins:exec", "shutil:rmtree", "posix:system",
        f"{__name__}:os.system", f"{__name__}:subprocess", f"{__name__}:Marks", f"{__name__}:__name__",
        f"{__name__}:activation.__globals__", f"{__name__}:Net.call", f"{__name__}:Careless.__del__",
        "gradtape:__builtins__", "gradtape.saved_model:os.system", "gradtape.train.files:remove",
        "gradtape.module:Module.__init__", "", ":", "os", "gradtape:", "antigravity:fly", "this:d",
    ],
)  # fmt: skip
def test_names_that_it_may_not_use(stored, marker, name):
    before = set(sys.modules)
    with_attribute(stored, {"name": name})
    with pytest.raises(ImportError, match="Loading imports nothing and runs nothing"):
        tf.saved_model.load(stored)
    with_attribute(stored, {"name": "gradtape:nn.relu"})
    content = description_of(stored)
    content["objects"][0]["class"] = name
    write_signed(stored, content)
    with pytest.raises(ImportError, match="is not a subclass of tf.Module"):
        tf.saved_model.load(stored)
    assert not {"antigravity", "this"} & (set(sys.modules) - before)


def test_a_module_on_the_path_is_not_imported(stored, marker, tmp_path, monkeypatch):
    (tmp_path / "evil.py").write_text(f"open({str(marker)!r}, 'w')\nclass Net: pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    content = description_of(stored)
    content["objects"][0]["class"] = "evil:Net"
    write_signed(stored, content)
    with pytest.raises(ImportError, match="import what defines the class"):
        tf.saved_model.load(stored)
    assert "evil" not in sys.modules


@pytest.mark.parametrize("name", ["__class__", "__dict__", "__del__", "__call__", "__reduce__", "__"])
def test_names_with_two_underscores(stored, name):
    with_attribute(stored, {"name": "gradtape:nn.relu"}, name)
    with pytest.raises(E.DataLossError, match="an attribute has the name"):
        tf.saved_model.load(stored)


def test_no_property_and_no_constructor_is_run(stored):
    with_attribute(stored, 3, "trap")
    assert vars(tf.saved_model.load(stored))["trap"] == 3


def test_no_class_with_a_finalizer(stored, marker):
    content = description_of(stored)
    content["objects"][0] = {"class": f"{__name__}:Careless", "attributes": {"command": f"touch {marker}"}}
    write_signed(stored, content)
    with pytest.raises(ImportError, match="has a method __del__"):
        tf.saved_model.load(stored)
    careless = Careless()
    careless.command = "true"
    with pytest.raises(ValueError, match="has a method __del__; load would refuse"):
        tf.saved_model.save(careless, stored)


def test_methods_are_those_of_the_class(stored):
    with_attribute(stored, {"method": [{"object": 0}, "call"]})
    assert tf.saved_model.load(stored).x(tf.ones([2])).numpy().tolist() == [1.0, 2.0]
    for owner, name in (
        ({"object": 0}, "__init__"),
        ({"object": 0}, "trap"),
        ({"object": 0}, "w"),
        ("text", "upper"),
    ):
        with_attribute(stored, {"method": [owner, name]})
        if name != "__init__":
            with pytest.raises(E.DataLossError):
                tf.saved_model.load(stored)


def nested(depth):
    return b'{"list": [' * depth + b"]}" * depth


@pytest.mark.parametrize(
    "value",
    [
        {"eval": "1"}, {"__init__": 1}, {"decode": 1}, {"KINDS": 1}, {"list": "abc"}, {"list": 3}, {}, {"a": 1, "b": 2},
        {"object": 7}, {"object": -1}, {"object": True}, {"object": [0]}, {"tensor": "none"}, {"tensor": ["0"]},
        {"tensor": "0"}, {"list": [{"array": "0"}, {"array": "0"}]}, {"dict": [[{"list": []}, 1]]}, {"dict": 3},
        {"dtype": "object"}, {"dtype": 3}, {"shape": "abc"}, {"spec": []}, {"function": {}}, {"method": []}, [1, 2],
        {"function": {"python": {"name": "gradtape:nn.relu"}, "signature": None, "autograph": True}},
    ],
)  # fmt: skip
def test_invalid_values_are_reported_as_damage(stored, value):
    with_attribute(stored, value)
    with pytest.raises(E.DataLossError, match="saved_model.json is damaged"):
        tf.saved_model.load(stored)


def test_cycles_and_depth(stored):
    with_attribute(stored, {"list": [{"object": 0}]})
    again = tf.saved_model.load(stored)
    assert again.x[0] is again
    text = json.dumps(description_of(stored)).encode()
    # The first is too deep for our reader, not for json. Since 3.12 comprehensions are no calls: it reads deeper.
    for depth in (400 if sys.version_info < (3, 12) else 600, 100_000):
        write_signed(stored, text.replace(b'{"list": [{"object": 0}]}', nested(depth)))
        with pytest.raises(E.DataLossError, match="nested too deeply|RecursionError"):
            tf.saved_model.load(stored)


# ---- checkpoints ----------------------------------------------------------------------------------


def of_another_library(path, header, data=b""):
    text = json.dumps(header).encode() if isinstance(header, dict) else header
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


@pytest.mark.parametrize(
    "header",
    [
        {"w": {"dtype": "F32", "shape": [MANY], "data_offsets": [0, 4 * MANY]}},
        {"w": {"dtype": "F32", "shape": [0, 2**70], "data_offsets": [0, 0]}},
        {"w": {"dtype": "F32", "shape": [-1, -2], "data_offsets": [0, 8]}},
        {"w": {"dtype": "F32", "shape": [2.0], "data_offsets": [0, 8]}},
        {"w": {"dtype": "F32", "shape": "2", "data_offsets": [0, 8]}},
        {"w": {"dtype": "PICKLE", "shape": [2], "data_offsets": [0, 8]}},
        {"w": {"dtype": ["F32"], "shape": [2], "data_offsets": [0, 8]}},
        {"w": 3}, {"__metadata__": 3}, {"__metadata__": {"aliases": "[]"}}, {"__metadata__": {"aliases": "{"}},
        {"__metadata__": {"aliases": '{"a": 3}'}}, {"__metadata__": {"complex": 3}},
        {"a/" * 2000 + "b": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}},
        b"[" * 100_000, b"\xff\xfe", b"",
    ],
)  # fmt: skip
def test_headers_of_safetensors(tmp_path, little_memory, header):
    of_another_library(tmp_path / "m.safetensors", header, bytes(8))
    with pytest.raises(E.DataLossError, match="is damaged, or not a safetensors file"):
        tf.train.Checkpoint(w=tf.Variable([0.0, 0.0])).read(tmp_path / "m")


def test_a_missing_header(tmp_path, little_memory):
    (tmp_path / "m.safetensors").write_bytes((2**63).to_bytes(8, "little") + b"{}")
    with pytest.raises(E.DataLossError, match="its header should have"):
        tf.train.load_checkpoint(tmp_path / "m")


def test_cycles_in_a_checkpoint(tmp_path):
    """Aliases that lead back; a program's objects may do the same."""
    aliases = {"a": "", "a/b": "a", "c": "c", "d": "e", "e": "d"}
    header = {
        "__metadata__": {"aliases": json.dumps(aliases)},
        "w": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]},
    }
    of_another_library(tmp_path / "m.safetensors", header, np.float32(7).tobytes())
    module = tf.Module()
    module.w, module.a, module.c = tf.Variable(0.0), module, [tf.Variable(1.0)]
    tf.train.Checkpoint(module).read(tmp_path / "m").expect_partial()
    assert module.w.numpy() == 7.0


def tensorflow_checkpoint(tmp_path):
    for part in DATA.iterdir():
        (tmp_path / part.name).write_bytes(part.read_bytes())
    return tmp_path / "from_tensorflow"


def all_values(prefix):
    reader = tf.train.load_checkpoint(prefix)
    return {n: reader.get_tensor(n).tolist() for n in reader.get_variable_to_shape_map()}


@pytest.mark.parametrize("part", [".index", ".data-00000-of-00001"])
def test_every_flipped_bit_of_a_checkpoint_of_tensorflow_is_noticed(tmp_path, part):
    prefix = tensorflow_checkpoint(tmp_path)
    right = all_values(prefix)
    path = Path(f"{prefix}{part}")
    whole = path.read_bytes()
    unnoticed = []
    for bit in range(0, 8 * len(whole), 7):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        try:
            values = all_values(prefix)
        except (E.DataLossError, E.NotFoundError):
            continue
        assert values == right
        unnoticed.append(bit // 8)
    # The footer is padded with zeros.
    assert all(part == ".index" and at >= len(whole) - 48 for at in unnoticed)


def test_deep_object_graphs(tmp_path, little_memory):
    """A chain of objects needs memory with the square of its length: there is a limit, for saving too."""
    graph = b"".join(
        wire.message(1, wire.message(1, wire.varint(1, k + 1) + wire.text(2, "next"))) for k in range(100_000)
    )
    from gradtape.train.bundle import _aliases

    with pytest.raises(ValueError, match="more than 1000 objects"):
        _aliases(graph)
    chain = end = tf.Module()
    for _ in range(1100):
        end.next = end = tf.Module()
    end.v = tf.Variable(1.0)
    with pytest.raises(ValueError, match="more than 1000 objects"):
        tf.train.Checkpoint(chain).save(tmp_path / "ck")


# ---- the manager stays at home ----------------------------------------------------------------------


def victim_of(folder):
    folder.mkdir()
    paths = [folder / f"victim{end}" for end in (".index", ".safetensors", ".data-00000-of-00001")]
    for path in paths:
        path.write_text("precious")
    return paths


@pytest.mark.parametrize("how", ["relative", "absolute", "link", "dots"])
def test_a_manager_leaves_other_folders_alone(tmp_path, how, caplog):
    victims, folder = victim_of(tmp_path / "other"), tmp_path / "ck"
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    first = tf.train.CheckpointManager(checkpoint, folder, 2)
    first.save()
    if how == "link":
        (folder / "out").symlink_to(tmp_path / "other")
    named = {
        "relative": "../other/victim",
        "absolute": str(tmp_path / "other/victim"),
        "link": "out/victim",
        "dots": "sub/../../other/victim",
    }[how]
    (folder / "checkpoint").write_text(
        f'model_checkpoint_path: "{named}"\nall_model_checkpoint_paths: "{named}"\n'
        'all_model_checkpoint_paths: "ckpt-1"\n'
        "all_model_checkpoint_timestamps: 1.7e9\nall_model_checkpoint_timestamps: 1.7e9\n"
        "last_preserved_timestamp: 1.6e9\n"
    )
    manager = tf.train.CheckpointManager(checkpoint, folder, 1)
    assert "not in the folder" in caplog.text and manager.latest_checkpoint is None
    assert manager.checkpoints == [str(folder / "ckpt-1")]
    assert manager.restore_or_initialize() is None
    for _ in range(3):
        manager.save()
    assert all(path.read_text() == "precious" for path in victims)
    assert not (folder / "ckpt-1.safetensors").exists()


def test_absolute_paths_into_the_folder_are_those_of_the_folder(tmp_path):
    """As in TensorFlow, which writes absolute paths if the folder was given by one."""
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    path = checkpoint.save(tmp_path / "ck/ckpt")
    (tmp_path / "ck/checkpoint").write_text(
        f'model_checkpoint_path: "{path}"\nall_model_checkpoint_paths: "{path}"\n'
        "all_model_checkpoint_timestamps: 1.7e9\nlast_preserved_timestamp: 1.6e9\n"
    )
    manager = tf.train.CheckpointManager(checkpoint, tmp_path / "ck", 1)
    assert manager.latest_checkpoint == path and manager.checkpoints == [path]
    manager.save()
    assert not Path(path + ".safetensors").exists()


def test_a_link_to_the_folder_is_the_folder(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    for _ in range(3):
        manager = tf.train.CheckpointManager(checkpoint, tmp_path / "link", 1)
        manager.save()
    assert sorted(p.name for p in (tmp_path / "real").glob("*.safetensors")) == ["ckpt-3.safetensors"]


def test_checkpoints_of_tensorflow_are_deleted_whole(tmp_path):
    (tmp_path / "ckpt-1.index").write_text("")
    (tmp_path / "ckpt-1.data-00000-of-00002").write_text("")
    (tmp_path / "ckpt-1.data-00001-of-00002").write_text("")
    (tmp_path / "checkpoint").write_text(
        'model_checkpoint_path: "ckpt-1"\nall_model_checkpoint_paths: "ckpt-1"\n'
        "all_model_checkpoint_timestamps: 1.7e9\nlast_preserved_timestamp: 1.6e9\n"
    )
    counter = tf.Variable(np.int64(1))
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=counter), tmp_path, 1)
    manager.save(checkpoint_number=2)
    assert not list(tmp_path.glob("ckpt-1.*"))


def test_names_that_protobuf_wrote(tmp_path):
    """Bytes beyond ASCII are numbers there; a path has no zero byte."""
    tf.train.Checkpoint(v=tf.Variable(1.0)).write(tmp_path / "täglich-1")
    (tmp_path / "checkpoint").write_bytes(b'model_checkpoint_path: "t\\303\\244glich-1"\n')
    assert tf.train.latest_checkpoint(tmp_path) == str(tmp_path / "täglich-1")
    for text in (b'model_checkpoint_path: "a\\0b"', b"model_checkpoint_path: 3", b"nonsense: 3", b"\xff" * 9):
        (tmp_path / "checkpoint").write_bytes(text)
        assert tf.train.get_checkpoint_state(tmp_path) is None


# ---- records, tensors, datasets --------------------------------------------------------------------


def read(path, compression=""):
    return [r.numpy() for r in tf.data.TFRecordDataset(str(path), compression)]


def test_a_missing_record(tmp_path, little_memory):
    for size in (MANY, 2**63, 2**64 - 1):
        length = size.to_bytes(8, "little")
        data = length + framing.masked(length) + bytes(100)
        for compression, packed in (("", data), ("GZIP", gzip.compress(data)), ("ZLIB", zlib.compress(data))):
            (tmp_path / "r").write_bytes(packed)
            with pytest.raises(E.DataLossError, match="truncated record at 0"):
                read(tmp_path / "r", compression)


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_records_are_unpacked_as_they_are_read(tmp_path, little_memory, compression):
    """Two megabytes that decompress to two gigabytes: reading needs memory for one record at a time."""
    pack = zlib.compressobj(1, zlib.DEFLATED, 31 if compression == "GZIP" else 15)
    packed = pack.compress(framing.framed(bytes(1 << 24))) + pack.flush()
    (tmp_path / "r").write_bytes(packed * 128)
    records = iter(tf.data.TFRecordDataset(str(tmp_path / "r"), compression))
    assert [len(next(records).numpy()) for _ in range(3)] == [1 << 24] * 3


def proto(*fields):
    return b"".join(fields)


def shape_of(*sizes):
    return wire.message(2, b"".join(wire.message(2, wire.varint(1, d)) for d in sizes))


@pytest.mark.parametrize(
    "data",
    [
        proto(wire.varint(1, 1), shape_of(MANY), wire.message(5, bytes(4))),
        proto(wire.varint(1, 1), shape_of(MANY), wire.message(4, bytes(4))),
        proto(wire.varint(1, 1), shape_of(-1), wire.message(4, bytes(4))),
        proto(wire.varint(1, 1), shape_of(*[2] * 300), wire.message(4, bytes(4))),
        proto(wire.varint(1, 1), shape_of(2**40, 2**40, 0), wire.message(4, bytes(4))),
        proto(wire.varint(1, 1), wire.message(4, bytes(3))),
        proto(wire.varint(1, 1), wire.message(2, b"\xff" * 20)),
        wire.varint(1, 1) + b"\x22\xff\xff\xff\xff\x7f",
        b"\xff" * 100,
    ],
)  # fmt: skip
def test_tensors_of_absurd_sizes(little_memory, data):
    with pytest.raises(E.InvalidArgumentError):
        tf.io.parse_tensor(data, tf.float32)
    with pytest.raises(ValueError):
        tf.make_ndarray(type(tf.make_tensor_proto(1)).FromString(data))


def test_examples_of_absurd_sizes(little_memory):
    features = {"x": tf.io.FixedLenFeature([2], tf.float32)}
    deep = b"".join(b"\x0a\x80\x80\x80\x80\x01" for _ in range(1000))
    for data in (b"\x0a\xff\xff\xff\xff\xff\x7f", b"\x80" * 50, deep, b"\x0b" * 5000):
        with pytest.raises(E.InvalidArgumentError):
            tf.io.parse_single_example(data, features)
        with pytest.raises(ValueError):
            tf.train.Example.FromString(data)


def elements_file(path, *records):
    path.write_bytes(b"".join(map(framing.framed, records)))


def test_files_of_elements(tmp_path, little_memory, marker):
    header = json.dumps(
        {"format": "gradtape elements 2", "element": {"dtype": "float32", "shape": [None]}}
    ).encode()
    end = b'{"elements": 1}'
    ok = struct.pack("<Bqq", 1, 2, 8) + np.ones(2, np.float32).tobytes()
    file = tmp_path / "elements"
    elements_file(file, header, ok, end)
    assert [x.numpy().tolist() for x in tf.data.Dataset.load(str(tmp_path))] == [[1.0, 1.0]]
    bad = [
        struct.pack("<Bqq", 1, MANY, 4 * MANY), struct.pack("<Bqq", 1, -1, -8), struct.pack("<Bqq", 255, 1, 1), b"",
        ok + b"more", ok[:-1], struct.pack("<Bqqq", 2, MANY, 0, 8) + bytes(8), pickle.dumps(Marks(marker)),
    ]  # fmt: skip
    for record in bad:
        elements_file(file, header, record, end)
        with pytest.raises(E.DataLossError):
            list(tf.data.Dataset.load(str(tmp_path)))
    for last in (b'{"elements": 2}', b"", b"{}", b"[]"):
        elements_file(file, header, ok, last)
        with pytest.raises(E.DataLossError, match="ends before its last element"):
            list(tf.data.Dataset.load(str(tmp_path)))
    for element in (
        '{"dtype": "os.system", "shape": []}',
        '{"tuple": 3}',
        "[" * 100_000,
        "3",
        '{"dict": [1]}',
    ):
        elements_file(file, b'{"format": "gradtape elements 2", "element": ' + element.encode() + b"}", end)
        with pytest.raises(E.DataLossError):
            list(tf.data.Dataset.load(str(tmp_path)))


def test_pickles_are_never_read(tmp_path, marker):
    """A pickle in a file of any name is never loaded."""
    data = pickle.dumps(Marks(marker))
    for name in ("m.safetensors", "saved_model.json", "elements", "checkpoint", "r", "x.npy", "c.elements"):
        (tmp_path / name).write_bytes(data)
    (tmp_path / "m.index").write_bytes(data)
    loads = [
        lambda: tf.train.load_checkpoint(tmp_path / "m"),
        lambda: tf.saved_model.load(tmp_path),
        lambda: tf.data.Dataset.load(str(tmp_path)),
        lambda: list(tf.data.Dataset.range(3).cache(str(tmp_path / "c"))),
        lambda: read(tmp_path / "r"),
        lambda: tf.io.parse_tensor(data, tf.float32),
        lambda: tf.io.parse_single_example(data, {"x": tf.io.FixedLenFeature([], tf.string)}),
    ]
    for load in loads:
        with pytest.raises((E.DataLossError, E.InvalidArgumentError, E.NotFoundError)):
            load()
    assert tf.train.latest_checkpoint(tmp_path) is None


def test_tables(tmp_path, marker):
    (tmp_path / "t.csv").write_bytes(b'n,s\n1,"=cmd|\xff"\n2,__import__("os")\n')
    make = tf.data.experimental.CsvDataset
    rows = [s.numpy() for _, s in make(str(tmp_path / "t.csv"), [tf.int32, tf.string], header=True).take(1)]
    assert rows == [b"=cmd|\xff"]
    for text in (
        b"99999999999,a\n",
        b"1_0,a\n",
        b'1,"a"b\n',
        b'1,"a\n',
        b"1\n",
        b"1,2,3\n",
        b"1," + b"x" * 200_000 + b"\n",
    ):
        (tmp_path / "t.csv").write_bytes(text)
        with pytest.raises(E.InvalidArgumentError):
            list(make(str(tmp_path / "t.csv"), [tf.int32, tf.string]))
    for line in (b"99999999999,a", b"1_0,a", b'1,"a"b', b'1,"a', b"1"):
        with pytest.raises(E.InvalidArgumentError):
            tf.io.decode_csv([line], [[0], [""]])
    assert tf.io.decode_csv([b"1,\xff"], [[0], [""]])[1].numpy().tolist() == [b"\xff"]


# ---- images ---------------------------------------------------------------------------------------


def test_images_of_absurd_sizes(little_memory):
    pytest.importorskip("PIL")
    pixels = np.zeros([4, 4, 3], np.uint16)
    for data, dtype in ((png.encode(pixels), tf.uint16), (png.encode(pixels.astype(np.uint8)), tf.uint8)):
        head = bytearray(data)
        head[16:24] = struct.pack(">II", 2**31 - 1, 2**31 - 1)
        head[29:33] = struct.pack(">I", zlib.crc32(head[12:29]))
        with pytest.raises(E.InvalidArgumentError):
            tf.io.decode_png(bytes(head), dtype=dtype)
        with pytest.raises(E.InvalidArgumentError):
            tf.io.decode_png(data[:20], dtype=dtype)
    gif = bytearray(b"GIF89a" + struct.pack("<HH", 60000, 60000) + b"\x80\0\0" + bytes(6))
    frame = b"," + struct.pack("<HHHH", 0, 0, 60000, 60000) + b"\0\x02\x02L\x01\0"
    with pytest.raises(E.InvalidArgumentError):
        tf.io.decode_gif(bytes(gif + frame * 1000 + b";"))


def test_gif_with_a_frame_far_beyond_the_first():
    """A later frame of 9000 x 5000 pixels in an image of 2 x 2 takes a few bytes, and 180 MB if it is read."""
    gif = b"GIF89a" + struct.pack("<HH", 2, 2) + b"\x80\0\0" + bytes(6)
    first = b"," + struct.pack("<HHHH", 0, 0, 2, 2) + b"\0\x02\x02\x84\x51\0"
    second = b"," + struct.pack("<HHHH", 9000, 5000, 2, 2) + b"\0\x02\x02\x84\x51\0"
    assert tf.io.decode_gif(gif + first * 2 + b";").shape == (2, 2, 2, 3)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"frame 1 makes an image of \(2, 2\)"):
        tf.io.decode_gif(gif + first + second + b";")


# ---- models of Keras -------------------------------------------------------------------------------

KERAS = """
import json, os, sys, zipfile
import gradtape as tf
keras = tf.keras
folder, marker = sys.argv[1:3]
os.chdir(folder)
model = keras.Sequential([keras.Input([2]), keras.layers.Lambda(lambda x: x * 2), keras.layers.Dense(1)])
def refused(name, how=keras.models.load_model, **options):
    try:
        how(name, **options)
    except (ValueError, TypeError, OSError) as e:
        return str(e)
    raise AssertionError(name)
for name in ("m.keras", "m.h5"):
    model.save(name)
    assert "lambda" in refused(name).lower(), name
    assert keras.models.load_model(name, safe_mode=False)(tf.ones([1, 2])).shape == (1, 1)
plain = keras.Sequential([keras.Input([2]), keras.layers.Dense(1, name="d")])
plain.save("p.keras")
parts = {n: zipfile.ZipFile("p.keras").read(n) for n in zipfile.ZipFile("p.keras").namelist()}
def rewritten(**changed):
    with zipfile.ZipFile("q.keras", "w", zipfile.ZIP_DEFLATED) as out:
        for n, data in {**parts, **changed}.items():
            out.writestr(n, data)
    return "q.keras"
config = json.loads(parts["config.json"])
layer = config["config"]["layers"][-1]
command = {"class_name": "function", "config": "system", "module": "os", "registered_name": "system"}
for change in ({"module": "os", "class_name": "system"}, {"module": "subprocess", "class_name": "Popen"},
               {"module": "keras.src.utils.file_utils", "class_name": "get_file"},
               {"config": {**layer["config"], "activation": command}}):
    config["config"]["layers"][-1] = {**layer, **change}
    refused(rewritten(**{"config.json": json.dumps(config)}))
said = refused(rewritten(**{"config.json": b"[" * ((1 << 28) + 1)}))
assert "would unpack" in said, said
said = refused(rewritten(**{"../../outside": b"x"}))
assert "outside of its folder" in said, said
refused(rewritten(**{"config.json": b"[" * 100000}))
refused(rewritten(**{"config.json": b"\\xff\\xfe"}))
refused(rewritten(**{"model.weights.h5": parts["model.weights.h5"][:500]}))
assert not os.path.exists(marker) and not os.path.exists("../../outside")
"""


def test_models_of_keras(tmp_path, marker):
    if importlib.util.find_spec("keras") is None or importlib.util.find_spec("h5py") is None:
        pytest.skip("Keras or h5py, which it saves with, is not installed")
    (tmp_path / "a/b").mkdir(parents=True)
    done = subprocess.run(
        [sys.executable, "-c", KERAS, str(tmp_path / "a/b"), str(marker)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_zip_is_no_checkpoint(tmp_path, marker):
    with zipfile.ZipFile(tmp_path / "m.safetensors", "w") as file:
        file.writestr("../../ran", "x")
    with pytest.raises(E.DataLossError):
        tf.train.load_checkpoint(tmp_path / "m")
