"""Methods of second order, meta-learning, and the processing of gradients between tape and update."""

import numpy as np

from .corpus import dense, integers, normal, objective, ones, program, zeros


@program
def newton_step(tf, step, forward):
    """A Hessian by nested tapes and `jacobian`; the 2×2 system is solved by hand."""
    x = tf.Variable(np.array([1.2, -0.7]))

    @forward
    def f(x):
        return (1.0 - x[0]) ** 2 + 10.0 * (x[1] - x[0] ** 2) ** 2

    @step
    def newton():
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                y = f(x.value())
            g = inner.gradient(y, x)
        h = outer.jacobian(g, x)
        det = h[0, 0] * h[1, 1] - h[0, 1] * h[1, 0]
        d = tf.stack([h[1, 1] * g[0] - h[0, 1] * g[1], h[0, 0] * g[1] - h[1, 0] * g[0]]) / det
        x.assign_sub(d)
        return y, h

    return [newton() for _ in range(4)], x


@program
def gauss_newton(tf, step, forward):
    """Residuals of an exponential model; normal equations from `jacobian`, solved by hand."""
    p = tf.Variable(np.array([1.0, 0.5]))
    t = np.linspace(0, 1, 8)
    y = 2.0 * np.exp(-1.3 * t)

    @forward
    def residuals(p):
        return p[0] * tf.exp(-p[1] * t) - y

    @step
    def update():
        with tf.GradientTape() as tape:
            r = residuals(p.read_value())
        j = tape.jacobian(r, p)
        a = tf.matmul(j, j, transpose_a=True) + 1e-6 * tf.eye(2, dtype=tf.float64)
        b = tf.linalg.matvec(j, r, transpose_a=True)
        det = a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]
        p.assign_sub(tf.stack([a[1, 1] * b[0] - a[0, 1] * b[1], a[0, 0] * b[1] - a[1, 0] * b[0]]) / det)
        return tf.reduce_sum(r**2)

    return [update() for _ in range(5)], p


@program
def conjugate_gradients_with_hvp(tf, step, forward):
    """Hessian-vector products by a gradient of a product with the gradient."""
    w = tf.Variable(normal(0, 4, dtype="float64"))
    x, y = tf.constant(normal(1, 15, 4, dtype="float64")), tf.constant(integers(2, 2, 15).astype("float64"))

    @forward
    def loss_of(w):
        logits = tf.linalg.matvec(x, w)
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(y, logits)) + 0.05 * tf.reduce_sum(w**2)

    @step
    def hvp(v):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                loss = loss_of(w.read_value())
            g = inner.gradient(loss, w)
            product = tf.reduce_sum(g * tf.stop_gradient(v))
        return g, outer.gradient(product, w)

    g, _ = hvp(tf.zeros_like(w))
    d, r = tf.zeros_like(g), -g
    p = r
    for _ in range(4):
        hp = hvp(p)[1]
        alpha = tf.reduce_sum(r * r) / tf.reduce_sum(p * hp)
        d, new = d + alpha * p, r - alpha * hp
        p, r = new + tf.reduce_sum(new * new) / tf.reduce_sum(r * r) * p, new
    w.assign_add(d)
    return d, r, hvp(tf.ones_like(d))


@program
def maml(tf, step, forward):
    """Inner step on a task, outer gradient through it, for several tasks in one tape."""
    meta = [tf.Variable(p) for p in dense(3, 1, 6, 1)]

    @forward
    def net(x, w1, b1, w2, b2):
        return tf.tanh(x @ w1 + b1) @ w2 + b2

    @step
    def train(xs, ys):
        with tf.GradientTape() as outer:
            total = 0.0
            for k in range(3):
                with tf.GradientTape() as inner:
                    loss = tf.reduce_mean((net(xs[k], *meta) - ys[k]) ** 2)
                fast = [p - 0.1 * g for p, g in zip(meta, inner.gradient(loss, meta), strict=True)]
                total += tf.reduce_mean((net(xs[k] + 0.5, *fast) - ys[k]) ** 2)
        grads = outer.gradient(total, meta)
        for p, g in zip(meta, grads, strict=True):
            p.assign_sub(0.05 * g)
        return total

    xs, ys = tf.constant(normal(4, 3, 5, 1)), tf.constant(normal(5, 3, 5, 1))
    return [train(xs, ys) for _ in range(3)], meta


@program
def reptile_first_order(tf, step, forward):
    """Stopped inner gradients: the first-order approximation of meta-learning."""
    w = tf.Variable(normal(6, 3))

    @step
    def train(x, y):
        with tf.GradientTape() as outer:
            fast = tf.identity(w)
            for _ in range(2):
                with tf.GradientTape() as inner:
                    inner.watch(fast)
                    loss = forward(lambda fast: tf.reduce_mean((tf.linalg.matvec(x, fast) - y) ** 2))(fast)
                fast = fast - 0.1 * tf.stop_gradient(inner.gradient(loss, fast))
            total = tf.reduce_mean((tf.linalg.matvec(x, fast) - y) ** 2)
        g = outer.gradient(total, w)
        w.assign_sub(0.1 * g)
        return total, g

    x, y = tf.constant(normal(7, 6, 3)), tf.constant(normal(8, 6))
    return [train(x, y) for _ in range(2)], w


@program
def gradient_accumulation(tf, step, forward):
    """Gradients of microbatches are summed in variables and applied at once."""
    params = [tf.Variable(p) for p in dense(9, 3, 5, 1)]
    sums = [tf.Variable(tf.zeros_like(p), trainable=False) for p in params]

    @forward
    def model(x):
        return tf.nn.relu(x @ params[0] + params[1]) @ params[2] + params[3]

    @step
    def accumulate(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        for s, g in zip(sums, tape.gradient(loss, params), strict=True):
            s.assign_add(g / 4.0)
        return loss

    losses = []
    for i in range(8):
        losses.append(accumulate(tf.constant(normal(10 + i, 6, 3)), tf.constant(normal(30 + i, 6, 1))))
        if i % 4 == 3:
            for p, s in zip(params, sums, strict=True):
                p.assign_sub(0.1 * s)
                s.assign(tf.zeros_like(s))
    return losses, params


@program
def gradient_clipping(tf, step, forward):
    """By value, by norm and by global norm."""
    params = [tf.Variable(p) for p in dense(10, 4, 4, 2)]

    @forward
    def loss_of(x):
        return tf.reduce_sum(tf.exp(x @ params[0] + params[1]) @ params[2] + params[3]) ** 2

    @step
    def train(x):
        with tf.GradientTape() as tape:
            loss = loss_of(x)
        grads = tape.gradient(loss, params)
        by_value = [tf.clip_by_value(g, -1.0, 1.0) for g in grads]
        by_norm = [tf.clip_by_norm(g, 0.5) for g in grads]
        clipped, norm = tf.clip_by_global_norm(grads, 1.0)
        for p, g in zip(params, clipped, strict=True):
            p.assign_sub(0.1 * g)
        return loss, by_value, by_norm, norm

    x = tf.constant(normal(11, 5, 4, scale=0.5))
    return [train(x) for _ in range(3)], params


@program
def several_models_in_one_tape(tf, step, forward):
    """Two models, one loss each and one shared, three gradients of one persistent tape."""
    a, b, shared = (tf.Variable(normal(s, 3, 3, scale=0.5)) for s in (12, 13, 14))

    @forward
    def losses(x):
        h = tf.tanh(x @ shared)
        return tf.reduce_mean((h @ a) ** 2), tf.reduce_mean(tf.abs(h @ b - 1.0))

    @step
    def gradients(x):
        with tf.GradientTape(persistent=True) as tape:
            first, second = losses(x)
            both = first * second
        out = (
            tape.gradient(first, [a, shared]),
            tape.gradient(second, {"b": b, "s": shared}),
            tape.gradient(both, [a, b, shared]),
        )
        del tape
        return out

    x = tf.constant(normal(15, 5, 3))
    return [gradients(x) for _ in range(3)]


@program
def unconnected_gradients(tf, step, forward):
    """A source that the target does not depend on: None, or zeros when asked for."""
    used, unused = tf.Variable(2.0), tf.Variable([1.0, 2.0])

    @step
    def gradients(x):
        with tf.GradientTape(persistent=True) as tape:
            y = forward(lambda x: used * x)(x)
        with_none = tape.gradient(y, [used, unused])
        with_zeros = tape.gradient(y, [used, unused], unconnected_gradients=tf.UnconnectedGradients.ZERO)
        return with_none, with_zeros

    return [gradients(tf.constant(3.0)) for _ in range(3)]


@program
def several_targets_and_output_gradients(tf, step, forward):
    """Targets of different shapes, each with its own cotangent."""
    w = tf.Variable(normal(16, 3, 2))

    @forward
    def outputs(x):
        h = x @ w
        return tf.exp(h), tf.reduce_sum(h, axis=0)

    @step
    def gradients(x, seed):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y, z = outputs(x)
        return tape.gradient([y, z], [w, x], output_gradients=[seed, tf.constant([1.0, -2.0])])

    return [gradients(tf.constant(normal(17, 4, 3)), tf.constant(normal(18, 4, 2))) for _ in range(3)]


@program
def hessian_by_nested_tapes(tf, step, forward):
    """The Hessian of a small network's loss by its weights, by jacobian and row by row."""
    w = tf.Variable(normal(19, 3, 2))
    x = tf.constant(normal(20, 5, 3))

    @forward
    def f(w):
        return tf.reduce_mean(tf.reduce_logsumexp(x @ w, axis=1) ** 2)

    @step
    def hessian():
        with tf.GradientTape(persistent=True) as outer:
            with tf.GradientTape() as inner:
                y = f(w.read_value())
            g = inner.gradient(y, w)
            parts = tf.unstack(tf.reshape(g, [-1]))
        rows = tf.stack([outer.gradient(p, w) for p in parts])
        return outer.jacobian(g, w), rows

    return [hessian() for _ in range(2)]


@program
def third_derivative(tf, step, forward):
    """Three nested tapes around a scalar function."""

    @step
    def derivatives(x):
        with tf.GradientTape() as t3:
            t3.watch(x)
            with tf.GradientTape() as t2:
                t2.watch(x)
                with tf.GradientTape() as t1:
                    t1.watch(x)
                    y = forward(lambda x: tf.sin(x) * tf.exp(-x * x))(x)
                d1 = t1.gradient(y, x)
            d2 = t2.gradient(d1, x)
        return y, d1, d2, t3.gradient(d2, x)

    return [derivatives(tf.constant([0.3, -1.1, 2.0], tf.float64)) for _ in range(3)]


@program
def custom_gradient_in_a_network(tf, step, forward):
    """Gradient reversal and a stable log1pexp by custom_gradient."""

    @tf.custom_gradient
    def reverse(x):
        return tf.identity(x), lambda g: -0.5 * g

    @tf.custom_gradient
    def log1pexp(x):
        e = tf.exp(x)
        return tf.math.log(1.0 + e), lambda g: g * (1.0 - 1.0 / (1.0 + e))

    w, u = tf.Variable(normal(21, 3, 3)), tf.Variable(normal(22, 3, 1))

    @forward
    def loss_of(x):
        return tf.reduce_mean(log1pexp(reverse(tf.tanh(x @ w)) @ u))

    @step
    def gradients(x):
        with tf.GradientTape() as tape:
            loss = loss_of(x)
        return loss, tape.gradient(loss, [w, u])

    return [gradients(tf.constant(normal(23, 4, 3))) for _ in range(3)]


@program
def implicit_differentiation(tf, step, forward):
    """A fixed point found by iteration; its gradient by the implicit function theorem in custom_gradient."""

    def solve(w, x):
        z = tf.zeros_like(x)
        for _ in range(30):
            z = tf.tanh(w * z + x)
        return z

    @tf.custom_gradient
    def fixed_point(w, x):
        z = tf.stop_gradient(solve(w, x))

        def grad(g):
            slope = 1.0 - z**2
            adjoint = g * slope / (1.0 - w * slope)
            return tf.reduce_sum(adjoint * z), adjoint

        return z, grad

    w = tf.Variable(0.4)

    @step
    def gradients(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = forward(lambda x: tf.reduce_sum(fixed_point(w.read_value(), x) ** 2))(x)
        return loss, tape.gradient(loss, [w, x])

    return [gradients(tf.constant(normal(24, 5))) for _ in range(3)]


@program
def line_search(tf, step, forward):
    """Backtracking in Python around gradients of a function."""
    x = tf.Variable(np.array([2.0, 1.0, -1.0]))

    def f(x):
        return tf.reduce_sum(x**4) - tf.reduce_prod(x) + tf.reduce_sum(x**2)

    f_under_tape = forward(f)

    @step
    def value_and_gradient():
        with tf.GradientTape() as tape:
            y = f_under_tape(x.read_value())
        return y, tape.gradient(y, x)

    values = []
    for _ in range(4):
        y, g = value_and_gradient()
        rate = 1.0
        while float(f(x - rate * g)) > float(y - 0.3 * rate * tf.reduce_sum(g * g)):
            rate *= 0.5
        x.assign_sub(rate * g)
        values.append(y)
    return values, x


@objective
def distillation_with_temperature(tf):
    """A student follows the softened outputs of a teacher that is not trained."""

    def loss(w, b, teacher, x, y):
        logits = x @ w + b
        soft = tf.nn.softmax(tf.stop_gradient(x @ teacher) / 3.0)
        kl = tf.reduce_sum(soft * (tf.math.log(soft) - tf.nn.log_softmax(logits / 3.0)), axis=1)
        hard = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
        return tf.reduce_mean(0.9 * kl * 9.0 + 0.1 * hard)

    return loss, dense(25, 4, 3), [normal(26, 4, 3), normal(27, 10, 4), integers(28, 3, 10)]


@program
def exponential_moving_average_of_weights(tf, step, forward):
    """The average of the weights is kept in other variables and evaluated at the end."""
    w, mean = tf.Variable(normal(29, 3)), tf.Variable(zeros(3), trainable=False)
    x, y = tf.constant(normal(30, 9, 3)), tf.constant(normal(31, 9))

    @forward
    def loss_at(v):
        return tf.reduce_mean((tf.linalg.matvec(x, v) - y) ** 2)

    @step
    def train():
        with tf.GradientTape() as tape:
            loss = loss_at(w.read_value())
        w.assign_sub(0.1 * tape.gradient(loss, w))
        mean.assign_add(0.1 * (w - mean))
        return loss

    return [train() for _ in range(5)], w, mean, loss_at(mean.read_value())


@objective
def deep_supervision_with_weights(tf):
    """A loss at every layer, weighted; one weight is a Python number that is zero."""

    def loss(w, x, y):
        total = 0.0
        for weight in (0.0, 0.5, 1.0):
            x = tf.tanh(x @ w)
            total += weight * tf.reduce_mean((x - y) ** 2)
        return total * tf.reduce_mean(ones(2))

    return loss, [normal(32, 3, 3)], [normal(33, 6, 3), normal(34, 6, 3)]
