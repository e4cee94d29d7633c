"""A program in which tensors behave as NumPy's arrays; test_tnp.py runs it in a process of its own, since that lasts."""

import numpy as np

import gradtape as tf

tnp = tf.experimental.numpy
for mode, error in (("safe", NotImplementedError), ("x", ValueError)):
    try:
        tnp.experimental_enable_numpy_behavior(dtype_conversion_mode=mode)
    except error:
        continue
    raise AssertionError(mode)
tnp.experimental_enable_numpy_behavior()
tnp.experimental_enable_numpy_behavior()  # once more changes nothing

# Methods.
x = tf.constant([[1.0, 2.0, 3.0]])
assert x.T.shape == x.transpose(1, 0).shape == x.transpose().shape == (3, 1) and x.size == 3
assert x.reshape(3).shape == x.ravel().shape == x.reshape([3]).shape == (3,) and x.mean().numpy() == 2.0
assert x.astype("int32").dtype == tf.int32 and x.tolist() == [[1.0, 2.0, 3.0]]


def same(got, want):
    assert got.numpy().dtype == want.dtype and got.numpy().tolist() == want.tolist(), (got, want)


# Operators: as NumPy's, with tensors, variables, arrays and numbers on the other side.
J, F, B = np.int32([1, 2]), np.float32([1.5, 2.5]), np.array([True, False])
for q in (J, F):
    for t in (tf.constant(q), tf.Variable(q)):
        for p in (J, F, 2, 2.5, np.float64([1.0, 2.0])):
            for other in (p, tf.constant(p)) if isinstance(p, np.ndarray) else (p,):
                same(t + other, q + p)
                same(t - other, q - p)
                same(t / other, q / p)
                same(t == other, q == p)
                same(t < other, q < p)
            reflected = tf.constant(p) if isinstance(p, np.ndarray) else p
            same(reflected * t, p * q)
            same(reflected // t, p // q)
same(tf.constant(B) & True, B & True)
same(tf.constant(J) | 4, J | 4)
same(tf.constant(B) + tf.constant(B), B + B)
same(tf.constant(F) @ tf.constant(J), F.astype(float) @ J)
power = (2 ** tf.constant(F)).numpy()  # within 2 units of the last place
assert power.dtype == np.float32 and (abs(power - np.float32(2) ** F) <= 2 * np.spacing(power)).all(), power

# Indices.
A = np.arange(12.0).reshape(3, 4)
KEYS = (
    [0, 2], (slice(None), [1]), ([0, 2], [1, 3]), A > 5, (slice(1), np.array([True, False, True, False])),
    ([-1, 0], Ellipsis, None), ([[0, 1], [2, 0]],), (slice(1, None), 2),
)  # fmt: skip
for key in KEYS:
    same(tf.constant(A)[key], A[key])
    same(tf.Variable(A)[key], A[key])
    same(tf.function(lambda a, key=key: a[key])(tf.constant(A)), A[key])
same(tf.constant(A)[tf.constant([2, 0])], A[[2, 0]])
index = tf.function(
    lambda a, i: a[:, i],
    input_signature=[tf.TensorSpec([None, None], "float64"), tf.TensorSpec([None], "int32")],
)
same(index(tf.constant(A), tf.constant([-1, 0])), A[:, [-1, 0]])

with tf.GradientTape() as tape:
    v = tf.Variable(A)
    y = tf.reduce_sum(v[[0, 0]] * 2 + tf.constant(1))
assert tf.convert_to_tensor(tape.gradient(y, v)).numpy()[:, 0].tolist() == [4.0, 0.0, 0.0]

tnp.experimental_enable_numpy_behavior(prefer_float32=True)
assert tnp.array([1.0]).dtype == tf.float32 and tnp.array([1]).dtype == tf.int64
assert tnp.array(np.ones(1)).dtype == tf.float64
print("fine")

# Tensors and variables can be iterated over.
assert [float(x) for x in tf.constant([1.0, 2.0])] == [1.0, 2.0]
assert [float(x) for x in tf.Variable([1.0, 2.0])] == [1.0, 2.0]
