"""Learning distances and factors: contrastive losses, factorisation, clustering, Gaussian processes."""

import numpy as np

from .corpus import dense, integers, normal, objective, ones, program, uniform


@objective
def contrastive_loss(tf):
    """NT-Xent: two views of each example, every other example is a negative."""

    def loss(w, b, x, noise):
        views = tf.concat([x, x + 0.1 * noise], axis=0)
        z = tf.math.l2_normalize(tf.tanh(views @ w + b), axis=1)
        logits = tf.matmul(z, z, transpose_b=True) / 0.5 - 1e9 * tf.eye(12)
        partner = tf.concat([tf.range(6, 12), tf.range(6)], axis=0)
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=partner, logits=logits))

    return loss, dense(0, 4, 3), [normal(1, 6, 4), normal(2, 6, 4)]


@objective
def triplet_loss(tf):
    """Anchor, positive, negative, a margin."""

    def loss(w, anchor, positive, negative):
        a, p, n = (tf.nn.l2_normalize(v @ w, axis=-1) for v in (anchor, positive, negative))
        near = tf.reduce_sum(tf.square(a - p), axis=1)
        far = tf.reduce_sum(tf.square(a - n), axis=1)
        return tf.reduce_mean(tf.maximum(near - far + 0.4, 0.0))

    return loss, [normal(3, 5, 3)], [normal(s, 8, 5) for s in (4, 5, 6)]


@objective
def triplet_loss_batch_hard(tf):
    """The hardest positive and negative of each anchor, by masks."""

    def loss(w, x, labels):
        z = x @ w
        square = tf.reduce_sum(z**2, axis=1)
        d2 = square[:, None] - 2.0 * tf.matmul(z, z, transpose_b=True) + square[None, :]
        d = tf.sqrt(tf.maximum(d2, 1e-6))
        same = tf.cast(labels[:, None] == labels[None, :], tf.float32)
        hardest_positive = tf.reduce_max(same * d, axis=1)
        hardest_negative = tf.reduce_min(d + 1e3 * same, axis=1)
        return tf.reduce_mean(tf.nn.softplus(hardest_positive - hardest_negative))

    return loss, [normal(7, 4, 3)], [normal(8, 9, 4), integers(9, 3, 9)]


@objective
def matrix_factorisation(tf):
    """Ratings as products of gathered rows, biases, regularised."""

    def loss(users, items, bias, user, item, rating):
        u, v = tf.gather(users, user), tf.gather(items, item)
        predicted = tf.reduce_sum(u * v, axis=1) + tf.gather(bias, item)
        return tf.reduce_mean((predicted - rating) ** 2) + 0.1 * (tf.reduce_mean(u**2) + tf.reduce_mean(v**2))

    params = [normal(10, 5, 3), normal(11, 6, 3), normal(12, 6)]
    return loss, params, [integers(13, 5, 14), integers(14, 6, 14), uniform(15, 1, 5, 14)]


@objective
def factorisation_machine(tf):
    """Pairwise interactions by the square of a sum."""

    def loss(w, v, x, y):
        pairs = 0.5 * tf.reduce_sum((x @ v) ** 2 - (x**2) @ (v**2), axis=1)
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(y, tf.linalg.matvec(x, w) + pairs))

    return loss, [normal(16, 6), normal(17, 6, 3)], [normal(18, 12, 6), integers(19, 2, 12).astype("float32")]


@objective
def pca_by_gradient(tf):
    """Reconstruction through a rank-2 map, with a penalty for axes that are not orthonormal."""

    def loss(w, x):
        x = x - tf.reduce_mean(x, axis=0)
        rebuilt = tf.matmul(tf.matmul(x, w), w, transpose_b=True)
        gram = tf.matmul(w, w, transpose_a=True)
        return tf.reduce_mean((x - rebuilt) ** 2) + tf.reduce_sum((gram - tf.eye(2)) ** 2)

    return loss, [normal(20, 5, 2)], [normal(21, 20, 5)]


@objective
def soft_k_means(tf):
    """Soft assignments by distances to centres."""

    def loss(centres, x):
        d = tf.reduce_sum(tf.math.squared_difference(x[:, tf.newaxis, :], centres[tf.newaxis]), axis=2)
        r = tf.nn.softmax(-2.0 * d, axis=1)
        return tf.reduce_mean(tf.reduce_sum(r * d, axis=1))

    return loss, [normal(22, 3, 2)], [normal(23, 18, 2)]


@objective
def t_sne(tf):
    """Student-t similarities in the plane against given ones."""

    def loss(z, p):
        d = tf.reduce_sum((z[:, None] - z[None]) ** 2, -1)
        q = (1.0 - tf.eye(6)) / (1.0 + d)
        q = q / tf.reduce_sum(q)
        return tf.reduce_sum(p * tf.math.log((p + 1e-6) / (q + 1e-6)))

    p = uniform(24, 0, 1, 6, 6)
    p = (p + p.T) * (1 - np.eye(6, dtype=np.float32))
    return loss, [normal(25, 6, 2)], [p / p.sum()]


@objective
def gaussian_process_cholesky(tf):
    """Marginal likelihood by a Cholesky factor written as loops over scalars, in float64."""

    def cholesky(k, n):
        rows = []
        for i in range(n):
            row = []
            for j in range(i + 1):
                s = k[i, j] - sum((row[m] * rows[j][m] if j < i else row[m] * row[m]) for m in range(j))
                row.append(tf.sqrt(s) if i == j else s / rows[j][j])
            rows.append(row)
        return rows

    def loss(log_length, log_noise, x, y):
        k = tf.exp(-0.5 * (x[:, None] - x[None]) ** 2 / tf.exp(2.0 * log_length))
        rows = cholesky(k + tf.exp(log_noise) * tf.eye(5, dtype=tf.float64), 5)
        z = []
        for i in range(5):
            z.append((y[i] - sum(rows[i][m] * z[m] for m in range(i))) / rows[i][i])
        return sum(0.5 * z[i] ** 2 + tf.math.log(rows[i][i]) for i in range(5))

    x = np.linspace(0, 2, 5)
    return loss, [np.float64(-0.3), np.float64(-2.0)], [x, np.sin(3 * x)]


@objective
def kernel_maximum_mean_discrepancy(tf):
    """Distances of two samples under a mixture of kernels."""

    def loss(w, x, y):
        def kernel(a, b):
            d = tf.reduce_sum((a[:, None, :] - b[None, :, :]) ** 2, axis=-1)
            return tf.add_n([tf.exp(-d / (2.0 * s)) for s in (0.5, 1.0, 2.0)])

        z = x @ w
        return (
            tf.reduce_mean(kernel(z, z)) + tf.reduce_mean(kernel(y, y)) - 2.0 * tf.reduce_mean(kernel(z, y))
        )

    return loss, [normal(26, 3, 2)], [normal(27, 8, 3), normal(28, 7, 2)]


@objective
def word_vectors_glove(tf):
    """Weighted least squares of logarithms, masked where there are no counts."""

    def loss(u, v, bu, bv, counts):
        log_x = tf.math.log(tf.maximum(counts, 1.0))
        weight = tf.minimum(1.0, (counts / 5.0) ** 0.75)
        error = tf.matmul(u, v, transpose_b=True) + bu[:, None] + bv[None, :] - log_x
        return tf.reduce_sum(tf.where(counts > 0, weight * error**2, tf.zeros_like(error)))

    params = [normal(29, 5, 2), normal(30, 5, 2), normal(31, 5), normal(32, 5)]
    return loss, params, [integers(33, 9, 5, 5).astype("float32")]


@objective
def learning_to_rank(tf):
    """Pairwise logistic loss over all pairs with different relevance."""

    def loss(w, b, x, relevance):
        s = tf.squeeze(x @ w + b, axis=-1)
        difference = s[:, None] - s[None, :]
        ordered = tf.cast(relevance[:, None] > relevance[None, :], tf.float32)
        return tf.reduce_sum(ordered * tf.math.softplus(-difference)) / tf.reduce_sum(ordered)

    return loss, dense(34, 4, 1), [normal(35, 8, 4), integers(36, 4, 8)]


@program
def online_kernel_memory(tf, step, forward):
    """A ring buffer written by scatter and read by attention, differentiated with respect to the query weights."""
    w = tf.Variable(normal(37, 3, 3))
    memory = tf.Variable(normal(38, 4, 3), trainable=False)

    @forward
    def read(x, memory):
        weights = tf.nn.softmax(tf.linalg.matvec(memory, tf.linalg.matvec(w, x)))
        return tf.linalg.matvec(memory, weights, transpose_a=True)

    @step
    def observe(x, slot):
        with tf.GradientTape() as tape:
            out = read(x, memory.read_value())
            loss = tf.reduce_sum((out - x) ** 2)
        w.assign_sub(0.1 * tape.gradient(loss, w))
        memory.assign(tf.tensor_scatter_nd_update(memory, [[slot]], [x]))
        return loss

    xs = normal(39, 6, 3)
    return [observe(tf.constant(x), i % 4) for i, x in enumerate(xs)], w, memory


@objective
def hyperbolic_embedding(tf):
    """Distances in the Poincaré ball."""

    def loss(z, i, j):
        z = z / (1.0 + tf.norm(z, axis=1, keepdims=True))
        a, b = tf.gather(z, i), tf.gather(z, j)
        square = tf.reduce_sum((a - b) ** 2, axis=1)
        scale = (1.0 - tf.reduce_sum(a**2, 1)) * (1.0 - tf.reduce_sum(b**2, 1))
        return tf.reduce_mean(tf.acosh(1.0 + 2.0 * square / scale + 1e-5))

    return loss, [normal(40, 6, 2)], [np.int32([0, 1, 2, 3, 4]), np.int32([1, 3, 5, 0, 2])]


@objective
def nonnegative_matrix_factorisation(tf):
    """Generalised Kullback-Leibler divergence with softplus factors."""

    def loss(a, b, x):
        y = tf.math.softplus(a) @ tf.math.softplus(b) + 1e-4
        return tf.reduce_sum(tf.math.xlogy(x, x / y) - x + y)

    return loss, [normal(41, 5, 2), normal(42, 2, 6)], [uniform(43, 0.1, 2, 5, 6)]


@objective
def centered_kernel_alignment(tf):
    """Similarity of two representations, by traces of centred Gram matrices."""

    def loss(w, x, y):
        centre = tf.eye(7) - ones(7, 7) / 7.0
        k = centre @ tf.matmul(x @ w, x @ w, transpose_b=True) @ centre
        m = centre @ tf.matmul(y, y, transpose_b=True) @ centre
        return -tf.linalg.trace(k @ m) / (tf.norm(k) * tf.norm(m))

    return loss, [normal(44, 4, 3)], [normal(45, 7, 4), normal(46, 7, 2)]
