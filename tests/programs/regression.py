"""Regression and classification: linear models, robust and weighted losses, splines."""

import numpy as np

from .corpus import dense, integers, normal, objective, ones, program, uniform, zeros


@objective
def linear_regression(tf):
    """Least squares with a bias."""

    def loss(w, b, x, y):
        return tf.reduce_mean(tf.square(x @ w + b - y))

    x = normal(0, 30, 3)
    return loss, [zeros(3, 1), zeros(1)], [x, x @ np.float32([[1], [-2], [3]]) + 0.5]


@objective
def ridge_regression_float64(tf):
    """Least squares with a quadratic penalty, in double precision."""

    def loss(w, x, y):
        residual = tf.linalg.matvec(x, w) - y
        return tf.reduce_sum(residual**2) + 0.1 * tf.reduce_sum(w**2)

    return (
        loss,
        [normal(1, 4, dtype="float64")],
        [normal(2, 12, 4, dtype="float64"), normal(3, 12, dtype="float64")],
    )


@objective
def logistic_regression(tf):
    """Binary labels, logits, cross-entropy from logits."""

    def loss(w, b, x, y):
        logits = tf.squeeze(tf.matmul(x, w), axis=1) + b
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits))

    x = normal(4, 40, 5)
    return loss, [normal(5, 5, 1), np.float32(0.1)], [x, (x[:, 0] > 0).astype("float32")]


@objective
def softmax_regression(tf):
    """Class numbers as labels."""

    def loss(w, b, x, y):
        logits = tf.matmul(x, w) + b
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))

    return loss, dense(6, 5, 3), [normal(7, 24, 5), integers(8, 3, 24)]


@objective
def softmax_regression_by_hand(tf):
    """One-hot labels, softmax and logarithm written out."""

    def loss(w, b, x, y):
        p = tf.nn.softmax(x @ w + b)
        return -tf.reduce_mean(tf.reduce_sum(tf.one_hot(y, 3) * tf.math.log(p + 1e-7), axis=-1))

    return loss, dense(9, 5, 3), [normal(10, 24, 5), integers(11, 3, 24)]


@objective
def poisson_regression(tf):
    """Counts with an exponential rate."""

    def loss(w, b, x, y):
        log_rate = tf.tensordot(x, w, axes=1) + b
        return tf.reduce_mean(tf.exp(log_rate) - y * log_rate)

    return (
        loss,
        [normal(12, 4, scale=0.3), np.float32(0)],
        [normal(13, 20, 4), integers(14, 6, 20).astype("float32")],
    )


@objective
def elastic_net(tf):
    """Least squares with both penalties."""

    def loss(w, x, y):
        fit = tf.reduce_mean(tf.math.squared_difference(tf.linalg.matvec(x, w), y))
        return fit + 0.05 * tf.reduce_sum(tf.abs(w)) + 0.02 * tf.nn.l2_loss(w)

    return loss, [normal(15, 6)], [normal(16, 25, 6), normal(17, 25)]


@objective
def quantile_regression(tf):
    """The pinball loss of three quantiles at once."""
    quantiles = np.float32([0.1, 0.5, 0.9])

    def loss(w, b, x, y):
        error = y[:, tf.newaxis] - (tf.matmul(x, w) + b)
        return tf.reduce_mean(
            tf.maximum(quantiles * error, (quantiles - 1.0) * error) * tf.sqrt(1.0 + error**2)
        )

    return loss, dense(18, 3, 3), [normal(19, 20, 3), normal(20, 20)]


@objective
def huber_regression(tf):
    """Quadratic near zero, linear far away."""

    def loss(w, x, y):
        error = tf.linalg.matvec(x, w) - y
        small = tf.abs(error) <= 1.0
        return tf.reduce_mean(tf.where(small, 0.5 * tf.square(error), tf.abs(error) - 0.5))

    return loss, [normal(21, 4)], [normal(22, 30, 4), normal(23, 30, scale=3.0)]


@objective
def focal_loss(tf):
    """Cross-entropy with less weight on easy examples (focal loss)."""

    def loss(w, b, x, y):
        p = tf.sigmoid(tf.squeeze(x @ w, -1) + b)
        p_true = tf.where(tf.equal(y, 1), p, 1.0 - p)
        return tf.reduce_mean(-tf.pow(1.0 - p_true, 2.0) * tf.math.log(tf.clip_by_value(p_true, 1e-6, 1.0)))

    return loss, dense(24, 4, 1), [normal(25, 30, 4), integers(26, 2, 30)]


@objective
def dice_loss(tf):
    """Overlap of a predicted and a given mask."""

    def loss(w, x, mask):
        p = tf.nn.sigmoid(tf.einsum("bhwc,c->bhw", x, w))
        both = tf.reduce_sum(p * mask, axis=[1, 2])
        either = tf.reduce_sum(p, axis=(1, 2)) + tf.reduce_sum(mask, axis=(1, 2))
        return 1.0 - tf.reduce_mean((2.0 * both + 1.0) / (either + 1.0))

    return loss, [normal(27, 3)], [normal(28, 2, 5, 5, 3), (normal(29, 2, 5, 5) > 0).astype("float32")]


@objective
def spline_fit(tf):
    """A cubic spline in the basis of truncated powers."""
    knots = np.linspace(-1, 1, 5, dtype=np.float32)

    def loss(c, x, y):
        powers = tf.stack([x**k for k in range(4)], axis=1)
        truncated = tf.nn.relu(x[:, None] - knots) ** 3
        basis = tf.concat([powers, truncated], axis=1)
        return tf.reduce_mean((tf.linalg.matvec(basis, c) - y) ** 2)

    x = uniform(30, -1.5, 1.5, 30)
    return loss, [normal(31, 9, scale=0.3)], [x, np.sin(3 * x)]


@objective
def weighted_cross_entropy_with_regularizer(tf):
    """Two layers, class weights, label smoothing and weight decay over a list of kernels."""

    def loss(w1, b1, w2, b2, x, y):
        hidden = tf.nn.elu(x @ w1 + b1)
        logits = hidden @ w2 + b2
        labels = 0.9 * tf.one_hot(y, 4) + 0.1 / 4
        weights = tf.gather(tf.constant([1.0, 2.0, 0.5, 1.5]), y)
        losses = tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        decay = tf.add_n([tf.nn.l2_loss(w) for w in (w1, w2)])
        return tf.reduce_sum(weights * losses) / tf.reduce_sum(weights) + 1e-2 * decay

    return loss, dense(32, 6, 8, 4), [normal(33, 16, 6), integers(34, 4, 16)]


@objective
def ordinal_regression(tf):
    """Ordered classes: cumulative thresholds, a cumulative sum of softplus."""

    def loss(w, t, x, y):
        thresholds = tf.cumsum(tf.concat([t[:1], tf.math.softplus(t[1:])], 0))
        logits = thresholds[None, :] - tf.linalg.matvec(x, w)[:, None]
        levels = tf.cast(y[:, None] <= tf.range(3)[None, :], tf.float32)
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=levels, logits=logits))

    return loss, [normal(35, 4), np.float32([-1, 0, 0])], [normal(36, 20, 4), integers(37, 4, 20)]


@program
def training_loop_sgd_momentum(tf, step, forward):
    """Linear regression trained by momentum over minibatches; slots are variables."""
    x, y = normal(38, 24, 3), normal(39, 24, 1)
    w, b = tf.Variable(normal(40, 3, 1)), tf.Variable(zeros(1))
    slots = [tf.Variable(tf.zeros_like(v), trainable=False) for v in (w, b)]
    losses = []

    @forward
    def predict(x):
        return tf.matmul(x, w) + b

    @step
    def train(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(predict(x) - y))
        grads = tape.gradient(loss, [w, b])
        for v, m, g in zip([w, b], slots, grads, strict=True):
            m.assign(0.9 * m + g)
            v.assign_sub(0.05 * m)
        return loss

    for _ in range(2):
        for i in range(0, 24, 8):
            losses.append(train(tf.constant(x[i : i + 8]), tf.constant(y[i : i + 8])))
    return {"losses": losses, "variables": [w, b, *slots]}


@program
def training_loop_adam(tf, step, forward):
    """An MLP trained by Adam written out, with bias correction and a step counter."""
    params = [tf.Variable(p) for p in dense(41, 4, 8, 2)]
    m = [tf.Variable(tf.zeros_like(p)) for p in params]
    v = [tf.Variable(tf.zeros_like(p)) for p in params]
    count = tf.Variable(0.0)
    x, y = tf.constant(normal(42, 12, 4)), tf.constant(normal(43, 12, 2))

    @forward
    def model(x):
        w1, b1, w2, b2 = params
        return tf.tanh(x @ w1 + b1) @ w2 + b2

    @step
    def train(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        count.assign_add(1.0)
        for p, g, m_, v_ in zip(params, tape.gradient(loss, params), m, v, strict=True):
            m_.assign(0.9 * m_ + 0.1 * g)
            v_.assign(0.999 * v_ + 0.001 * g * g)
            rate = 0.05 * tf.sqrt(1.0 - 0.999**count) / (1.0 - 0.9**count)
            p.assign_sub(rate * m_ / (tf.sqrt(v_) + 1e-5))
        return loss

    return [train(x, y) for _ in range(5)], params


@objective
def mixture_of_experts(tf):
    """A softmax gate mixes linear experts."""

    def loss(gate, experts, x, y):
        weights = tf.nn.softmax(x @ gate, axis=-1)
        each = tf.einsum("bi,iek->bek", x, experts)
        mixed = tf.einsum("be,bek->bk", weights, each)
        return tf.reduce_mean(tf.reduce_sum((mixed - y) ** 2, 1))

    return loss, [normal(44, 4, 3), normal(45, 4, 3, 2)], [normal(46, 15, 4), normal(47, 15, 2)]


@objective
def isotonic_sorting_loss(tf):
    """Compares sorted predictions with sorted targets: a one-dimensional transport distance."""

    def loss(w, x, y):
        predicted = tf.sort(tf.tanh(tf.linalg.matvec(x, w)))
        best, _ = tf.math.top_k(predicted, k=3)
        return tf.reduce_mean((predicted - tf.sort(y)) ** 2) + 0.1 * tf.reduce_sum(best**2)

    return loss, [normal(48, 4)], [normal(49, 11, 4), uniform(50, -1, 1, 11)]


@objective
def gaussian_likelihood(tf):
    """Mean and log-variance are both predicted."""

    def loss(w, b, x, y):
        mean, log_var = tf.split(x @ w + b, 2, axis=1)
        return 0.5 * tf.reduce_mean(log_var + (y - mean) ** 2 * tf.exp(-log_var))

    return loss, dense(51, 3, 4), [normal(52, 10, 3), normal(53, 10, 2)]


@objective
def normalised_regression(tf):
    """Features standardised by batch moments, weights normalised."""

    def loss(v, g, x, y):
        mean, variance = tf.nn.moments(x, axes=[0])
        x = (x - mean) * tf.math.rsqrt(variance + 1e-3)
        w = g * tf.math.l2_normalize(v, axis=0)
        return tf.reduce_mean(tf.abs(tf.matmul(x, w) - y) ** 1.5)

    return loss, [normal(54, 4, 2), ones(2)], [normal(55, 9, 4), normal(56, 9, 2)]
