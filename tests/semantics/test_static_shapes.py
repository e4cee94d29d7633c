"""Static shapes in functions whose sizes are not known: the same as TensorFlow 2.21's, call by call."""

import pytest

from tests.semantics.lib import tf

spec = tf.TensorSpec


def shown(*tensors):
    """The static shapes of tensors, as the traced function sees them."""
    SEEN.append([str(t.shape) for t in tensors])
    return tensors[0]


SEEN = []
FUNCTIONS = {
    "binary": (lambda x, y: shown(x + y, x * y, x > y), spec([None, 3]), spec([3])),
    "bcast_unknown": (lambda x, y: shown(x + y), spec([None]), spec([5])),
    "bcast_uu": (lambda x, y: shown(x + y), spec([None]), spec([None])),
    "bcast_1": (lambda x, y: shown(x + y), spec([None, 1]), spec([1, None])),
    "matmul": (lambda x, y: shown(x @ y), spec([None, None]), spec([3, 4])),
    "matmul_b": (lambda x, y: shown(tf.matmul(x, y)), spec([None, 2, 3]), spec([None, 3, 4])),
    "reduce": (
        lambda x: shown(
            tf.reduce_sum(x, 0),
            tf.reduce_mean(x, 1),
            tf.reduce_max(x),
            tf.reduce_sum(x, [0, 1], keepdims=True),
        ),
        spec([None, 3, None]),
    ),
    "reshape": (
        lambda x: shown(tf.reshape(x, [-1]), tf.reshape(x, [-1, 3]), tf.reshape(x, [tf.shape(x)[0], 3, 1])),
        spec([None, 3]),
    ),
    "concat": (lambda x, y: shown(tf.concat([x, y], 0), tf.concat([x, x], 1)), spec([None, 3]), spec([2, 3])),
    "stack": (lambda x: shown(tf.stack([x, x]), tf.stack([x, x], 1)), spec([None, 3])),
    "slice": (lambda x: shown(x[0], x[1:], x[:, 1], x[..., None], x[:2], x[-1:]), spec([None, 3])),
    "transpose": (lambda x: shown(tf.transpose(x), tf.transpose(x, [1, 0, 2])), spec([None, 3, 4])),
    "expand": (
        lambda x: shown(
            tf.expand_dims(x, 0), tf.squeeze(x[:, None], 1), tf.tile(x, [2, 1]), tf.pad(x, [[1, 1], [0, 2]])
        ),
        spec([None, 3]),
    ),
    "shapeops": (
        lambda x: shown(
            tf.shape(x),
            tf.size(x),
            tf.rank(x),
            tf.zeros_like(x),
            tf.ones(tf.shape(x)),
            tf.zeros([tf.shape(x)[0], 2]),
            tf.fill([tf.shape(x)[0]], 1.0),
        ),
        spec([None, 3]),
    ),
    "range": (
        lambda n: shown(
            tf.range(n), tf.one_hot(tf.range(n), 5), tf.sequence_mask(tf.range(n)), tf.one_hot([1, 2], n)
        ),
        spec([], tf.int32),
    ),
    "gather": (
        lambda x, i: shown(tf.gather(x, i), tf.gather(x, i, axis=1), tf.gather_nd(x, i[:, None])),
        spec([None, 3]),
        spec([None], tf.int32),
    ),
    "mask": (
        lambda x: shown(tf.boolean_mask(x, x[:, 0] > 0), tf.where(x > 0), tf.where(x > 0, x, 0.0), x[x > 0]),
        spec([None, 3]),
    ),
    "mask_known": (lambda x: shown(tf.boolean_mask(x, x > 0), tf.where(x > 0)), spec([5])),
    "unique": (lambda x: shown(*tf.unique(x)), spec([None], tf.int32)),
    "dynpart": (lambda x, p: shown(*tf.dynamic_partition(x, p, 2)), spec([None, 3]), spec([None], tf.int32)),
    "segment": (
        lambda x, i: shown(tf.math.segment_sum(x, i), tf.math.unsorted_segment_sum(x, i, 4)),
        spec([None, 3]),
        spec([None], tf.int32),
    ),
    "repeat": (lambda x: shown(tf.repeat(x, 2, axis=0), tf.repeat(x, [1, 2, 3], axis=1)), spec([None, 3])),
    "split": (lambda x: shown(*tf.split(x, 3, axis=1)), spec([None, 3])),
    "topk": (lambda x: shown(*tf.math.top_k(x, 2)), spec([None, 5])),
    "sort": (lambda x: shown(tf.sort(x), tf.argsort(x), tf.argmax(x, 1), tf.cumsum(x)), spec([None, 5])),
    "conv": (
        lambda x, k: shown(
            tf.nn.conv2d(x, k, 1, "SAME"), tf.nn.conv2d(x, k, 2, "VALID"), tf.nn.max_pool2d(x, 2, 2, "SAME")
        ),
        spec([None, None, None, 3]),
        spec([3, 3, 3, 8]),
    ),
    "conv2": (lambda x, k: shown(tf.nn.conv2d(x, k, 2, "SAME")), spec([None, 28, 28, 1]), spec([3, 3, 1, 8])),
    "resize": (
        lambda x: shown(tf.image.resize(x, [10, 12]), tf.image.random_crop(x[0], [4, 4, 3])),
        spec([None, None, None, 3]),
    ),
    "softmax": (lambda x: shown(tf.nn.softmax(x), tf.nn.log_softmax(x), tf.nn.relu(x)), spec([None, None])),
    "xent": (
        lambda x, labels: shown(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x)),
        spec([None, 5]),
        spec([None], tf.int32),
    ),
    "einsum": (
        lambda x, y: shown(tf.einsum("bi,ij->bj", x, y), tf.tensordot(x, y, 1)),
        spec([None, 3]),
        spec([3, 4]),
    ),
    "rank": (
        lambda x: shown(x, x + 1.0, tf.reshape(x, [-1]), tf.reduce_sum(x), tf.shape(x), tf.rank(x)),
        spec(None),
    ),
    "rank2": (
        lambda x: shown(
            tf.reduce_sum(x, 0),
            tf.concat([x, x], 0),
            tf.expand_dims(x, 0),
            tf.reshape(x, [2, -1]),
            tf.ensure_shape(x, [None, 3]),
        ),
        spec(None),
    ),
    "ensure": (
        lambda x: shown(
            tf.ensure_shape(x, [None, 4]),
        ),
        spec([None, None]),
    ),
    "cast": (lambda x: shown(tf.cast(x, tf.int32), tf.identity(x), tf.stop_gradient(x)), spec([None, None])),
    "meshgrid": (lambda x: shown(*tf.meshgrid(x, x)), spec([None])),
    "linspace": (
        lambda n: shown(tf.linspace(0.0, 1.0, n), tf.eye(n), tf.random.normal([n, 3])),
        spec([], tf.int32),
    ),
    "scatter": (
        lambda i, u: shown(
            tf.scatter_nd(i, u, [8]),
        ),
        spec([None, 1], tf.int32),
        spec([None]),
    ),
    "cond": (
        lambda x: shown(
            tf.cond(tf.reduce_sum(x) > 0, lambda: x, lambda: x[:1]),
            tf.cond(tf.reduce_sum(x) > 0, lambda: x, lambda: x + 1),
        ),
        spec([3]),
    ),
    "while": (
        lambda x: shown(*tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2), (0, x))),
        spec([None, 3]),
    ),
    "map_fn": (
        lambda x: shown(tf.map_fn(lambda r: r * 2, x), tf.scan(lambda a, b: a + b, x)),
        spec([None, 3]),
    ),
    "vmap": (lambda x: shown(tf.vectorized_map(lambda r: r * 2, x)), spec([None, 3])),
    "linalg": (
        lambda x: shown(tf.linalg.inv(x), tf.linalg.det(x), tf.linalg.diag_part(x), tf.linalg.diag(x[0])),
        spec([None, 3, 3]),
    ),
    "norm": (
        lambda x: shown(tf.norm(x, axis=1), tf.nn.l2_normalize(x, 1), *tf.nn.moments(x, [0])),
        spec([None, 3]),
    ),
    "rank3": (
        lambda x, c: shown(
            x + c, tf.where(x > 1.0, x, c), tf.unstack(x, 2)[0], tf.boolean_mask(x, [True, False])
        ),
        spec(None),
        spec([2, 3]),
    ),
    "rank4": (
        lambda x, c: shown(
            tf.ensure_shape(x, [6, 4]),
            tf.ensure_shape(x, [6, None]),
            tf.stack([x, c]),
            tf.add_n([x, c]),
            tf.concat([x, c], 0),
            tf.reshape(x, [5, 7]),
            tf.broadcast_to(x, [4, 2, 3]),
            tf.tensordot(x, c, [[1], [1]]),
        ),
        spec(None),
        spec([2, 3]),
    ),
    # Sizes that could not be inferred from a single choice of the unknown ones.
    "squeeze": (lambda x: shown(tf.squeeze(x), tf.squeeze(x, 0)), spec([None, 2])),
    "least": (lambda x: shown(tf.linalg.diag_part(x), *tf.linalg.svd(x)), spec([None, 2])),
    "part": (lambda n: shown(tf.ones([4, 6])[:n], tf.ones([4, 6])[:, n:]), spec([], tf.int32)),
    "axis": (
        lambda n: shown(tf.concat([tf.ones([4, 6])] * 2, n), tf.gather(tf.ones([4, 6]), [0], axis=n)),
        spec([], tf.int32),
    ),
    "bounds": (
        lambda a, b: shown(tf.range(a, b), tf.range(0, 10, b), tf.ones([9])[a:b]),
        spec([], tf.int32),
        spec([], tf.int32),
    ),
    "length": (lambda x: shown(tf.range(x)), spec([])),
    "size_of_rank": (lambda n: shown(tf.zeros([n, 3]), tf.eye(n)), spec(None, tf.int32)),
    "order": (lambda x, p: shown(tf.transpose(x, p)), spec([None, 3, 4]), spec([3], tf.int32)),
    "shape": (
        lambda s: shown(tf.zeros(s), tf.reshape(tf.ones([4, 6]), s), tf.tile(tf.ones([4, 6]), s[:2])),
        spec([None], tf.int32),
    ),
    "pair": (
        lambda s: shown(
            tf.reshape(tf.ones([4, 6]), s),
            tf.transpose(tf.ones([4, 6]), s),
            tf.eye(3, batch_shape=s),
            tf.random.normal(s),
            tf.random.uniform(s),
            *tf.split(tf.ones([4, 6]), s),
        ),
        spec([2], tf.int32),
    ),
    "reshape_like": (lambda x, y: shown(tf.reshape(x, tf.shape(y))), spec([None, 2]), spec(None)),
    "bcast_rank": (
        lambda x: shown(x + tf.ones([3, 2]), tf.where(x > 0.0, x, tf.ones([4, 2]))),
        spec(None),
    ),
    # Calls that fit few sizes.
    "split_list": (lambda x: shown(*tf.split(x, [1, 2])), spec([None, None])),
    "dynamic_shape": (
        lambda x: shown(tf.broadcast_dynamic_shape(tf.shape(x), [5, 1])),
        spec([None, 2]),
    ),
    "beside_constants": (
        lambda x: shown(
            tf.stack([x, tf.ones([5, 2])]), tf.concat([x, tf.ones([5, 3])], 1), tf.ensure_shape(x, [1, 2, 3])
        ),
        spec(None),
    ),
    "indices_of_rank": (
        lambda x, i: shown(tf.gather(x, i), tf.gather_nd(x, i), tf.math.unsorted_segment_sum(x, i, 3)),
        spec(None),
        spec(None, tf.int32),
    ),
    "scatter_of_rank": (lambda i, x: shown(tf.scatter_nd(i, x, [5])), spec(None, tf.int32), spec(None)),
    "reshape_to_nothing": (lambda x: shown(tf.reshape(x, [3, 0])), spec([None, 3])),
    "values_of_rank": (
        lambda x, y: shown(tf.pad(x, y), tf.tile(x, y), tf.slice(x, y, y)),
        spec(None),
        spec(None, tf.int32),
    ),
    "conv_transpose": (
        lambda x: shown(
            tf.nn.conv2d_transpose(x, tf.ones([3, 3, 8, 3]), tf.stack([tf.shape(x)[0], 8, 8, 8]), 2),
            tf.nn.conv2d_transpose(
                x, tf.ones([3, 3, 8, 3]), [tf.shape(x)[0], 2 * tf.shape(x)[1], 2 * tf.shape(x)[2], 8], 2
            ),
        ),
        spec([None, None, None, 3]),
    ),
    "colours": (
        lambda x: shown(tf.image.rgb_to_hsv(x), tf.image.rgb_to_grayscale(x)),
        spec([None, None, None, None]),
    ),
    "many_elements": (
        lambda x: shown(tf.boolean_mask(x, x > 0.0), tf.where(x > 0.0)),
        spec([None, None, None, None, None]),
    ),
    "no_rows": (lambda x, y: shown(x @ y), spec([None, 0]), spec([None, 4])),
    "assertion": (
        lambda x: (tf.debugging.assert_equal(tf.shape(x)[0], 3), shown(x, x + 1.0))[1],
        spec([None, 2]),
    ),
}
EXPECTED = {
    "binary": ["(None, 3)", "(None, 3)", "(None, 3)"],
    "bcast_unknown": ["(5,)"],
    "bcast_uu": ["(None,)"],
    "bcast_1": ["(None, None)"],
    "matmul": ["(None, 4)"],
    "matmul_b": ["(None, 2, 4)"],
    "reduce": ["(3, None)", "(None, None)", "()", "(1, 1, None)"],
    "reshape": ["(None,)", "(None, 3)", "(None, 3, 1)"],
    "concat": ["(None, 3)", "(None, 6)"],
    "stack": ["(2, None, 3)", "(None, 2, 3)"],
    "slice": ["(3,)", "(None, 3)", "(None,)", "(None, 3, 1)", "(None, 3)", "(None, 3)"],
    "transpose": ["(4, 3, None)", "(3, None, 4)"],
    "expand": ["(1, None, 3)", "(None, 3)", "(None, 3)", "(None, 5)"],
    "shapeops": ["(2,)", "()", "()", "(None, 3)", "(None, 3)", "(None, 2)", "(None,)"],
    "range": ["(None,)", "(None, 5)", "(None, None)", "(2, None)"],
    "gather": ["(None, 3)", "(None, None)", "(None, 3)"],
    "mask": ["(None, 3)", "(None, 2)", "(None, 3)", "(None,)"],
    "mask_known": ["(None,)", "(None, 1)"],
    "unique": ["(None,)", "(None,)"],
    "dynpart": ["(None, 3)", "(None, 3)"],
    "segment": ["(None, 3)", "(4, 3)"],
    "repeat": ["(None, 3)", "(None, 6)"],
    "split": ["(None, 1)", "(None, 1)", "(None, 1)"],
    "topk": ["(None, 2)", "(None, 2)"],
    "sort": ["(None, 5)", "(None, 5)", "(None,)", "(None, 5)"],
    "conv": ["(None, None, None, 8)", "(None, None, None, 8)", "(None, None, None, 3)"],
    "conv2": ["(None, 14, 14, 8)"],
    "resize": ["(None, 10, 12, 3)", "(4, 4, 3)"],
    "softmax": ["(None, None)", "(None, None)", "(None, None)"],
    "xent": ["(None,)"],
    "einsum": ["(None, 4)", "(None, 4)"],
    "rank": ["<unknown>", "<unknown>", "(None,)", "()", "(None,)", "()"],
    "rank2": ["<unknown>", "<unknown>", "<unknown>", "(2, None)", "(None, 3)"],
    "rank3": ["<unknown>", "<unknown>", "<unknown>", "<unknown>"],
    "rank4": [
        "(6, 4)",
        "(6, None)",
        "(2, 2, 3)",
        "(2, 3)",
        "(None, 3)",
        "(5, 7)",
        "(4, 2, 3)",
        "<unknown>",
    ],
    "ensure": ["(None, 4)"],
    "cast": ["(None, None)", "(None, None)", "(None, None)"],
    "meshgrid": ["(None, None)", "(None, None)"],
    "linspace": ["(None,)", "(None, None)", "(None, 3)"],
    "scatter": ["(8,)"],
    "cond": ["(None,)", "(3,)"],
    "while": ["()", "(None, 3)"],
    "map_fn": ["(None, 3)", "(None, 3)"],
    "vmap": ["(None, 3)"],
    "linalg": ["(None, 3, 3)", "(None,)", "(None, 3)", "(3, 3, 3)"],
    "norm": ["(None,)", "(None, 3)", "(3,)", "(3,)"],
    "squeeze": ["<unknown>", "(2,)"],
    "least": ["(None,)", "(None,)", "(None, None)", "(2, None)"],
    "part": ["(None, 6)", "(4, None)"],
    "axis": ["(None, None)", "(None, None)"],
    "bounds": ["(None,)", "(None,)", "(None,)"],
    "length": ["(None,)"],
    "size_of_rank": ["(None, 3)", "(None, None)"],
    "order": ["(None, None, None)"],
    "shape": ["<unknown>", "<unknown>", "(None, None)"],
    "pair": [
        "(None, None)",
        "(None, None)",
        "(None, None, 3, 3)",
        "(None, None)",
        "(None, None)",
        "(None, 6)",
        "(None, 6)",
    ],
    "reshape_like": ["<unknown>"],
    "bcast_rank": ["<unknown>", "<unknown>"],
    "split_list": ["(1, None)", "(2, None)"],
    "dynamic_shape": ["(2,)"],
    "beside_constants": ["(2, 5, 2)", "(5, None)", "(1, 2, 3)"],
    "indices_of_rank": ["<unknown>", "<unknown>", "<unknown>"],
    "scatter_of_rank": ["(5,)"],
    "reshape_to_nothing": ["(3, 0)"],
    "values_of_rank": ["<unknown>", "<unknown>", "<unknown>"],
    "conv_transpose": ["(None, 8, 8, 8)", "(None, None, None, 8)"],
    "colours": ["(None, None, None, 3)", "(None, None, None, 1)"],
    "many_elements": ["(None,)", "(None, 5)"],
    "no_rows": ["(None, 4)"],
    "assertion": ["(None, 2)", "(None, 2)"],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_static_shapes(name):
    function, *specs = FUNCTIONS[name]
    SEEN.clear()
    tf.function(function).get_concrete_function(*specs)
    (shapes,) = SEEN
    assert shapes == EXPECTED[name]
