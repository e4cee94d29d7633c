"""Updates of reinforcement learning on given trajectories."""

import numpy as np

from .corpus import dense, integers, normal, objective, program, uniform


def returns(rewards, discount=0.9):
    out, total = [], 0.0
    for r in rewards[::-1]:
        total = r + discount * total
        out.append(total)
    return np.float32(out[::-1])


@objective
def reinforce(tf):
    """Log-probabilities of the taken actions, weighted by standardised returns."""

    def loss(w, b, states, actions, rewards):
        log_p = tf.nn.log_softmax(tf.tanh(states @ w + b))
        taken = tf.reduce_sum(tf.one_hot(actions, 3) * log_p, axis=1)
        advantage = (rewards - tf.reduce_mean(rewards)) / (tf.math.reduce_std(rewards) + 1e-6)
        return -tf.reduce_sum(taken * tf.stop_gradient(advantage))

    return loss, dense(0, 4, 3), [normal(1, 12, 4), integers(2, 3, 12), returns(normal(3, 12))]


@objective
def actor_critic(tf):
    """One body, two heads: policy, value and entropy terms in one loss."""

    def loss(w, b, wp, bp, wv, bv, states, actions, targets):
        h = tf.nn.relu(states @ w + b)
        logits, value = h @ wp + bp, tf.squeeze(h @ wv + bv, axis=-1)
        advantage = tf.stop_gradient(targets - value)
        policy = tf.reduce_mean(
            advantage * tf.nn.sparse_softmax_cross_entropy_with_logits(labels=actions, logits=logits)
        )
        p = tf.nn.softmax(logits)
        entropy = -tf.reduce_mean(tf.reduce_sum(p * tf.math.log(p + 1e-8), axis=1))
        return policy + 0.5 * tf.reduce_mean((targets - value) ** 2) - 0.01 * entropy

    params = [*dense(4, 4, 8), *dense(5, 8, 3), *dense(6, 8, 1)]
    return loss, params, [normal(7, 10, 4), integers(8, 3, 10), returns(normal(9, 10))]


@program
def dqn_with_target_network(tf, step, forward):
    """Targets from a frozen copy by stop_gradient; the copy follows by soft updates."""
    online = [tf.Variable(p) for p in dense(10, 4, 8, 2)]
    target = [tf.Variable(v, trainable=False) for v in online]

    def q(params, s):
        return tf.nn.relu(s @ params[0] + params[1]) @ params[2] + params[3]

    @forward
    def q_online(s):
        return q(online, s)

    @step
    def train(s, a, r, s2, done):
        best = tf.reduce_max(q(target, s2), axis=1)
        y = r + 0.9 * (1.0 - done) * tf.stop_gradient(best)
        with tf.GradientTape() as tape:
            taken = tf.gather(q_online(s), a, axis=1, batch_dims=1)
            loss = tf.reduce_mean(tf.square(y - taken))
        grads, _ = tf.clip_by_global_norm(tape.gradient(loss, online), 0.5)
        for v, g in zip(online, grads, strict=True):
            v.assign_sub(0.1 * g)
        for t, v in zip(target, online, strict=True):
            t.assign(0.9 * t + 0.1 * v)
        return loss

    data = [
        normal(11, 6, 4),
        integers(12, 2, 6),
        normal(13, 6),
        normal(14, 6, 4),
        np.float32([0, 0, 1, 0, 0, 1]),
    ]
    return [train(*map(tf.constant, data)) for _ in range(4)], online, target


@objective
def proximal_policy_optimisation(tf):
    """The clipped surrogate of probability ratios."""

    def loss(w, b, states, actions, old_log_p, advantage):
        log_p = tf.nn.log_softmax(states @ w + b)
        taken = tf.gather_nd(log_p, tf.stack([tf.range(10), actions], axis=1))
        ratio = tf.exp(taken - old_log_p)
        clipped = tf.clip_by_value(ratio, 0.8, 1.2)
        return -tf.reduce_mean(tf.minimum(ratio * advantage, clipped * advantage))

    return (
        loss,
        dense(15, 4, 3),
        [normal(16, 10, 4), integers(17, 3, 10), -uniform(18, 0.8, 1.4, 10), normal(19, 10)],
    )


@objective
def continuous_policy(tf):
    """A squashed Gaussian policy with the correction of its density (soft actor-critic)."""

    def loss(wm, bm, wq, bq, states, noise):
        mean, log_std = tf.split(states @ wm + bm, 2, axis=-1)
        log_std = tf.clip_by_value(log_std, -5.0, 2.0)
        raw = mean + tf.exp(log_std) * noise
        action = tf.tanh(raw)
        log_p = -0.5 * noise**2 - log_std - 2.0 * (np.float32(np.log(2.0)) - raw - tf.nn.softplus(-2.0 * raw))
        q = tf.squeeze(tf.nn.relu(tf.concat([states, action], -1)) @ wq + bq, -1)
        return tf.reduce_mean(0.2 * tf.reduce_sum(log_p, -1) - q)

    return loss, [*dense(20, 3, 4), *dense(21, 5, 1)], [normal(22, 8, 3), normal(23, 8, 2)]


@objective
def generalised_advantage_lambda_returns(tf):
    """Lambda-returns through a reversed Python loop over predicted values."""

    def loss(w, states, rewards):
        values = tf.tanh(tf.linalg.matvec(states, w))
        total, outs = values[-1], []
        for t in reversed(range(7)):
            total = rewards[t] + 0.9 * (0.3 * values[t + 1] + 0.7 * total)
            outs.append(total)
        target = tf.stack(outs[::-1])
        return tf.reduce_mean((values[:-1] - tf.stop_gradient(target)) ** 2) - 0.1 * tf.reduce_mean(target)

    return loss, [normal(24, 3)], [normal(25, 8, 3), normal(26, 7)]


@program
def policy_gradient_with_baseline_persistent(tf, step, forward):
    """A persistent tape gives the gradients of two losses by two models."""
    actor, critic = tf.Variable(normal(27, 3, 2)), tf.Variable(normal(28, 3, 1))

    @forward
    def outputs(s):
        return s @ actor, tf.squeeze(s @ critic, 1)

    @step
    def train(s, a, r):
        with tf.GradientTape(persistent=True) as tape:
            logits, value = outputs(s)
            advantage = r - value
            critic_loss = tf.reduce_mean(advantage**2)
            nll = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=a, logits=logits)
            actor_loss = tf.reduce_mean(nll * tf.stop_gradient(advantage))
        actor.assign_sub(0.1 * tape.gradient(actor_loss, actor))
        critic.assign_sub(0.1 * tape.gradient(critic_loss, critic))
        del tape
        return actor_loss, critic_loss

    data = normal(29, 9, 3), integers(30, 2, 9), normal(31, 9)
    return [train(*map(tf.constant, data)) for _ in range(3)], actor, critic
