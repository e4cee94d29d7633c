"""tf.random: stateless functions number by number, the others by shape and type; tf.math.sobol_sample."""

CALLS = """
tf.random.stateless_uniform([2, 3], seed=[1, 2])
tf.random.stateless_uniform([5], [1, 2], minval=-1.0, maxval=3.0)
tf.random.stateless_uniform([5], [1, 2], dtype=tf.float64)
tf.random.stateless_uniform([5], [1, 2], dtype=tf.float16)
tf.random.stateless_uniform([5], [1, 2], 0, 10, tf.int32)
tf.random.stateless_uniform([5], [1, 2], minval=-5, maxval=10, dtype=tf.int64)
tf.random.stateless_uniform([5], [1, 2], minval=None, maxval=None, dtype=tf.int32)
tf.random.stateless_uniform([5], [1, 2], minval=None, dtype=tf.uint32)
tf.random.stateless_uniform([], l([3, 4]))
tf.random.stateless_uniform([0, 2], [1, 2])
tf.random.stateless_uniform([5], i([3, 4]), alg="philox")
tf.random.stateless_uniform([5], [3, 4], alg="threefry")
tf.random.stateless_uniform([2, 3], [1, 2], f(3), f(2, 1))
tf.random.stateless_uniform([5], [1])
tf.random.stateless_uniform([5], 1)
tf.random.stateless_uniform([5], [1.0, 2.0])
tf.random.stateless_uniform([5], [1, 2], dtype=tf.int32)
tf.random.stateless_uniform([5], [1, 2], 5, 5, dtype=tf.int32)
tf.random.stateless_uniform([-1], [1, 2])
tf.random.stateless_uniform([5], [1, 2], dtype=tf.bool)
tf.random.stateless_uniform([5], [1, 2], alg="no")
tf.random.stateless_normal([2, 3], seed=[1, 2])
tf.random.stateless_normal([7], [1, 2], mean=1.0, stddev=2.0, dtype=tf.float64)
tf.random.stateless_normal([7], [1, 2], f(7), f())
tf.random.stateless_normal([7], [1, 2], dtype=tf.float16)
tf.random.stateless_normal([7], [1, 2], dtype=tf.bfloat16)
tf.random.stateless_normal([7], [1, 2], dtype=tf.int32)
tf.random.stateless_normal([0], [1, 2])
tf.random.stateless_normal([7], [1, 2, 3])
tf.random.stateless_truncated_normal([20], seed=[1, 2])
tf.random.stateless_truncated_normal([20], [1, 2], 1.0, 2.0, tf.float64)
tf.random.stateless_truncated_normal([20], [1, 2], f(20), 2.0, dtype)
tf.random.stateless_parameterized_truncated_normal([7], [1, 2], 0.0, 1.0, -1.0, 1.0)
tf.random.stateless_parameterized_truncated_normal([7], [1, 2], means=f(7), stddevs=2.0, minvals=-5.0, maxvals=5.0)
tf.random.stateless_gamma([7], [1, 2], alpha=0.5)
tf.random.stateless_gamma([7], [1, 2], alpha=3.5, beta=2.0)
tf.random.stateless_gamma([3, 2], [1, 2], alpha=v([0.5, 2.5]), dtype=dtype)  #: first
tf.random.stateless_gamma([3, 2], [1, 2], alpha=v([0.5, 2.5]), beta=v([1.0, 3.0]), dtype=dtype)  #: first
tf.random.stateless_gamma([3], [1, 2], alpha=[0.5, 2.5])
tf.random.stateless_poisson([7], [1, 2], lam=3.0)
tf.random.stateless_poisson([7, 2], [1, 2], lam=[0.5, 30.0], dtype=tf.float32)
tf.random.stateless_poisson([7], [1, 2], lam=-3.0)
tf.random.stateless_binomial([7], [1, 2], counts=10.0, probs=0.3)
tf.random.stateless_binomial([7], [1, 2], counts=1000.0, probs=0.3, output_dtype=tf.float32)
tf.random.stateless_binomial([3, 2], [1, 2], counts=[10.0, 40.0], probs=[0.3, 0.9])
tf.random.stateless_categorical(f(2, 5), 6, seed=[1, 2])
tf.random.stateless_categorical([[0.1, 0.9]], 4, [1, 2], dtype=tf.int32)
tf.random.stateless_categorical(f(5), 6, [1, 2])
tf.random.stateless_categorical(f(2, 0), 6, [1, 2])
tf.random.experimental.stateless_shuffle(f(6), seed=[1, 2])
tf.random.experimental.stateless_shuffle(f(6, 2), [3, 4])
tf.random.experimental.stateless_shuffle(i([1, 2, 3]), [1, 2])
tf.random.<split|experimental.stateless_split>([1, 2])
tf.random.<split|experimental.stateless_split>(l([1, 2]), num=3)
tf.random.<split|experimental.stateless_split>([1])
tf.random.<fold_in|experimental.stateless_fold_in>([1, 2], 3)
tf.random.<fold_in|experimental.stateless_fold_in>(l([1, 2]), i(7))
tf.random.<fold_in|experimental.stateless_fold_in>([1], 3)
tf.random.<create_rng_state|experimental.create_rng_state>(1, "philox")
tf.random.<create_rng_state|experimental.create_rng_state>(1, "threefry")
tf.random.<create_rng_state|experimental.create_rng_state>([1, 2], 1)
tf.random.<create_rng_state|experimental.create_rng_state>(1, "no")
tf.random.Generator.from_seed(1).normal([5])
tf.random.Generator.from_seed(1).normal([5], 1.0, 2.0, tf.float64)
tf.random.Generator.from_seed(1).uniform([5])
tf.random.Generator.from_seed(1).uniform([5], 0, 10, tf.int32)
tf.random.Generator.from_seed(1).uniform_full_int([5])
tf.random.Generator.from_seed(1).truncated_normal([5])
tf.random.Generator.from_seed(1).binomial([5], 10.0, 0.5)
tf.random.Generator.from_seed(1).make_seeds(3)
tf.random.Generator.from_seed(1).split(2)[1].normal([3])
tf.random.Generator.from_seed(1).state
tf.random.Generator.from_seed(1).key
tf.random.Generator.from_state([1, 2, 3], "philox").uniform([3])
tf.random.Generator.from_state([1, 2], "philox")
tf.random.Generator.from_seed(1, alg="no")
tf.random.normal([2, 3])  #: random
tf.random.normal([2, 3], 1.0, 2.0, tf.float64, seed=3)  #: random
tf.random.normal([2, 3], mean=f(3), dtype=dtype)  #: random
tf.random.normal([2, 3], dtype=tf.int32)
tf.random.normal([-2])
tf.random.normal(f(2))
tf.random.uniform([2, 3])  #: random
tf.random.uniform([], 0, 5, tf.int64)  #: random
tf.random.uniform([2], maxval=f(2, lo=1.0), dtype=dtype)  #: random
tf.random.uniform([2], dtype=tf.int32)
tf.random.uniform([2], 3, 3, dtype=tf.int32)
tf.random.uniform([2], dtype=tf.bool)
tf.random.uniform(None)
tf.random.truncated_normal([4])  #: random
tf.random.truncated_normal([4], dtype=tf.int32)
tf.random.gamma([3], [0.5, 2.0])  #: random
tf.random.gamma([], f(2, 3, lo=0.5), beta=f(3, lo=0.5), dtype=dtype)  #: random
tf.random.gamma([3], 1, dtype=tf.int32)
tf.random.poisson([3], [0.5, 2.0])  #: random
tf.random.poisson([], 2.0, dtype=tf.int32)  #: random
tf.random.poisson([2], -2.0)
tf.random.categorical(f(2, 3), 4)  #: random
tf.random.categorical([[1.0, 2.0]], 4, dtype=tf.int32)  #: random
tf.random.categorical(f(3), 4)
tf.random.categorical(f(2, 3), -4)
tf.random.shuffle(f(4, 2))  #: random
tf.random.shuffle([1, 2])  #: random
tf.random.shuffle(f())
tf.math.sobol_sample(3, 5)
tf.math.sobol_sample(2, 4, skip=3, dtype=tf.float64)
tf.math.sobol_sample(0, 4)
tf.math.sobol_sample(2, 0)
"""
