"""Static and vocabulary tables: lookups, errors, use in functions and datasets; TensorFlow's values."""

import pytest

import gradtape as tf

KV, Table = tf.lookup.KeyValueTensorInitializer, tf.lookup.StaticHashTable
Index, TextFile = tf.lookup.TextFileIndex, tf.lookup.TextFileInitializer


def table(default=-1):
    return Table(KV(["a", "b"], [1, 2]), default)


@pytest.fixture
def vocabulary(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("emerson\nlake\r\npalmer\n")
    return str(path)


@pytest.fixture
def columns(tmp_path):
    path = tmp_path / "columns.txt"
    path.write_text("a 1\nb 2\nc 3\n")
    return str(path)


def test_lookup():
    t = table()
    assert (t.key_dtype, t.value_dtype, int(t.default_value), int(t.size())) == (tf.string, tf.int32, -1, 2)
    assert t.lookup(tf.constant([["a", "x"]])).numpy().tolist() == [[1, -1]]
    assert t[tf.constant("b")].numpy() == 2
    keys, values = t.export()
    assert dict(zip(keys.numpy().tolist(), values.numpy().tolist(), strict=True)) == {b"a": 1, b"b": 2}
    assert t.size().dtype is tf.int64


def test_integers_to_strings():
    t = Table(KV([1, 2], ["x", "y"], tf.int64, tf.string), "?")
    assert t.lookup(tf.constant([1, 3], tf.int64)).numpy().tolist() == [b"x", b"?"]
    with pytest.raises(TypeError, match="Dtype of argument `keys` must be"):
        t.lookup(tf.constant([1, 3]))


def test_rows_of_any_length():
    out = table().lookup(tf.ragged.constant([["a"], [], ["b", "x"]]))
    assert out.to_list() == [[1], [], [2, -1]]
    sparse = tf.SparseTensor([[0], [2]], tf.constant(["a", "z"]), [3])
    assert table().lookup(sparse).values.numpy().tolist() == [1, -1]


@pytest.mark.parametrize(
    "make, error, words",
    [
        (lambda: Table(KV(["a", "a"], [1, 2]), -1), tf.errors.FailedPreconditionError, "Key a has 1 and trying"),
        (lambda: Table(KV(["a", "b"], [1]), -1), tf.errors.InvalidArgumentError, "Expected shape"),
        (lambda: Table(KV([], [], tf.string, tf.int64), -1), tf.errors.InvalidArgumentError, "empty"),
        (lambda: Table(KV([1.5], [2.5]), 0.0), tf.errors.NotFoundError, "key_dtype=float32"),
        (lambda: Table(KV(["a"], [1]), 1.5), TypeError, "Cannot convert 1.5"),
        (lambda: Table(KV(["a"], [1]), [1, 2]), ValueError, "not compatible"),
        (lambda: table().lookup(tf.constant([1])), TypeError, "keys"),
    ],
)  # fmt: skip
def test_refused(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_a_value_twice_is_no_mistake():
    assert int(Table(KV(["a", "a"], [1, 1]), -1).size()) == 1


def test_in_functions():
    t = table()
    f = tf.function(lambda x: t.lookup(x) * 2)
    assert f(tf.constant(["a", "q"])).numpy().tolist() == [2, -2]
    g = tf.function(t.lookup, input_signature=[tf.TensorSpec([None], tf.string)])
    assert [g(tf.constant(x)).numpy().tolist() for x in (["a"], ["b", "a", "c"])] == [[1], [2, 1, -1]]
    assert g.get_concrete_function().output_shapes == tf.TensorShape([None])


def test_a_table_that_a_function_makes_once():
    made = []

    @tf.function
    def f(x):
        if not made:
            made.append(table())
        return made[0].lookup(x)

    assert f(tf.constant("b")).numpy() == 2


def test_in_datasets():
    t = table()
    data = tf.data.Dataset.from_tensor_slices(["a", "b", "c"]).map(t.lookup).batch(3)
    assert next(iter(data)).numpy().tolist() == [1, 2, -1]


def test_lines_of_a_file(vocabulary):
    t = Table(TextFile(vocabulary, tf.string, Index.WHOLE_LINE, tf.int64, Index.LINE_NUMBER), -1)
    assert t.lookup(tf.constant(["lake", "x"])).numpy().tolist() == [1, -1]
    back = Table(TextFile(vocabulary, tf.int64, Index.LINE_NUMBER, tf.string, Index.WHOLE_LINE), "?")
    assert back.lookup(tf.constant([0, 5], tf.int64)).numpy().tolist() == [b"emerson", b"?"]
    some = TextFile(
        vocabulary,
        tf.string,
        Index.WHOLE_LINE,
        tf.int64,
        Index.LINE_NUMBER,
        vocab_size=2,
        value_index_offset=10,
    )
    assert Table(some, -1).export()[1].numpy().tolist() == [10, 11]


def test_columns_of_a_file(columns):
    t = Table(TextFile(columns, tf.string, 0, tf.int64, 1, delimiter=" "), -1)
    assert t.lookup(tf.constant(["a", "c"])).numpy().tolist() == [1, 3]


@pytest.mark.parametrize(
    "arguments, error, words",
    [
        (
            (tf.string, 0, tf.int64, 1),
            tf.errors.InvalidArgumentError,
            r"line 0 \(a 1\) : expected at least 2 got 1",
        ),
        (
            (tf.string, 0, tf.int64, 0, None, " "),
            tf.errors.InvalidArgumentError,
            "Field a in line 0 is not a valid int64",
        ),
        ((tf.string, -2, tf.int64, -1, 5), tf.errors.InvalidArgumentError, "expected 5 but got 3"),
        ((tf.string, -1, tf.int64, -1), ValueError, "`key_dtype` must be int64"),
        ((tf.string, -2, tf.int32, -1), ValueError, "`value_dtype` must be int64"),
        ((tf.string, -3, tf.int64, -1), ValueError, "`key_index` should be >= -2"),
        ((tf.string, -2, tf.int64, -1, 0), ValueError, "`vocab_size` should be > 0"),
    ],
)
def test_files_that_do_not_fit(columns, arguments, error, words):
    with pytest.raises(error, match=words):
        Table(TextFile(columns, *arguments), -1)


def test_no_file():
    with pytest.raises(ValueError, match="`filename` argument required"):
        TextFile("", tf.string, -2, tf.int64, -1)
    with pytest.raises(tf.errors.NotFoundError):
        Table(TextFile("/no/such/file", tf.string, -2, tf.int64, -1), -1)


def test_vocabularies():
    vocabulary = KV(["a", "b"], tf.constant([0, 1], tf.int64))
    t = tf.lookup.StaticVocabularyTable(vocabulary, 3)
    assert t.lookup(tf.constant(["a", "x", "y", "zz"])).numpy().tolist() == [0, 4, 4, 3]
    assert (int(t.size()), t.key_dtype, t.value_dtype) == (5, tf.string, tf.int64)
    assert t.lookup(tf.ragged.constant([["a"], ["q", "b"]])).to_list() == [[0], [4, 1]]
    assert tf.lookup.StaticVocabularyTable(None, 5).lookup(tf.constant(["a", "b"])).numpy().tolist() == [4, 2]
    numbers = KV(tf.constant([10, 20], tf.int64), tf.constant([0, 1], tf.int64))
    for dtype in (None, tf.int32):
        t = tf.lookup.StaticVocabularyTable(numbers, 2, dtype)
        assert t.lookup(tf.constant([10, 7, 8], dtype or tf.int64)).numpy().tolist() == [0, 2, 3]
    assert tf.function(t.lookup)(tf.constant([20, 7])).numpy().tolist() == [1, 2]


def test_vocabularies_that_are_refused():
    with pytest.raises(TypeError, match="Invalid `value_dtype`"):
        tf.lookup.StaticVocabularyTable(KV(["a"], [0]), 1)
    with pytest.raises(ValueError, match="must be > 0; use StaticHashTable"):
        tf.lookup.StaticVocabularyTable(KV(["a"], tf.constant([0], tf.int64)), 0)
    with pytest.raises(TypeError, match="Invalid `key_dtype`"):
        tf.lookup.StaticVocabularyTable(KV([1.5], tf.constant([0], tf.int64)), 1)
