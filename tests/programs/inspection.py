"""Looking into models: saliency, adversaries, Jacobians, per-example gradients, intermediate gradients."""

import numpy as np

from .corpus import dense, integers, normal, objective, program, uniform


def classifier(tf, seed):
    params = [tf.constant(p) for p in dense(seed, 5, 8, 3)]
    return lambda x: tf.nn.softplus(x @ params[0] + params[1]) @ params[2] + params[3]


@program
def fast_gradient_sign(tf, step, forward):
    """FGSM: the sign of the gradient with respect to the input."""
    net = forward(classifier(tf, 0))

    @step
    def attack(x, y):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(y, net(x)))
        g = tape.gradient(loss, x)
        return loss, g, tf.clip_by_value(x + 0.1 * tf.sign(g), -1.0, 1.0)

    x, y = tf.constant(uniform(1, -1, 1, 6, 5)), tf.constant(integers(2, 3, 6))
    return [attack(x, y) for _ in range(3)]


@program
def projected_gradient_descent(tf, step, forward):
    """PGD: several steps, each projected onto a ball; gradients do not flow between them."""
    net = forward(classifier(tf, 3))
    x0, y = tf.constant(normal(4, 4, 5)), tf.constant(integers(5, 3, 4))

    @step
    def move(x, x0, y):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=net(x)))
        x = x + 0.2 * tf.math.l2_normalize(tape.gradient(loss, x), axis=1)
        return x0 + tf.clip_by_norm(x - x0, 0.5, axes=[1]), loss

    x, losses = x0, []
    for _ in range(5):
        x, loss = move(x, x0, y)
        losses.append(loss)
    return x, losses


@program
def integrated_gradients(tf, step, forward):
    """Gradients along a straight path from a baseline, summed by trapezoids."""
    net = forward(classifier(tf, 6))

    @step
    def attribute(x):
        alphas = tf.linspace(0.0, 1.0, 9)[:, None]
        path = alphas * x[None, :]
        with tf.GradientTape() as tape:
            tape.watch(path)
            scores = tf.nn.softmax(net(path))[:, 1]
        grads = tape.gradient(scores, path)
        return x * tf.reduce_mean((grads[:-1] + grads[1:]) / 2.0, axis=0), scores[-1] - scores[0]

    return [attribute(tf.constant(normal(7, 5))) for _ in range(3)]


@program
def saliency_map(tf, step, forward):
    """The gradient of the largest logit with respect to the input; the class is found by argmax."""
    net = forward(classifier(tf, 8))

    @step
    def saliency(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            best = tf.reduce_max(net(x), axis=1)
        g = tf.abs(tape.gradient(best, x))
        return (g - tf.reduce_min(g)) / (tf.reduce_max(g) - tf.reduce_min(g)), tf.argmax(net(x), axis=1)

    return [saliency(tf.constant(normal(9, 4, 5))) for _ in range(3)]


@program
def grad_cam(tf, step, forward):
    """The gradient with respect to an intermediate activation, watched nowhere, weighs its channels."""
    kernel, w = tf.Variable(normal(10, 3, 4)), tf.Variable(normal(11, 4, 3))

    @forward
    def head(features):
        return tf.reduce_mean(features, axis=[1, 2]) @ w

    @step
    def cam(images):
        with tf.GradientTape() as tape:
            features = tf.nn.relu(tf.einsum("bhwc,cf->bhwf", images, kernel))
            score = head(features)[:, 2]
        grads = tape.gradient(score, features)
        weights = tf.reduce_mean(grads, axis=(1, 2))
        heat = tf.nn.relu(tf.einsum("bhwf,bf->bhw", features, weights))
        return heat / (tf.reduce_max(heat, axis=[1, 2], keepdims=True) + 1e-6)

    return [cam(tf.constant(normal(12, 2, 4, 4, 3))) for _ in range(3)]


@program
def jacobian_of_a_network(tf, step, forward):
    """Outputs by inputs, for one example and for a batch."""
    net = forward(classifier(tf, 13))

    @step
    def jacobians(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = tf.tanh(net(x))
        return tape.jacobian(y, x), tape.batch_jacobian(y, x)

    return [jacobians(tf.constant(normal(14, 3, 5))) for _ in range(2)]


@program
def per_example_gradient_norms(tf, step, forward):
    """As in private training: one gradient per example, clipped, then averaged."""
    w = tf.Variable(normal(15, 4, 1))

    @forward
    def losses(x, y):
        return tf.squeeze(tf.square(x @ w - y), axis=1)

    @step
    def private(x, y):
        with tf.GradientTape() as tape:
            each = losses(x, y)
        grads = tape.jacobian(each, w)
        norms = tf.sqrt(tf.reduce_sum(grads**2, axis=[1, 2]))
        factors = tf.minimum(1.0, 1.0 / norms)
        return norms, tf.reduce_mean(factors[:, None, None] * grads, axis=0)

    return [private(tf.constant(normal(16, 6, 4)), tf.constant(normal(17, 6, 1))) for _ in range(2)]


@objective
def style_gram_matrix(tf):
    """Style transfer: Gram matrices of features, total variation, the image is the parameter."""
    kernel = normal(18, 3, 4, scale=0.5)

    def gram(tf, image):
        f = tf.nn.relu(tf.tensordot(image, kernel, axes=[[2], [0]]))
        return tf.einsum("ijc,ijd->cd", f, f) / 30.0

    def loss(image, style):
        variation = tf.reduce_sum(tf.abs(image[1:] - image[:-1])) + tf.reduce_sum(
            tf.abs(image[:, 1:] - image[:, :-1])
        )
        return tf.reduce_mean((gram(tf, image) - gram(tf, style)) ** 2) + 1e-2 * variation

    return loss, [normal(19, 5, 6, 3)], [normal(20, 5, 6, 3)]


@objective
def deep_dream(tf):
    """The image maximises the mean activation of two layers, after a shift and a crop."""

    def loss(image, k1, k2):
        rolled = tf.roll(image, shift=[2, -1], axis=[0, 1])[1:7, 1:7]
        one = tf.nn.tanh(tf.einsum("ijc,cd->ijd", rolled, k1))
        two = tf.nn.relu(tf.einsum("ijd,de->ije", one, k2))
        return -sum(tf.reduce_mean(layer) for layer in (one, two)) + 0.01 * tf.reduce_sum(image**2)

    return loss, [normal(21, 8, 8, 3)], [normal(22, 3, 4), normal(23, 4, 4)]


@objective
def gradient_matching_norm(tf):
    """Contractive autoencoder: the Jacobian's norm in closed form."""

    def loss(w, b, c, x):
        h = tf.sigmoid(x @ w + b)
        rebuilt = h @ tf.transpose(w) + c
        contraction = tf.reduce_sum((h * (1.0 - h)) ** 2 * tf.reduce_sum(w**2, axis=0), axis=1)
        return tf.reduce_mean(tf.reduce_sum((rebuilt - x) ** 2, axis=1) + 0.1 * contraction)

    return loss, [normal(24, 5, 3), np.zeros(3, np.float32), np.zeros(5, np.float32)], [normal(25, 7, 5)]


@program
def influence_of_training_points(tf, step, forward):
    """Gradients of single losses, multiplied with the gradient of a test loss."""
    w = tf.Variable(normal(26, 4, dtype="float64"))

    @forward
    def loss_at(x, y):
        return tf.math.softplus(-y * tf.reduce_sum(x * w))

    @step
    def gradient(x, y):
        with tf.GradientTape() as tape:
            loss = loss_at(x, y)
        return tape.gradient(loss, w)

    xs, ys = normal(27, 5, 4, dtype="float64"), np.sign(normal(28, 5, dtype="float64"))
    grads = [gradient(tf.constant(x), tf.constant(y)) for x, y in zip(xs, ys, strict=True)]
    return [tf.reduce_sum(grads[0] * g) for g in grads], tf.add_n(grads)
