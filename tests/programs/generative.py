"""Generative models: autoencoders, adversaries, flows, mixtures, scores."""

import numpy as np

from .corpus import dense, integers, normal, objective, ones, program, uniform, zeros


@objective
def variational_autoencoder(tf):
    """Reparameterised with noise given as data."""

    def loss(we, be, wm, bm, wd, bd, x, noise):
        h = tf.nn.tanh(x @ we + be)
        mean, log_var = tf.split(h @ wm + bm, num_or_size_splits=2, axis=1)
        z = mean + tf.exp(0.5 * log_var) * noise
        logits = z @ wd + bd
        likelihood = -tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=logits), axis=1)
        kl = -0.5 * tf.reduce_sum(1.0 + log_var - tf.square(mean) - tf.exp(log_var), axis=1)
        return -tf.reduce_mean(likelihood - kl)

    params = [*dense(0, 6, 5), *dense(1, 5, 4), *dense(2, 2, 6)]
    return loss, params, [(uniform(3, 0, 1, 8, 6) < 0.5).astype("float32"), normal(4, 8, 2)]


@program
def gan_step(tf, step, forward):
    """Two tapes record one forward pass; both players move."""
    g = [tf.Variable(p) for p in dense(5, 2, 6, 3)]
    d = [tf.Variable(p) for p in dense(6, 3, 6, 1)]

    @forward
    def generator(z):
        return tf.nn.tanh(z @ g[0] + g[1]) @ g[2] + g[3]

    @forward
    def discriminator(x):
        return tf.nn.leaky_relu(x @ d[0] + d[1]) @ d[2] + d[3]

    def bce(label, logits):
        return tf.reduce_mean(
            tf.nn.sigmoid_cross_entropy_with_logits(labels=label * tf.ones_like(logits), logits=logits)
        )

    @step
    def train(real, noise):
        with tf.GradientTape() as g_tape, tf.GradientTape() as d_tape:
            fake = generator(noise)
            on_real, on_fake = discriminator(real), discriminator(fake)
            g_loss = bce(1.0, on_fake)
            d_loss = bce(1.0, on_real) + bce(0.0, on_fake)
        g_grads, d_grads = g_tape.gradient(g_loss, g), d_tape.gradient(d_loss, d)
        for v, dv in zip(g + d, g_grads + d_grads, strict=True):
            v.assign_sub(0.1 * dv)
        return g_loss, d_loss

    losses = [train(tf.constant(normal(7 + i, 8, 3)), tf.constant(normal(20 + i, 8, 2))) for i in range(4)]
    return losses, g, d


@program
def wgan_gradient_penalty(tf, step, forward):
    """The critic's loss contains the norm of its own gradient with respect to its input."""
    params = [tf.Variable(p) for p in dense(8, 3, 6, 1)]

    @forward
    def critic(x):
        return tf.nn.tanh(x @ params[0] + params[1]) @ params[2] + params[3]

    @step
    def train(real, fake, mix):
        with tf.GradientTape() as tape:
            between = mix * real + (1.0 - mix) * fake
            with tf.GradientTape() as inner:
                inner.watch(between)
                score = critic(between)
            slopes = tf.sqrt(tf.reduce_sum(tf.square(inner.gradient(score, between)), axis=1) + 1e-8)
            penalty = tf.reduce_mean((slopes - 1.0) ** 2)
            loss = tf.reduce_mean(critic(fake)) - tf.reduce_mean(critic(real)) + 10.0 * penalty
        for v, g in zip(params, tape.gradient(loss, params), strict=True):
            if g is not None:
                v.assign_sub(0.05 * g)
        return loss

    data = [tf.constant(a) for a in (normal(9, 6, 3), normal(10, 6, 3), uniform(11, 0, 1, 6, 1))]
    return [train(*data) for _ in range(4)], params


@objective
def planar_flow(tf):
    """Four planar layers and the log-determinants of their Jacobians."""

    def loss(u, w, b, z):
        log_det = tf.zeros([z.shape[0]])
        for k in range(4):
            a = tf.tanh(tf.linalg.matvec(z, w[k]) + b[k])
            psi = (1.0 - a**2)[:, None] * w[k]
            log_det += tf.math.log(tf.abs(1.0 + tf.linalg.matvec(psi, u[k])) + 1e-6)
            z = z + a[:, None] * u[k]
        return tf.reduce_mean(0.5 * tf.reduce_sum((z - 1.0) ** 2, 1) - log_det)

    return loss, [normal(12, 4, 2, scale=0.4), normal(13, 4, 2, scale=0.5), zeros(4)], [normal(14, 10, 2)]


@objective
def affine_coupling_flow(tf):
    """Half of the variables scale and shift the other half, alternately."""

    def loss(w1, b1, w2, b2, x):
        log_det = 0.0
        for w, b in ((w1, b1), (w2, b2)):
            keep, change = x[:, :2], x[:, 2:]
            scale, shift = tf.split(tf.tanh(keep @ w + b), 2, axis=1)
            log_det += tf.reduce_sum(scale, axis=1)
            x = tf.concat([change * tf.exp(scale) + shift, keep], axis=1)
        return tf.reduce_mean(0.5 * tf.reduce_sum(x**2, axis=1) - log_det)

    return loss, [*dense(15, 2, 4), *dense(16, 2, 4)], [normal(17, 9, 4)]


@program
def score_matching(tf, step, forward):
    """The loss holds the trace of a Jacobian, one nested gradient per coordinate."""
    params = [tf.Variable(p) for p in dense(18, 2, 6, 2)]

    @forward
    def score(x):
        return tf.tanh(x @ params[0] + params[1]) @ params[2] + params[3]

    @step
    def train(x):
        with tf.GradientTape() as tape:
            with tf.GradientTape(persistent=True) as inner:
                inner.watch(x)
                s = score(x)
                parts = [s[:, i] for i in range(2)]
            trace = sum(inner.gradient(parts[i], x)[:, i] for i in range(2))
            loss = tf.reduce_mean(trace + 0.5 * tf.reduce_sum(s**2, axis=1))
        for v, g in zip(params, tape.gradient(loss, params), strict=True):
            v.assign_sub(0.1 * g)
        return loss

    x = tf.constant(normal(19, 7, 2))
    return [train(x) for _ in range(3)], params


@objective
def denoising_score_matching(tf):
    """Noise levels from a geometric schedule; a network conditioned on the level."""

    def loss(w1, b1, w2, b2, x, noise, level):
        sigma = tf.exp(tf.linspace(np.log(0.1), np.log(1.0), 4))
        s = tf.gather(tf.cast(sigma, tf.float32), level)[:, None]
        noisy = x + s * noise
        h = tf.nn.silu(tf.concat([noisy, s], axis=1) @ w1 + b1)
        predicted = (h @ w2 + b2) / s
        return tf.reduce_mean(tf.reduce_sum((predicted * s + noise) ** 2, axis=1))

    return loss, dense(21, 3, 8, 2), [normal(22, 10, 2), normal(23, 10, 2), integers(24, 4, 10)]


@objective
def mixture_of_gaussians(tf):
    """Negative log-likelihood by log-sum-exp."""

    def loss(logits, means, log_scales, x):
        weights = tf.nn.log_softmax(logits)
        z = (x[:, None, :] - means) / tf.exp(log_scales)
        log_p = -0.5 * tf.reduce_sum(z**2 + 2.0 * log_scales + np.log(2 * np.pi).astype("float32"), axis=-1)
        return -tf.reduce_mean(tf.reduce_logsumexp(weights + log_p, axis=1))

    return loss, [zeros(3), normal(25, 3, 2), zeros(3, 2)], [normal(26, 20, 2)]


@program
def expectation_maximisation(tf, step, forward):
    """EM steps without a tape, then the gradient at the point they reach."""
    x = tf.constant(normal(27, 30, 1) + np.float32([[-2]] * 15 + [[2]] * 15))
    means, weights = tf.Variable([-1.0, 0.5]), tf.Variable([0.5, 0.5])

    @step
    def em(x):
        log_p = tf.math.log(weights) - 0.5 * (x - means) ** 2
        r = tf.nn.softmax(log_p, axis=1)
        total = tf.reduce_sum(r, axis=0)
        means.assign(tf.reduce_sum(r * x, axis=0) / total)
        weights.assign(total / tf.reduce_sum(total))
        return tf.reduce_mean(tf.reduce_logsumexp(log_p, axis=1))

    values = [em(x) for _ in range(5)]
    with tf.GradientTape() as tape:
        loss = forward(lambda x: -tf.reduce_mean(tf.reduce_logsumexp(-0.5 * (x - means) ** 2, axis=1)))(x)
    return values, means, weights, tape.gradient(loss, means)


@objective
def restricted_boltzmann_machine(tf):
    """Contrastive divergence: a difference of free energies, samples given."""

    def loss(w, a, b, v, sampled):
        def free_energy(v):
            return -tf.linalg.matvec(v, a) - tf.reduce_sum(tf.math.softplus(v @ w + b), axis=1)

        return tf.reduce_mean(free_energy(v) - free_energy(tf.stop_gradient(sampled)))

    data = [(uniform(s, 0, 1, 7, 5) < 0.5).astype("float32") for s in (28, 29)]
    return loss, [normal(30, 5, 3), zeros(5), zeros(3)], data


@objective
def vector_quantised_autoencoder(tf):
    """Nearest codes by argmin, straight-through gradient, commitment loss."""

    def loss(we, codes, wd, x):
        z = x @ we
        distance = tf.reduce_sum((z[:, None] - codes[None]) ** 2, axis=-1)
        nearest = tf.argmin(distance, axis=1)
        q = tf.gather(codes, nearest)
        straight = z + tf.stop_gradient(q - z)
        commit = tf.reduce_mean((tf.stop_gradient(q) - z) ** 2) + tf.reduce_mean(
            (q - tf.stop_gradient(z)) ** 2
        )
        return tf.reduce_mean((straight @ wd - x) ** 2) + 0.25 * commit

    return loss, [normal(31, 4, 2), normal(32, 5, 2), normal(33, 2, 4)], [normal(34, 8, 4)]


@objective
def autoregressive_masked_network(tf):
    """Masked weights make every output depend on earlier inputs only."""
    mask = np.tril(np.ones((5, 5), np.float32), -1).T

    def loss(w, b, x):
        logits = x @ (w * mask) + b
        nll = tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=logits)
        return tf.reduce_mean(tf.reduce_sum(nll, axis=-1))

    return loss, [normal(35, 5, 5), zeros(5)], [(uniform(36, 0, 1, 9, 5) < 0.4).astype("float32")]


@objective
def energy_based_with_logsumexp_ladder(tf):
    """Annealed weights: a cumulative log-sum-exp along temperatures."""

    def loss(w, x, beta):
        energy = tf.reduce_sum(tf.tanh(x @ w) ** 2, axis=1)
        ladder = tf.math.cumulative_logsumexp(-beta[None, :] * energy[:, None], axis=1)
        return tf.reduce_mean(ladder * ones(1, 4))

    return loss, [normal(37, 3, 4)], [normal(38, 6, 3), np.float32([0.1, 0.3, 1.0, 3.0])]
