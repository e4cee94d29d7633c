"""Dynamic programs and filters: CRF, HMM, Kalman, time warping, transport, loops that depend on data."""

import numpy as np

from .corpus import integers, normal, objective, program, uniform, zeros


@objective
def crf_forward_algorithm(tf):
    """Negative log-likelihood of a tag sequence in a linear chain."""

    def loss(emissions, transitions, tags):
        alpha = emissions[0]
        for t in range(1, 6):
            alpha = tf.reduce_logsumexp(alpha[:, None] + transitions, axis=0) + emissions[t]
        rows = tf.reduce_sum(tf.gather(emissions, tags, axis=1, batch_dims=1))
        steps = tf.reduce_sum(tf.gather_nd(transitions, tf.stack([tags[:-1], tags[1:]], axis=1)))
        return tf.reduce_logsumexp(alpha) - rows - steps

    return loss, [normal(0, 6, 3), normal(1, 3, 3)], [integers(2, 3, 6)]


@objective
def hidden_markov_model(tf):
    """The forward algorithm with probabilities, scaled at each step."""

    def loss(start, transition, emission, observed):
        a, b = tf.nn.softmax(transition, axis=1), tf.nn.softmax(emission, axis=1)
        p = tf.nn.softmax(start) * tf.gather(b, observed[0], axis=1)
        log_likelihood = 0.0
        for t in range(1, 7):
            total = tf.reduce_sum(p)
            log_likelihood += tf.math.log(total)
            p = tf.linalg.matvec(a, p / total, transpose_a=True) * tf.gather(b, observed[t], axis=1)
        return -log_likelihood - tf.math.log(tf.reduce_sum(p))

    return loss, [zeros(3), normal(3, 3, 3), normal(4, 3, 4)], [integers(5, 4, 7)]


@objective
def kalman_filter(tf):
    """Position and speed from noisy positions; the noise levels are fitted."""
    f = np.float32([[1, 1], [0, 1]])

    def loss(log_q, log_r, y):
        m, p = tf.zeros([2, 1]), tf.eye(2)
        h = tf.constant([[1.0, 0.0]])
        nll = 0.0
        for t in range(8):
            m, p = f @ m, f @ p @ f.T + tf.exp(log_q) * tf.eye(2)
            s = h @ p @ tf.transpose(h) + tf.exp(log_r)
            gain = p @ tf.transpose(h) / s
            error = y[t] - h @ m
            nll += 0.5 * tf.reduce_sum(error**2 / s + tf.math.log(s))
            m, p = m + gain * error, p - gain @ h @ p
        return nll

    return loss, [np.float32(-1), np.float32(0.5)], [np.arange(8, dtype=np.float32) + normal(6, 8)]


@objective
def soft_dynamic_time_warping(tf):
    """The recursion over a table, with a soft minimum, in Python lists of tensors."""

    def loss(w, x, y):
        d = (tf.tanh(x * w)[:, None] - y[None, :]) ** 2
        big = tf.constant(1e4)
        rows = [[tf.constant(0.0)] + [big] * 5]
        for i in range(4):
            row = [big]
            for j in range(5):
                three = tf.stack([rows[i][j], rows[i][j + 1], row[j]])
                row.append(d[i, j] - 0.5 * tf.reduce_logsumexp(-three / 0.5))
            rows.append(row)
        return rows[4][5]

    return loss, [normal(7, 4)], [normal(8, 4), normal(9, 5)]


@objective
def sinkhorn_divergence(tf):
    """Entropic transport between two clouds, in the logarithm."""

    def loss(x, y):
        cost = tf.reduce_sum((x[:, None] - y[None]) ** 2, axis=-1)
        f, g = tf.zeros(5), tf.zeros(6)
        for _ in range(10):
            f = -0.5 * tf.reduce_logsumexp((g[None, :] - cost) / 0.5 - np.float32(np.log(6)), axis=1)
            g = -0.5 * tf.reduce_logsumexp((f[:, None] - cost) / 0.5 - np.float32(np.log(5)), axis=0)
        plan = tf.exp((f[:, None] + g[None, :] - cost) / 0.5) / 30.0
        return tf.reduce_sum(plan * cost)

    return loss, [normal(10, 5, 2)], [normal(11, 6, 2)]


@objective
def newton_root_until_small(tf):
    """A loop that ends when the residual is small enough: the data decide how often it runs."""

    def loss(a, x):
        while tf.abs(x * x * x - tf.reduce_sum(a)) > 1e-4:
            x = x - (x * x * x - tf.reduce_sum(a)) / (3.0 * x * x)
        return x**2

    return loss, [np.float32([1.5, 2.5])], [np.float32(1.0)]


@objective
def data_dependent_branches(tf):
    """Each step takes a branch that depends on its value."""

    def loss(w, x):
        total = tf.constant(0.0)
        for row in x:
            z = tf.reduce_sum(row * w)
            if z > 0.0:  # noqa: SIM108
                total = total + tf.math.log1p(z)
            else:
                total = total + z**2
        return total

    return loss, [normal(12, 3)], [normal(13, 8, 3)]


@objective
def collatz_like_recursion(tf):
    """Python recursion over halves of a sequence."""

    def loss(w, x):
        def merge(part):
            n = part.shape[0]
            if n == 1:
                return part[0]
            left, right = merge(part[: n // 2]), merge(part[n // 2 :])
            return tf.tanh(w[0] * left + w[1] * right)

        return tf.reduce_sum(merge(x) ** 2)

    return loss, [np.float32([0.7, -0.4])], [normal(14, 7, 3)]


@objective
def exponential_smoothing(tf):
    """Holt's linear trend with fitted smoothing factors."""

    def loss(raw, y):
        a, b = tf.unstack(tf.sigmoid(raw))
        level, trend = y[0], y[1] - y[0]
        error = 0.0
        for t in range(2, 12):
            forecast = level + trend
            error += (y[t] - forecast) ** 2
            new = a * y[t] + (1 - a) * forecast
            trend = b * (new - level) + (1 - b) * trend
            level = new
        return error / 10.0

    return loss, [np.float32([0.2, -0.3])], [np.cumsum(normal(15, 12)).astype("float32")]


@objective
def garch_likelihood_float64(tf):
    """A conditional variance that follows the squares of the past."""

    def loss(raw, returns):
        omega, alpha, beta = tf.unstack(tf.math.softplus(raw) * np.array([1.0, 0.2, 0.5]))
        variance = tf.math.reduce_variance(returns)
        nll = tf.constant(0.0, tf.float64)
        for t in range(1, 15):
            variance = omega + alpha * returns[t - 1] ** 2 + beta * variance
            nll += tf.math.log(variance) + returns[t] ** 2 / variance
        return 0.5 * nll

    return loss, [np.array([-1.0, 0.0, 0.5])], [normal(16, 15, dtype="float64")]


@objective
def cumulative_hazards(tf):
    """Cox partial likelihood: risk sets by a reversed cumulative sum over sorted times."""

    def loss(w, x, times, events):
        order = tf.argsort(times)
        risk = tf.gather(tf.linalg.matvec(x, w), order)
        at_risk = tf.math.cumsum(tf.exp(risk), reverse=True)
        return -tf.reduce_sum(tf.gather(events, order) * (risk - tf.math.log(at_risk)))

    return (
        loss,
        [normal(17, 3)],
        [normal(18, 9, 3), uniform(19, 0, 5, 9), integers(20, 2, 9).astype("float32")],
    )


@objective
def stick_breaking_process(tf):
    """Weights from an exclusive cumulative product."""

    def loss(logits, means, x):
        v = tf.sigmoid(logits)
        weights = v * tf.math.cumprod(1.0 - v, exclusive=True)
        p = tf.exp(-0.5 * (x[:, None] - means) ** 2)
        return -tf.reduce_mean(tf.math.log(tf.linalg.matvec(p, weights) + 1e-3))

    return loss, [normal(21, 5), normal(22, 5)], [normal(23, 12)]


@program
def while_loop_power(tf, step, forward):
    """tf.while_loop with a bound that is data, differentiated."""
    x = tf.Variable(1.3)

    @forward
    def power(n):
        return tf.while_loop(
            lambda i, y: i < n, lambda i, y: (i + 1, y * x), (tf.constant(0), tf.constant(1.0))
        )[1]

    @step
    def slope(n):
        with tf.GradientTape() as tape:
            y = power(n)
        return y, tape.gradient(y, x)

    return [slope(tf.constant(n)) for n in (3, 5, 1)]


@program
def tensor_array_recurrence(tf, step, forward):
    """A recurrence that writes into a TensorArray in a loop over tf.range."""
    w = tf.Variable(normal(24, 3, 3, scale=0.5))
    xs = tf.constant(normal(25, 5, 2, 3))

    @forward
    def run(xs):
        states = tf.TensorArray(tf.float32, size=5)
        h = tf.zeros([2, 3])
        for t in tf.range(5):
            h = tf.tanh(xs[t] + h @ w)
            states = states.write(t, h)
        return states.stack()

    @step
    def gradient(xs):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(run(xs) ** 2)
        return loss, tape.gradient(loss, w)

    return [gradient(xs) for _ in range(3)]
