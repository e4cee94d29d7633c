"""TF-Agents: agents trained on fixed experience to TensorFlow's losses, and a DQN agent that learns a corridor.

Its last version was written for Keras 2, which TF_USE_LEGACY_KERAS makes `tf.keras`.
"""

import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import pytest
import tensorflow as tf
from tf_agents.agents.ddpg import actor_network, critic_network
from tf_agents.agents.dqn import dqn_agent
from tf_agents.agents.ppo import ppo_clip_agent
from tf_agents.agents.reinforce import reinforce_agent
from tf_agents.agents.sac import sac_agent, tanh_normal_projection_network
from tf_agents.agents.td3 import td3_agent
from tf_agents.drivers import dynamic_step_driver
from tf_agents.environments import py_environment, tf_py_environment
from tf_agents.metrics import tf_metrics
from tf_agents.networks import actor_distribution_network, network, q_network, q_rnn_network, value_network
from tf_agents.policies import random_tf_policy
from tf_agents.replay_buffers import tf_uniform_replay_buffer
from tf_agents.specs import array_spec, tensor_spec
from tf_agents.trajectories import time_step as ts
from tf_agents.trajectories import trajectory
from tf_agents.utils import common

OBSERVATION = tf.TensorSpec([4], tf.float32, "observation")
STEPS = ts.time_step_spec(OBSERVATION)
DISCRETE = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 2, "action")
CONTINUOUS = tensor_spec.BoundedTensorSpec([2], tf.float32, -1, 1, "action")


def experience(actions, length=2, info=()):
    """Eight episodes of noise, the same each time."""
    rng = np.random.RandomState(0)
    shape = [8, length]
    steps = np.full(shape, ts.StepType.MID, np.int32)
    steps[:, 0] = ts.StepType.FIRST
    following = np.concatenate([steps[:, 1:], np.full([8, 1], ts.StepType.LAST, np.int32)], 1)
    return trajectory.Trajectory(
        step_type=tf.constant(steps),
        observation=tf.constant(rng.randn(*shape, 4).astype(np.float32)),
        action=tf.constant(actions(rng, shape)),
        policy_info=info,
        next_step_type=tf.constant(following),
        reward=tf.constant(rng.rand(*shape).astype(np.float32)),
        discount=tf.ones(shape),
    )


def discrete(rng, shape):
    return rng.randint(0, 3, shape).astype(np.int32)


def continuous(rng, shape):
    return np.tanh(rng.randn(*shape, 2)).astype(np.float32)


def begun(*networks):
    """Gives networks weights that are the same wherever they are made."""
    rng = np.random.RandomState(1)
    for net in networks:
        for variable in net.variables:
            variable.assign(0.3 * rng.randn(*variable.shape))


def dqn(kind, **more):
    net = q_network.QNetwork(OBSERVATION, DISCRETE, fc_layer_params=(16, 8))
    agent = kind(STEPS, DISCRETE, q_network=net, target_update_period=2, **more)
    begun(net)
    return agent, experience(discrete)


def dqn_rnn(**more):
    layers = {"input_fc_layer_params": (8,), "lstm_size": (6,), "output_fc_layer_params": (8,)}
    net = q_rnn_network.QRnnNetwork(OBSERVATION, DISCRETE, **layers)
    agent = dqn_agent.DqnAgent(STEPS, DISCRETE, q_network=net, target_update_period=2, **more)
    begun(net)
    return agent, experience(discrete, 5)


def actor():
    return actor_distribution_network.ActorDistributionNetwork(OBSERVATION, CONTINUOUS, fc_layer_params=(16,))


def reinforce(**more):
    net = actor()
    agent = reinforce_agent.ReinforceAgent(
        STEPS, CONTINUOUS, actor_network=net, normalize_returns=True, **more
    )
    begun(net)
    return agent, experience(continuous, 6)


def ppo(**more):
    net, value = actor(), value_network.ValueNetwork(OBSERVATION, fc_layer_params=(16,))
    plain = {"num_epochs": 2, "normalize_observations": False, "normalize_rewards": False}
    agent = ppo_clip_agent.PPOClipAgent(STEPS, CONTINUOUS, actor_net=net, value_net=value, **plain, **more)
    begun(net, value)
    loc = np.random.RandomState(2).randn(8, 6, 2).astype(np.float32)
    return agent, experience(
        continuous, 6, {"dist_params": {"loc": tf.constant(loc), "scale": tf.ones([8, 6, 2])}}
    )


def td3(optimizer, **more):
    net = actor_network.ActorNetwork(OBSERVATION, CONTINUOUS, fc_layer_params=(16,))
    critic = critic_network.CriticNetwork((OBSERVATION, CONTINUOUS), joint_fc_layer_params=(16,))
    both = {"actor_optimizer": optimizer, "critic_optimizer": tf.keras.optimizers.Adam(0.01)}
    quiet = {"target_policy_noise": 0.0, "actor_update_period": 2}
    agent = td3_agent.Td3Agent(STEPS, CONTINUOUS, net, critic, **both, **quiet, **more)
    begun(*(n for n in vars(agent).values() if isinstance(n, network.Network)))
    return agent, experience(continuous)


# Measured with TensorFlow 2.21, tf_keras 2.21 and tensorflow-probability 0.25.
AGENTS = {
    "dqn": (lambda **more: dqn(dqn_agent.DqnAgent, **more), [0.343747, 0.266171, 0.290196, 0.226591]),
    "ddqn": (lambda **more: dqn(dqn_agent.DdqnAgent, **more), [0.343747, 0.266171, 0.290196, 0.226219]),
    "dqn_rnn": (dqn_rnn, [1.076885, 0.925946, 0.976437, 0.833082]),
    "reinforce": (reinforce, [0.155544, -0.252259, -0.624645, -0.969694]),
    "ppo": (ppo, [-2.852385, -3.995091, -4.063386, -3.431670]),
    "td3": (td3, [0.203507, 0.140164, 0.117098, 0.088881]),
}


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_trains_to_the_same_losses(name):
    make, expected = AGENTS[name]
    agent, data = make(
        optimizer=tf.keras.optimizers.Adam(0.01), train_step_counter=tf.Variable(0, dtype=tf.int64)
    )
    agent.initialize()
    train = common.function(agent.train)
    np.testing.assert_allclose([float(train(data).loss) for _ in range(4)], expected, rtol=1e-4)
    assert agent.train_step_counter.numpy() == (8 if name == "ppo" else 4)


class Corridor(py_environment.PyEnvironment):
    """A corridor of five cells: leaving it on the right has reward 1, and each step costs a little."""

    def __init__(self):
        super().__init__()
        self._at = 0

    def action_spec(self):
        return array_spec.BoundedArraySpec((), np.int32, 0, 1, "action")

    def observation_spec(self):
        return array_spec.ArraySpec((5,), np.float32, "observation")

    def _seen(self):
        return np.eye(5, dtype=np.float32)[self._at]

    def _reset(self):
        self._at = 0
        return ts.restart(self._seen())

    def _step(self, action):
        if self._current_time_step.is_last():
            return self.reset()
        self._at = max(0, self._at + (1 if action else -1))
        if self._at == 4:
            return ts.termination(self._seen(), 1.0)
        return ts.transition(self._seen(), -0.05)


def test_a_dqn_agent_learns_a_corridor_from_a_replay_buffer(tmp_path):
    tf.random.set_seed(3)
    environment = tf_py_environment.TFPyEnvironment(Corridor())
    specs = environment.time_step_spec(), environment.action_spec()
    net = q_network.QNetwork(environment.observation_spec(), environment.action_spec(), fc_layer_params=(16,))
    counter = tf.Variable(0, dtype=tf.int64)
    agent = dqn_agent.DqnAgent(
        *specs, q_network=net, optimizer=tf.keras.optimizers.Adam(0.02), epsilon_greedy=0.2, gamma=0.9,
        target_update_period=5, train_step_counter=counter,
    )  # fmt: skip
    agent.initialize()
    buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(agent.collect_data_spec, 1, max_length=1000)
    reward = tf_metrics.AverageReturnMetric()

    def collect(policy, steps, observers):
        driver = dynamic_step_driver.DynamicStepDriver(environment, policy, observers, num_steps=steps)
        return common.function(driver.run)

    collect(random_tf_policy.RandomTFPolicy(*specs), 200, [buffer.add_batch])()
    assert 200 <= buffer.num_frames().numpy() < 300  # the frames between episodes are kept, too
    batches = iter(buffer.as_dataset(sample_batch_size=32, num_steps=2).prefetch(2))
    train, step = common.function(agent.train), collect(agent.collect_policy, 1, [buffer.add_batch])
    for _ in range(120):
        step()
        found = train(next(batches)[0])
    assert np.isfinite(found.loss) and counter.numpy() == 120
    environment.reset()
    collect(agent.policy, 12, [reward])()
    np.testing.assert_allclose(reward.result(), 1 - 3 * 0.05, rtol=1e-6)  # straight to the right

    saver = common.Checkpointer(str(tmp_path), max_to_keep=1, agent=agent, step=counter)
    saver.save(counter)
    before = [v.numpy() for v in net.variables]
    for variable in net.variables:
        variable.assign(tf.zeros_like(variable))
    common.Checkpointer(str(tmp_path), max_to_keep=1, agent=agent, step=counter).initialize_or_restore()
    for variable, value in zip(net.variables, before, strict=True):
        np.testing.assert_array_equal(variable, value)


def test_a_stochastic_agent_acts_within_its_bounds_and_trains():
    tf.random.set_seed(1)
    net = actor_distribution_network.ActorDistributionNetwork(
        OBSERVATION, CONTINUOUS, fc_layer_params=(16,),
        continuous_projection_net=tanh_normal_projection_network.TanhNormalProjectionNetwork,
    )  # fmt: skip
    critic = critic_network.CriticNetwork((OBSERVATION, CONTINUOUS), joint_fc_layer_params=(16,))
    adam = [tf.keras.optimizers.Adam(0.01) for _ in range(3)]
    agent = sac_agent.SacAgent(
        STEPS, CONTINUOUS, critic, net, *adam, train_step_counter=tf.Variable(0, dtype=tf.int64)
    )
    agent.initialize()
    action = agent.collect_policy.action(ts.restart(tf.random.normal([50, 4]), batch_size=50)).action
    assert action.shape == [50, 2] and np.all(np.abs(action) <= 1) and np.std(action) > 0.2
    train, data = common.function(agent.train), experience(continuous)
    critics = [float(train(data).extra.critic_loss) for _ in range(30)]
    assert np.mean(critics[-5:]) < np.mean(critics[:5])


def test_experience_of_another_shape_is_refused():
    agent, data = dqn(dqn_agent.DqnAgent, optimizer=tf.keras.optimizers.Adam(0.01))
    with pytest.raises(ValueError, match="not compatible with Specs"):
        agent.train(data._replace(observation=tf.zeros([8, 2, 5])))
