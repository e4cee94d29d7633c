"""Element types and indexing: half precision, double, complex, integers, gathers and scatters."""

import numpy as np

from .corpus import dense, integers, normal, objective, program, uniform


@objective(order=1, tolerance=300)
def bfloat16_network(tf):
    """Weights in float32, products in bfloat16, the loss in float32."""

    def loss(w1, b1, w2, b2, x, y):
        h = tf.nn.relu(tf.cast(x, tf.bfloat16) @ tf.cast(w1, tf.bfloat16) + tf.cast(b1, tf.bfloat16))
        out = tf.cast(h @ tf.cast(w2, tf.bfloat16), tf.float32) + b2
        return tf.reduce_mean((out - y) ** 2)

    return loss, dense(0, 4, 8, 2), [normal(1, 6, 4), normal(2, 6, 2)]


@objective(order=1, tolerance=60)
def float16_loss_scaling(tf):
    """The loss is scaled before it is rounded to half precision."""

    def loss(w, x):
        h = tf.tanh(tf.cast(x, tf.float16) @ tf.cast(w, tf.float16))
        return tf.reduce_mean(tf.cast(h * 8.0, tf.float32) ** 2) / 64.0

    return loss, [normal(3, 4, 4)], [normal(4, 5, 4)]


@objective
def double_inside_single(tf):
    """A sum in double precision inside a single-precision model."""

    def loss(w, x):
        h = tf.cast(tf.sin(x * w), tf.float64)
        total = tf.reduce_sum(h * tf.constant(np.linspace(0, 1, 6)), axis=1)
        return tf.cast(tf.reduce_mean(total**2), tf.float32)

    return loss, [normal(5, 6)], [normal(6, 4, 6)]


@objective
def gather_and_scatter(tf):
    """Gathers along an axis, gathers by coordinates, scatters back."""

    def loss(w, columns, places):
        taken = tf.gather(w, columns, axis=1)
        points = tf.gather_nd(w, places)
        back = tf.scatter_nd(places, points**2, [4, 5])
        updated = tf.tensor_scatter_nd_add(w, places, tf.sin(points))
        return tf.reduce_sum(taken**2) + tf.reduce_sum(back * w) + tf.reduce_sum(updated**3)

    return loss, [normal(7, 4, 5)], [integers(8, 5, 3), np.int32([[0, 1], [2, 3], [3, 0]])]


@objective
def indexing_in_all_ways(tf):
    """Slices with steps, ellipses, new axes, negative indices."""

    def loss(w):
        a = w[::2, 1:-1] * w[1, 0]
        b = w[..., -1] ** 2
        c = w[:, tf.newaxis, ::-1]
        return (
            tf.reduce_sum(a**2)
            + tf.reduce_sum(b)
            + tf.reduce_sum(c * tf.reverse(c, axis=[0]))
            + w[-1, -1] ** 3
        )

    return loss, [normal(9, 4, 5)], []


@objective
def boolean_masks(tf):
    """The entries of a mask are selected, others are replaced."""

    def loss(w, mask):
        inside = tf.where(mask, tf.exp(w), tf.zeros_like(w))
        outside = tf.where(tf.logical_not(mask), w**2, 1.0)
        return tf.reduce_sum(inside) * tf.reduce_mean(outside) + tf.cast(
            tf.math.count_nonzero(mask), tf.float32
        )

    return loss, [normal(10, 3, 4)], [normal(11, 3, 4) > 0]


@objective
def boolean_mask_of_predictions(tf):
    """A loss over the entries that a mask selects; how many they are depends on the data."""

    def loss(w, x, y):
        error = tf.linalg.matvec(x, w) - y
        large = tf.boolean_mask(error, tf.abs(y) > 0.5)
        return tf.reduce_mean(large**2) + 0.1 * tf.reduce_sum(error[y > 0.0])

    return loss, [normal(12, 3)], [normal(13, 10, 3), normal(14, 10)]


@objective
def pad_tile_repeat_roll(tf):
    """Everything that moves elements about."""

    def loss(w):
        a = tf.pad(w, [[1, 0], [0, 2]], constant_values=1.0)
        b = tf.tile(w, [2, 1])
        c = tf.repeat(w, [1, 0, 2], axis=0)
        d = tf.roll(tf.transpose(w), 1, axis=0)
        e = tf.pad(w, [[1, 1], [1, 1]], mode="REFLECT")
        return sum(tf.reduce_sum(tf.sin(v) * (k + 1.0)) for k, v in enumerate((a, b, c, d, e)))

    return loss, [normal(15, 3, 4)], []


@objective
def reductions_of_every_kind(tf):
    """Sums, means, extremes, products, deviations and log-sum-exps over different axes."""

    def loss(w):
        parts = [
            tf.reduce_sum(w, axis=[0, 2]), tf.reduce_mean(w, axis=1), tf.reduce_max(w, axis=-1),
            tf.reduce_min(w, axis=0), tf.reduce_prod(w, axis=2), tf.math.reduce_std(w, axis=[1, 2]),
            tf.math.reduce_variance(w, axis=0), tf.reduce_logsumexp(w, axis=[0, 1]),
            tf.math.reduce_euclidean_norm(w, axis=1),
        ]  # fmt: skip
        return tf.add_n([tf.reduce_sum(p**2) for p in parts])

    return loss, [normal(16, 2, 3, 4)], []


@objective
def segments_and_counts(tf):
    """Means of groups, found by segment ids."""

    def loss(w, groups):
        means = tf.math.unsorted_segment_mean(w, groups, 4)
        centred = w - tf.gather(means, groups)
        top = tf.math.unsorted_segment_max(w, groups, 4)
        sizes = tf.math.bincount(groups, minlength=4, dtype=tf.float32)
        return tf.reduce_sum(centred**2) + tf.reduce_sum(
            sizes[:, None] * tf.where(sizes[:, None] > 0, top, 0.0) ** 2
        )

    return loss, [normal(17, 8, 2)], [integers(18, 4, 8)]


@program
def complex_gradient_descent(tf, step, forward):
    """A complex variable follows TensorFlow's convention for the gradient of a real loss."""
    z = tf.Variable(np.array([1 + 1j, -0.5 + 2j], np.complex64))

    @forward
    def loss_of():
        target = tf.constant([0.3 - 0.2j, 1j], tf.complex64)
        return tf.reduce_sum(tf.abs(z * z - target) ** 2)

    @step
    def train():
        with tf.GradientTape() as tape:
            loss = loss_of()
        g = tape.gradient(loss, z)
        z.assign_sub(0.01 * g)
        return loss, g

    return [train() for _ in range(4)], z


@objective
def empty_and_single_element(tf):
    """Batches of no rows and of one row, scalars of shape [1]."""

    def loss(w, s, none, one):
        return tf.reduce_sum(none @ w) + tf.reduce_mean((one @ w) ** 2) * tf.reduce_sum(s**3)

    return loss, [normal(19, 3, 2), normal(20, 1)], [np.zeros((0, 3), np.float32), normal(21, 1, 3)]


@objective
def large_elementwise_chain(tf):
    """More elements than a tile, rows and columns broadcast, reductions at the end."""

    def loss(row, column, x):
        y = tf.tanh(x * row + column)
        z = tf.exp(-y * y) * tf.sigmoid(x - column)
        return tf.reduce_mean(tf.reduce_sum(z, axis=1) ** 2) / 100.0 + tf.reduce_mean(
            tf.reduce_sum(y, axis=0)
        )

    return loss, [normal(22, 211), normal(23, 67, 1)], [uniform(24, -1, 1, 67, 211)]


@objective
def indexing_by_tensors(tf):
    """Rows and columns whose numbers are data."""

    def loss(w, i, j):
        row, column, element = w[i], w[:, j], w[i, j]
        return tf.reduce_sum(row**3) + tf.reduce_sum(tf.sin(column) * row[-1]) + element**2

    return loss, [normal(25, 4, 5)], [np.int32(2), np.int32(-1)]
