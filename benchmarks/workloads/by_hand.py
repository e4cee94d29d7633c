"""Steps that people write with tapes: DQN, PPO and a PINN.

In TensorFlow's API with Keras models, for TensorFlow and gradtape alike, eager or under `function`; in PyTorch's
API, eager; in JAX's, compiled, since that is how JAX is used. All have the same initial weights and data.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from workloads import jax_numpy
from workloads.data import BETA1, BETA2, EPSILON, RATE

Step = Callable[[], float]
Weights = list[Any]
DISCOUNT, CLIP, ENTROPY, VALUE, NORM = 0.99, 0.2, 0.01, 0.5, 0.5
VISCOSITY = 0.01


def numbers(name: str, tiny: bool) -> tuple[list[Weights], dict[str, Any]]:
    """The weights of each network, and the batch."""
    rng = np.random.default_rng(7)
    hidden = 8 if tiny else 32 if name == "PINN" else 64
    rows = 4 if tiny else {"DQN": 32, "PPO": 64, "PINN": 512}[name]

    def normal(*shape: int) -> Any:
        return rng.standard_normal(shape).astype(np.float32)

    def network(*widths: int) -> Weights:
        sizes = list(zip(widths, widths[1:], strict=False))
        return [w for i, o in sizes for w in (normal(i, o) / i**0.5, 0.01 * normal(o))]

    def actions(n: int) -> Any:
        return rng.integers(0, n, rows).astype(np.int32)

    if name == "DQN":
        widths = (4, hidden, hidden, 2)
        batch = {
            "state": normal(1, 4),
            "states": normal(rows, 4),
            "actions": actions(2),
            "rewards": normal(rows),
        }
        batch |= {"after": normal(rows, 4), "done": (rng.random(rows) < 0.1).astype(np.float32)}
        return [network(*widths), network(*widths)], batch
    if name == "PPO":
        batch = {
            "states": normal(rows, 8),
            "actions": actions(4),
            "advantages": normal(rows),
            "returns": normal(rows),
        }
        batch["before"] = (-1.4 + 0.1 * normal(rows)).astype(np.float32)  # log of the old probabilities
        return [network(8, hidden, hidden, 4), network(8, hidden, hidden, 1)], batch
    points = rng.uniform(-1, 1, (2, rows, 1)).astype(np.float32)
    start = rng.uniform(-1, 1, (max(4, rows // 8), 1)).astype(np.float32)
    return [network(2, hidden, hidden, hidden, 1)], {"t": (points[0] + 1) / 2, "x": points[1], "start": start}


def build(library: str, module: Any, name: str, mode: str, tiny: bool) -> Step:
    weights, batch = numbers(name, tiny)
    return {"torch": _torch, "jax": _jax}.get(library, _tensorflow)(module, name, mode, weights, batch)


# ---- TensorFlow and gradtape ------------------------------------------------------------------------


def _tensorflow(tf: Any, name: str, mode: str, weights: list[Weights], batch: Any) -> Step:
    keras = tf.keras

    def network(weights: Weights, activation: str) -> Any:
        hidden = [keras.layers.Dense(w.shape[1], activation=activation) for w in weights[:-2:2]]
        model = keras.Sequential(
            [keras.Input((len(weights[0]),)), *hidden, keras.layers.Dense(weights[-2].shape[1])]
        )
        model.set_weights(weights)
        return model

    nets = [network(w, "relu" if name == "DQN" else "tanh") for w in weights]
    learned = nets[:1] if name == "DQN" else nets
    variables = [v for net in learned for v in net.trainable_variables]
    adam = keras.optimizers.Adam(RATE, BETA1, BETA2, EPSILON)
    b = {k: tf.constant(v) for k, v in batch.items()}

    def dqn() -> Any:
        q, target = nets
        action = tf.argmax(q(b["state"]), axis=1)  # noqa: F841
        best = tf.reduce_max(target(b["after"]), axis=1)
        goal = b["rewards"] + DISCOUNT * (1.0 - b["done"]) * best
        with tf.GradientTape() as tape:
            chosen = tf.gather(q(b["states"]), b["actions"], axis=1, batch_dims=1)
            error = tf.abs(goal - chosen)
            loss = tf.reduce_mean(tf.where(error < 1.0, 0.5 * error**2, error - 0.5))
        return loss, tape.gradient(loss, variables)

    def ppo() -> Any:
        actor, critic = nets
        with tf.GradientTape() as tape:
            logs = tf.nn.log_softmax(actor(b["states"]))
            chosen = tf.gather(logs, b["actions"], axis=1, batch_dims=1)
            ratio = tf.exp(chosen - b["before"])
            gain = tf.minimum(
                ratio * b["advantages"], tf.clip_by_value(ratio, 1 - CLIP, 1 + CLIP) * b["advantages"]
            )
            entropy = -tf.reduce_mean(tf.reduce_sum(tf.exp(logs) * logs, axis=1))
            wrong = tf.reduce_mean(tf.square(b["returns"] - tf.squeeze(critic(b["states"]), 1)))
            loss = VALUE * wrong - tf.reduce_mean(gain) - ENTROPY * entropy
        gradients, _ = tf.clip_by_global_norm(tape.gradient(loss, variables), NORM)
        return loss, gradients

    def pinn() -> Any:
        t, x, start, (net,) = b["t"], b["x"], b["start"], nets
        with tf.GradientTape() as tape:
            with tf.GradientTape() as second:
                second.watch(x)
                with tf.GradientTape() as first:
                    first.watch([t, x])
                    u = net(tf.concat([t, x], 1))
                u_t, u_x = first.gradient(u, [t, x])
            u_xx = second.gradient(u_x, x)
            begin = net(tf.concat([tf.zeros_like(start), start], 1)) + tf.sin(np.pi * start)
            loss = tf.reduce_mean(tf.square(u_t + u * u_x - VISCOSITY * u_xx)) + tf.reduce_mean(
                tf.square(begin)
            )
        return loss, tape.gradient(loss, variables)

    both = {"DQN": dqn, "PPO": ppo, "PINN": pinn}[name]

    def step() -> Any:
        loss, gradients = both()
        adam.apply_gradients(zip(gradients, variables, strict=True))
        return loss

    run = tf.function(step) if mode == "function" else step
    return lambda: float(run())


# ---- PyTorch ----------------------------------------------------------------------------------------


def _torch(torch: Any, name: str, mode: str, weights: list[Weights], batch: Any) -> Step:
    def network(weights: Weights, activation: Any) -> Any:
        layers = []
        for w, bias in zip(weights[::2], weights[1::2], strict=True):
            layer = torch.nn.Linear(*w.shape)
            layer.weight.data, layer.bias.data = torch.tensor(w.T.copy()), torch.tensor(bias)
            layers += [layer, activation()]
        return torch.nn.Sequential(*layers[:-1])

    nets = [network(w, torch.nn.ReLU if name == "DQN" else torch.nn.Tanh) for w in weights]
    learned = nets[:1] if name == "DQN" else nets
    parameters = [p for net in learned for p in net.parameters()]
    adam = torch.optim.Adam(parameters, RATE, (BETA1, BETA2), EPSILON)
    b = {k: torch.tensor(v) for k, v in batch.items()}
    index = b["actions"].long()[:, None] if "actions" in b else None

    def dqn() -> Any:
        q, target = nets
        with torch.no_grad():
            action = q(b["state"]).argmax(1)  # noqa: F841
            goal = b["rewards"] + DISCOUNT * (1 - b["done"]) * target(b["after"]).max(1).values
        return torch.nn.functional.smooth_l1_loss(q(b["states"]).gather(1, index)[:, 0], goal)

    def ppo() -> Any:
        actor, critic = nets
        logs = torch.log_softmax(actor(b["states"]), 1)
        ratio = torch.exp(logs.gather(1, index)[:, 0] - b["before"])
        gain = torch.minimum(
            ratio * b["advantages"], torch.clamp(ratio, 1 - CLIP, 1 + CLIP) * b["advantages"]
        )
        entropy = -(torch.exp(logs) * logs).sum(1).mean()
        wrong = torch.nn.functional.mse_loss(critic(b["states"])[:, 0], b["returns"])
        return VALUE * wrong - gain.mean() - ENTROPY * entropy

    def pinn() -> Any:
        t, x = (b[k].detach().requires_grad_() for k in "tx")
        (net,) = nets
        u = net(torch.cat([t, x], 1))
        u_t, u_x = torch.autograd.grad(u.sum(), [t, x], create_graph=True)
        (u_xx,) = torch.autograd.grad(u_x.sum(), x, create_graph=True)
        start = b["start"]
        begin = net(torch.cat([torch.zeros_like(start), start], 1)) + torch.sin(np.pi * start)
        return (u_t + u * u_x - VISCOSITY * u_xx).square().mean() + begin.square().mean()

    loss_of = {"DQN": dqn, "PPO": ppo, "PINN": pinn}[name]

    def step() -> float:
        adam.zero_grad()
        loss = loss_of()
        loss.backward()
        if name == "PPO":
            torch.nn.utils.clip_grad_norm_(parameters, NORM)
        adam.step()
        return loss.item()

    return step


# ---- JAX --------------------------------------------------------------------------------------------


def _jax(jax: Any, name: str, mode: str, weights: list[Weights], batch: Any) -> Step:
    jnp = jax.numpy
    activation = jax.nn.relu if name == "DQN" else jnp.tanh

    def net(weights: Weights, x: Any) -> Any:
        for k in range(0, len(weights), 2):
            x = x @ weights[k] + weights[k + 1]
            x = activation(x) if k + 2 < len(weights) else x
        return x

    def dqn(learned: Weights, b: Any) -> Any:
        best = net(b["target"], b["after"]).max(1)
        goal = b["rewards"] + DISCOUNT * (1 - b["done"]) * best
        error = jnp.abs(goal - jnp.take_along_axis(net(learned, b["states"]), b["actions"][:, None], 1)[:, 0])
        return jnp.where(error < 1, 0.5 * error**2, error - 0.5).mean()

    def ppo(learned: Weights, b: Any) -> Any:
        half = len(learned) // 2
        logs = jax.nn.log_softmax(net(learned[:half], b["states"]))
        ratio = jnp.exp(jnp.take_along_axis(logs, b["actions"][:, None], 1)[:, 0] - b["before"])
        gain = jnp.minimum(ratio * b["advantages"], jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * b["advantages"])
        entropy = -(jnp.exp(logs) * logs).sum(1).mean()
        wrong = jnp.square(b["returns"] - net(learned[half:], b["states"])[:, 0]).mean()
        return VALUE * wrong - gain.mean() - ENTROPY * entropy

    def pinn(learned: Weights, b: Any) -> Any:
        def u(t: Any, x: Any) -> Any:
            return net(learned, jnp.stack([t, x]))[0]

        def residual(t: Any, x: Any) -> Any:
            (u_t, u_x), u_xx = jax.grad(u, (0, 1))(t, x), jax.grad(jax.grad(u, 1), 1)(t, x)
            return u_t + u(t, x) * u_x - VISCOSITY * u_xx

        inside = jax.vmap(residual)(b["t"][:, 0], b["x"][:, 0])
        start = b["start"]
        begin = net(learned, jnp.concatenate([jnp.zeros_like(start), start], 1)) + jnp.sin(np.pi * start)
        return jnp.square(inside).mean() + jnp.square(begin).mean()

    loss_of = {"DQN": dqn, "PPO": ppo, "PINN": pinn}[name]
    b = {k: jnp.array(v) for k, v in batch.items()}
    learned = [
        jnp.array(w) for net_weights in (weights[:1] if name == "DQN" else weights) for w in net_weights
    ]
    if name == "DQN":
        b["target"] = [jnp.array(w) for w in weights[1]]
    act = jax.jit(lambda weights, state: net(weights, state).argmax(1))

    def update(learned: Weights, state: Any, b: Any) -> Any:
        loss, gradients = jax.value_and_grad(loss_of)(learned, b)
        if name == "PPO":
            norm = jnp.sqrt(sum(jnp.square(g).sum() for g in gradients))
            gradients = [g * jnp.minimum(1.0, NORM / norm) for g in gradients]
        return *jax_numpy.adam(jnp, learned, state, gradients), loss

    compiled = jax.jit(update, donate_argnums=(0, 1))
    current = [learned, jax_numpy.adam_state(jnp, learned)]

    def step() -> float:
        if name == "DQN":
            int(act(current[0], b["state"])[0])
        current[0], current[1], loss = jax.block_until_ready(compiled(*current, b))
        return float(loss)

    return step
