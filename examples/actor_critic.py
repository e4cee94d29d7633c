"""Actor-critic balances a pole on a cart: reinforcement learning with one tape an episode.

    python examples/actor_critic.py            # learns to balance, draws actor_critic.png
    python examples/actor_critic.py --quick    # a few episodes

The cart is written in NumPy. One network has two heads: the actor gives the probability of pushing right, the
critic the expected reward. An episode is played without a tape and then replayed as one batch.
"""

import sys

import numpy as np

import gradtape as tf

LIMIT = 500  # steps of a perfect episode


class CartPole:
    """The classic task: position, speed, angle, angular speed; the force is +-10 N, a step 20 ms."""

    def __init__(self, rng):
        self.rng = rng

    def reset(self):
        self.state = self.rng.uniform(-0.05, 0.05, 4)
        return self.state

    def step(self, action):
        x, v, angle, spin = self.state
        force, sin, cos = (10.0 if action == 1 else -10.0), np.sin(angle), np.cos(angle)
        # Cart 1 kg, pole 0.1 kg and half as long as 1 m: the equations of Barto, Sutton and Anderson.
        push = (force + 0.05 * spin**2 * sin) / 1.1
        turn = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
        speed_up = push - 0.05 * turn * cos / 1.1
        self.state = self.state + 0.02 * np.array([v, speed_up, spin, turn])
        fallen = abs(self.state[0]) > 2.4 or abs(self.state[2]) > np.radians(12)
        return self.state, 1.0, bool(fallen)


class ActorCritic(tf.keras.Model):
    def __init__(self, hidden=64):
        super().__init__()
        self.common = tf.keras.layers.Dense(hidden, activation="tanh")
        self.actor = tf.keras.layers.Dense(1)
        self.critic = tf.keras.layers.Dense(1)

    def call(self, states):
        h = self.common(states * tf.constant([0.5, 0.5, 5.0, 0.5]))
        return tf.squeeze(self.actor(h), 1), tf.squeeze(self.critic(h), 1)


def play(env, policy, rng):
    """One episode: its states, actions, rewards, and whether the pole fell."""
    states, actions, rewards = [], [], []
    state, fallen = env.reset(), False
    while not fallen and len(states) < LIMIT:
        probability = float(policy(tf.constant(state[None], tf.float32)))
        action = int(rng.random() < probability)
        states.append(state)
        state, reward, fallen = env.step(action)
        actions.append(action)
        rewards.append(reward)
    return np.array(states, np.float32), np.array(actions, np.float32), np.array(rewards), fallen


def expected_returns(rewards, last_value, gamma=0.99):
    returns, total = np.zeros(len(rewards), np.float32), last_value
    for k in reversed(range(len(rewards))):
        total = rewards[k] + gamma * total
        returns[k] = total
    return returns


def main(quick=False):
    tf.keras.utils.set_random_seed(0)
    rng = np.random.default_rng(0)
    env, model = CartPole(rng), ActorCritic()
    optimizer = tf.keras.optimizers.Adam(learning_rate=0.01)
    huber = tf.keras.losses.Huber()

    @tf.function
    def policy(state):
        return tf.sigmoid(model(state)[0][0])

    some = tf.TensorSpec([None], tf.float32)

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32), some, some])
    def train_step(states, actions, returns):
        with tf.GradientTape() as tape:
            logits, values = model(states)
            advantage = tf.stop_gradient(returns - values)
            advantage = advantage / (tf.math.reduce_std(advantage) + 1e-3)
            log_loss = tf.nn.sigmoid_cross_entropy_with_logits(labels=actions, logits=logits)
            actor_loss = tf.reduce_mean(log_loss * advantage)
            critic_loss = huber(returns / 10, values / 10)
            loss = actor_loss + critic_loss
        gradients, _ = tf.clip_by_global_norm(tape.gradient(loss, model.trainable_variables), 1.0)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    losses, lengths = [], []
    for episode in range(1, (8 if quick else 600) + 1):
        states, actions, rewards, fallen = play(env, policy, rng)
        last_value = 0.0 if fallen else float(model(states[-1:])[1][0])
        returns = expected_returns(rewards, last_value)
        losses.append(float(train_step(tf.constant(states), tf.constant(actions), tf.constant(returns))))
        lengths.append(len(states))
        mean = np.mean(lengths[-50:])
        if episode % (2 if quick else 50) == 0:
            print(f"episode {episode:4}  mean length of the last 50: {mean:.1f}")
        if len(lengths) >= 50 and mean > 475:
            print(f"solved in {episode} episodes: the mean length is {mean:.1f} of {LIMIT}")
            break
    if not quick:
        draw(lengths, *play(env, policy, rng)[:2])
    return losses + lengths


def draw(lengths, states, actions):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.6), layout="constrained")
    left.plot(lengths, ".", ms=3, color="0.6", label="each")
    left.plot([np.mean(lengths[max(0, k - 49) : k + 1]) for k in range(len(lengths))], label="mean of 50")
    left.axhline(475, color="k", ls="--", lw=1)
    left.set(xlabel="episode", ylabel="steps until the pole falls", title="learning to balance")
    left.legend()
    times = 0.02 * np.arange(len(states))
    right.plot(times, states[:, 0], label="position [m]")
    right.plot(times, np.degrees(states[:, 2]), label="angle [degrees]")
    right.set(xlabel="time [s]", title="an episode afterwards")
    right.legend()
    figure.savefig("actor_critic.png", dpi=120)
    print("drawn to actor_critic.png")


if __name__ == "__main__":
    main("--quick" in sys.argv)
