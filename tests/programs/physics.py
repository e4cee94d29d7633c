"""Differential equations, trajectories, inverse problems, spins and gates."""

import numpy as np

from .corpus import dense, normal, objective, program, uniform, zeros


def network(tf, params):
    """Two hidden layers of tanh on columns."""

    def u(*columns):
        h = tf.concat(columns, axis=1)
        for w, b in zip(params[:-2:2], params[1:-2:2], strict=True):
            h = tf.tanh(h @ w + b)
        return h @ params[-2] + params[-1]

    return u


@program
def pinn_heat(tf, step, forward):
    """u_t = u_xx with nested tapes, trained for a few steps."""
    params = [tf.Variable(p) for p in dense(0, 2, 6, 6, 1)]
    u = forward(network(tf, params))
    x, t = tf.constant(uniform(1, 0, 1, 10, 1)), tf.constant(uniform(2, 0, 1, 10, 1))

    @step
    def train(x, t):
        with tf.GradientTape() as tape:
            with tf.GradientTape() as second:
                second.watch(x)
                with tf.GradientTape(persistent=True) as first:
                    first.watch([x, t])
                    value = u(x, t)
                u_x = first.gradient(value, x)
                u_t = first.gradient(value, t)
            u_xx = second.gradient(u_x, x)
            start = u(x, tf.zeros_like(t)) - tf.sin(np.float32(np.pi) * x)
            loss = tf.reduce_mean((u_t - 0.1 * u_xx) ** 2) + tf.reduce_mean(start**2)
        grads = tape.gradient(loss, params)
        for v, g in zip(params, grads, strict=True):
            v.assign_sub(0.05 * g)
        return loss

    return [train(x, t) for _ in range(3)], params


@program
def pinn_burgers(tf, step, forward):
    """u_t + u u_x = nu u_xx; one persistent tape called inside itself; nu is learned."""
    params = [tf.Variable(p) for p in dense(3, 2, 5, 1)]
    nu = tf.Variable(0.1)
    u = forward(network(tf, params))
    x, t = tf.constant(uniform(4, -1, 1, 8, 1)), tf.constant(uniform(5, 0, 1, 8, 1))

    @step
    def residual_loss(x, t):
        with tf.GradientTape() as outer:
            with tf.GradientTape(persistent=True) as tape:
                tape.watch(x)
                tape.watch(t)
                value = u(x, t)
                u_x = tape.gradient(value, x)
                u_t = tape.gradient(value, t)
                u_xx = tape.gradient(u_x, x)
            loss = tf.reduce_mean(tf.square(u_t + value * u_x - nu * u_xx))
        return loss, outer.gradient(loss, [*params, nu])

    loss, grads = residual_loss(x, t)
    return loss, grads, residual_loss(x, t)[0]


@program
def pinn_wave(tf, step, forward):
    """u_tt = c² u_xx; the second derivatives by two separate nests of tapes."""
    params = [tf.Variable(p) for p in dense(6, 2, 5, 1)]
    u = forward(network(tf, params))

    def second(f, x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = f(x)
            first = inner.gradient(y, x)
        return outer.gradient(first, x)

    @step
    def loss_and_gradient(x, t):
        with tf.GradientTape() as tape:
            u_tt = second(lambda t: u(x, t), t)
            u_xx = second(lambda x: u(x, t), x)
            loss = tf.reduce_mean((u_tt - 4.0 * u_xx) ** 2)
        return loss, tape.gradient(loss, params)

    x, t = tf.constant(uniform(7, 0, 1, 6, 1)), tf.constant(uniform(8, 0, 1, 6, 1))
    return [loss_and_gradient(x, t) for _ in range(2)]


@program
def pinn_poisson_laplacian(tf, step, forward):
    """The Laplacian of a scalar field as the sum of two second derivatives of columns."""
    params = [tf.Variable(p) for p in dense(9, 2, 6, 1)]
    u = forward(network(tf, params))

    @step
    def train(xy):
        x, y = xy[:, 0:1], xy[:, 1:2]
        with tf.GradientTape() as tape:
            with tf.GradientTape(persistent=True) as second:
                second.watch([x, y])
                with tf.GradientTape() as first:
                    first.watch([x, y])
                    value = u(x, y)
                u_x, u_y = first.gradient(value, [x, y])
            laplacian = second.gradient(u_x, x) + second.gradient(u_y, y)
            loss = tf.reduce_mean((laplacian + tf.exp(-(x**2) - y**2)) ** 2)
        for v, g in zip(params, tape.gradient(loss, params, unconnected_gradients="zero"), strict=True):
            v.assign_sub(0.02 * g)
        return loss

    xy = tf.constant(uniform(10, -1, 1, 9, 2))
    return [train(xy) for _ in range(3)], params


@objective
def neural_ode_euler(tf):
    """Ten Euler steps through a small network."""

    def loss(w1, b1, w2, b2, x, y):
        for _ in range(10):
            x = x + 0.1 * (tf.tanh(x @ w1 + b1) @ w2 + b2)
        return tf.reduce_mean((x - y) ** 2)

    return loss, dense(11, 2, 6, 2), [normal(12, 5, 2), normal(13, 5, 2)]


@objective
def neural_ode_runge_kutta(tf):
    """Four steps of the classical Runge-Kutta method."""

    def loss(w, b, x, y):
        def f(x, t):
            return tf.tanh(tf.concat([x, tf.fill([5, 1], t)], 1) @ w + b)

        h = 0.25
        for i in range(4):
            t = i * h
            k1 = f(x, t)
            k2 = f(x + h / 2 * k1, t + h / 2)
            k3 = f(x + h / 2 * k2, t + h / 2)
            k4 = f(x + h * k3, t + h)
            x += h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return tf.reduce_mean(tf.abs(x - y))

    return loss, [normal(14, 3, 2), normal(15, 2)], [normal(16, 5, 2), normal(17, 5, 2)]


@objective
def pendulum_control(tf):
    """Torques over time are the parameters; the cost is where the pendulum ends."""

    def loss(torque):
        angle, speed = tf.constant(0.1), tf.constant(0.0)
        cost = 0.0
        for t in range(15):
            speed = speed + 0.1 * (-tf.sin(angle) + torque[t] - 0.1 * speed)
            angle = angle + 0.1 * speed
            cost += 0.01 * torque[t] ** 2
        return cost + (tf.cos(angle) + 1.0) ** 2 + 0.1 * speed**2

    return loss, [normal(18, 15, scale=0.5)], []


@objective
def two_body_trajectory(tf):
    """Symplectic integration of a planet; the start is fitted to an observed end."""

    def loss(position, velocity, observed):
        for _ in range(12):
            distance = tf.norm(position)
            velocity = velocity - 0.1 * position / distance**3
            position = position + 0.1 * velocity
        return tf.reduce_sum((position - observed) ** 2)

    return loss, [np.float32([1, 0]), np.float32([0, 1])], [np.float32([0.2, 1.1])]


@program
def hamiltonian_network(tf, step, forward):
    """The dynamics are gradients of a learned scalar with respect to its own inputs."""
    params = [tf.Variable(p) for p in dense(19, 2, 8, 1)]
    energy = forward(network(tf, params))

    @step
    def train(q, p, dq, dp):
        with tf.GradientTape() as tape:
            with tf.GradientTape() as inner:
                inner.watch([q, p])
                h = tf.reduce_sum(energy(q, p))
            h_q, h_p = inner.gradient(h, [q, p])
            loss = tf.reduce_mean((h_p - dq) ** 2 + (h_q + dp) ** 2)
        for v, g in zip(params, tape.gradient(loss, params, unconnected_gradients="zero"), strict=True):
            v.assign_sub(0.1 * g)
        return loss

    data = [tf.constant(normal(20 + i, 7, 1)) for i in range(4)]
    return [train(*data) for _ in range(3)], params


@program
def lagrangian_acceleration(tf, step, forward):
    """Acceleration from a Lagrangian: a Jacobian, a Hessian and a solve by hand."""
    m = tf.Variable(np.float64(1.5))

    @forward
    def lagrangian(q, v):
        return (
            0.5 * m * tf.reduce_sum(v**2) + 0.3 * v[0] * v[1] * tf.cos(q[0] - q[1]) + tf.reduce_sum(tf.cos(q))
        )

    @step
    def acceleration(q, v):
        with tf.GradientTape(persistent=True) as second:
            second.watch([q, v])
            with tf.GradientTape() as first:
                first.watch([q, v])
                value = lagrangian(q, v)
            by_q, by_v = first.gradient(value, [q, v])
            parts = [by_v[0], by_v[1]]
        hessian = [second.gradient(p, v) for p in parts]
        mixed = [second.gradient(p, q, unconnected_gradients="zero") for p in parts]
        (a, b), (c, d) = tf.unstack(hessian[0]), tf.unstack(hessian[1])
        force = by_q - tf.stack([tf.reduce_sum(r * v) for r in mixed])
        return tf.stack([d * force[0] - b * force[1], a * force[1] - c * force[0]]) / (a * d - b * c)

    q, v = tf.constant([0.3, -0.4], tf.float64), tf.constant([0.2, 0.5], tf.float64)
    return [acceleration(q, v), acceleration(q + 0.1, v)]


@objective
def inverse_problem_deblurring(tf):
    """Recovers a signal from its blurred version with a smoothness prior."""
    kernel = np.float32([0.25, 0.5, 0.25])

    def loss(signal, observed):
        padded = tf.pad(signal, [[1, 1]])
        blurred = sum(kernel[i] * padded[i : i + 16] for i in range(3))
        smooth = tf.reduce_sum(tf.sqrt((signal[1:] - signal[:-1]) ** 2 + 1e-3))
        return tf.reduce_sum((blurred - observed) ** 2) + 0.05 * smooth

    return loss, [zeros(16) + normal(24, 16, scale=0.1)], [np.float32(np.arange(16) > 7)]


@objective
def ising_mean_field(tf):
    """The variational free energy of spins on a ring."""

    def loss(theta, field):
        m = tf.tanh(theta)
        energy = -tf.reduce_sum(m * tf.roll(m, shift=1, axis=0)) - tf.reduce_sum(field * m)
        p = 0.5 * (1.0 + m)
        entropy = -tf.reduce_sum(p * tf.math.log(p) + (1.0 - p) * tf.math.log(1.0 - p))
        return energy - 0.8 * entropy

    return loss, [normal(25, 10)], [normal(26, 10, scale=0.3)]


@objective
def heat_equation_adjoint(tf):
    """The diffusion coefficient of a stencil scheme, fitted through 20 time steps in float64."""

    def loss(k, u, target):
        rate = tf.exp(k)
        for _ in range(20):
            laplacian = tf.roll(u, 1, 0) - 2.0 * u + tf.roll(u, -1, 0)
            u = u + 0.1 * rate * laplacian
        return tf.reduce_mean((u - target) ** 2)

    grid = np.sin(np.linspace(0, 2 * np.pi, 12, endpoint=False))
    return loss, [np.full(12, -0.5)], [grid, 0.5 * grid]


@objective
def quantum_gate_optimisation(tf):
    """Rotation angles of a two-gate circuit; states are complex, the loss is an infidelity."""
    x = np.array([[0, 1], [1, 0]], np.complex64)
    z = np.array([[1, 0], [0, -1]], np.complex64)
    eye = np.eye(2, dtype=np.complex64)

    def loss(angles, target):
        state = tf.constant([[1], [0]], tf.complex64)
        for k, gate in enumerate((x, z, x)):
            a = angles[k] / 2.0
            u = tf.cast(tf.cos(a), tf.complex64) * eye - 1j * tf.cast(tf.sin(a), tf.complex64) * gate
            state = tf.matmul(u, state)
        overlap = tf.reduce_sum(tf.math.conj(target) * state)
        return 1.0 - tf.abs(overlap) ** 2

    return loss, [np.float32([0.3, -0.7, 1.1])], [np.array([[0.6], [0.8j]], np.complex64)]


@objective
def complex_phase_retrieval(tf):
    """Magnitudes of a complex linear map of complex parameters given as two real ones."""

    def loss(re, im, a_re, a_im, magnitude):
        z = tf.complex(re, im)
        y = tf.linalg.matvec(tf.complex(a_re, a_im), z)
        return tf.reduce_mean((tf.math.real(y * tf.math.conj(y)) - magnitude**2) ** 2) + tf.reduce_sum(
            tf.math.imag(z) ** 2
        )

    return loss, [normal(27, 3), normal(28, 3)], [normal(29, 8, 3), normal(30, 8, 3), uniform(31, 0, 2, 8)]


@objective
def lennard_jones_energy(tf):
    """Pairwise distances of atoms, a mask for pairs of one, powers."""

    def loss(positions):
        d2 = tf.reduce_sum((positions[:, None] - positions[None]) ** 2, axis=-1) + tf.eye(5)
        inverse = 1.0 / d2**3
        pairs = 4.0 * (inverse**2 - inverse) * (1.0 - tf.eye(5))
        return 0.5 * tf.reduce_sum(pairs)

    lattice = np.float32([[0, 0], [1.2, 0], [0, 1.2], [1.2, 1.2], [0.6, 2.1]])
    return loss, [lattice + normal(32, 5, 2, scale=0.05)], []
