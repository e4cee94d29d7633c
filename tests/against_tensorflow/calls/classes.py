"""Classes that are used like functions: linear operators, initializers, tensor arrays, shapes, IndexedSlices."""

CALLS = """
tf.linalg.LinearOperatorFullMatrix(m(3, 3)).<to_dense|determinant|log_abs_determinant|diag_part|trace|inverse|adjoint|cond>()
tf.linalg.LinearOperatorFullMatrix(m(2, 3, 3)).matmul(f(2, 3, 2))
tf.linalg.LinearOperatorFullMatrix(m(3, 3)).matvec(f(3))
tf.linalg.LinearOperatorFullMatrix(m(3, 3)).solve(f(3, 2))
tf.linalg.LinearOperatorFullMatrix(m(3, 3)).solvevec(f(3), adjoint=True)
tf.linalg.LinearOperatorFullMatrix(m(3, 3)).add_to_tensor(f(3, 3))
tf.linalg.LinearOperatorFullMatrix(spd(3, 3), is_self_adjoint=True, is_positive_definite=True).cholesky().to_dense()
tf.linalg.LinearOperatorFullMatrix(f(3))
tf.linalg.LinearOperatorFullMatrix(m(3, 3)).matmul(f(2, 2))
tf.linalg.LinearOperatorDiag(f(3, lo=1.0)).<to_dense|determinant|log_abs_determinant|diag_part|trace|cond>()
tf.linalg.LinearOperatorDiag(f(2, 3, lo=1.0)).matmul(f(2, 3, 2))
tf.linalg.LinearOperatorDiag(f(3, lo=1.0)).solve(f(3, 2), adjoint=True)
tf.linalg.LinearOperatorDiag(f(3, lo=1.0)).inverse().to_dense()
tf.linalg.LinearOperatorDiag(f(3)).shape
tf.linalg.LinearOperatorDiag(f())
tf.linalg.LinearOperatorLowerTriangular(m(3, 3)).<to_dense|determinant|log_abs_determinant|diag_part>()
tf.linalg.LinearOperatorLowerTriangular(m(3, 3)).solve(f(3, 2))
tf.linalg.LinearOperatorLowerTriangular(m(3, 3)).matmul(f(3, 2), adjoint=True)
tf.linalg.LinearOperatorIdentity(3).<to_dense|determinant|diag_part|trace>()
tf.linalg.LinearOperatorIdentity(2, batch_shape=[2]).matmul(f(2, 2, 1, lo=1.0))  #: float32
tf.linalg.LinearOperatorScaledIdentity(3, f(lo=1.0)).<to_dense|determinant|log_abs_determinant|trace>()
tf.linalg.LinearOperatorScaledIdentity(3, f(2, lo=1.0)).solve(f(2, 3, 1))
tf.linalg.LinearOperatorZeros(3).<to_dense|determinant|trace>()
tf.linalg.LinearOperatorZeros(3).solve(f(3, 1))
tf.linalg.LinearOperatorComposition([tf.linalg.LinearOperatorDiag(f(3, lo=1.0)), tf.linalg.LinearOperatorFullMatrix(m(3, 3))]).<to_dense|determinant|diag_part>()
tf.linalg.LinearOperatorComposition([tf.linalg.LinearOperatorDiag(f(3, lo=1.0)), tf.linalg.LinearOperatorFullMatrix(m(3, 3))]).solve(f(3, 2))
tf.linalg.LinearOperatorKronecker([tf.linalg.LinearOperatorFullMatrix(m(2, 2)), tf.linalg.LinearOperatorDiag(f(3, lo=1.0))]).<to_dense|determinant|diag_part|trace>()
tf.linalg.LinearOperatorKronecker([tf.linalg.LinearOperatorFullMatrix(m(2, 2)), tf.linalg.LinearOperatorDiag(f(3, lo=1.0))]).solve(f(6, 1))
tf.linalg.LinearOperatorBlockDiag([tf.linalg.LinearOperatorFullMatrix(m(2, 2)), tf.linalg.LinearOperatorDiag(f(3, lo=1.0))]).<to_dense|determinant|diag_part|trace>()
tf.linalg.LinearOperatorBlockDiag([tf.linalg.LinearOperatorFullMatrix(m(2, 2)), tf.linalg.LinearOperatorDiag(f(3, lo=1.0))]).matmul(f(5, 1))
tf.linalg.LinearOperatorBlockLowerTriangular([[tf.linalg.LinearOperatorFullMatrix(m(2, 2))], [tf.linalg.LinearOperatorFullMatrix(f(3, 2)), tf.linalg.LinearOperatorDiag(f(3, lo=1.0))]]).to_dense()
tf.linalg.LinearOperatorLowRankUpdate(tf.linalg.LinearOperatorDiag(f(3, lo=1.0)), f(3, 1), f(1, lo=1.0)).<to_dense|determinant|diag_part|trace>()
tf.linalg.LinearOperatorLowRankUpdate(tf.linalg.LinearOperatorDiag(f(3, lo=1.0)), f(3, 1)).solve(f(3, 1))
tf.linalg.LinearOperatorHouseholder(f(3)).<to_dense|determinant|trace>()
tf.linalg.LinearOperatorHouseholder(f(3)).matmul(f(3, 2))
tf.linalg.LinearOperatorPermutation(i([2, 0, 1]), dtype=dtype).<to_dense|determinant|diag_part>()
tf.linalg.LinearOperatorPermutation(i([2, 0, 1]), dtype=dtype).solve(f(3, 1))
tf.linalg.LinearOperatorTridiag([f(3, lo=1.0), f(3, lo=4.0, hi=6.0), f(3)], diagonals_format="sequence").<to_dense|diag_part>()
tf.linalg.LinearOperatorTridiag(f(3, 4), diagonals_format="compact").matmul(f(4, 1))
tf.linalg.LinearOperatorToeplitz(f(3), f(3)).<to_dense|diag_part|trace>()
tf.linalg.LinearOperatorToeplitz(f(3), f(3)).matmul(f(3, 2))
tf.linalg.LinearOperatorCirculant(c(4)).<to_dense|determinant>()  #: first
tf.linalg.LinearOperatorCirculant2D(c(2, 3)).to_dense()  #: first
tf.linalg.LinearOperatorCirculant3D(c(2, 2, 2)).to_dense()  #: first
tf.linalg.LinearOperatorAdjoint(tf.linalg.LinearOperatorFullMatrix(m(3, 3))).<to_dense|determinant>()
tf.linalg.LinearOperatorInversion(tf.linalg.LinearOperatorFullMatrix(m(3, 3))).<to_dense|determinant>()
tf.zeros_initializer()([2, 3])
tf.ones_initializer()([2], dtype=tf.int32)
tf.constant_initializer(3.0)([2, 3])
tf.constant_initializer([1, 2])([2], tf.int64)
tf.constant_initializer([1, 2])([3])
tf.random_normal_initializer(0.0, 1.0, seed=1)([2, 3])  #: random
tf.random_uniform_initializer(-1.0, 1.0)([2, 3])  #: random
tf.random_uniform_initializer()([2], dtype=tf.int32)  #: random
tf.initializers.<GlorotUniform|HeNormal|LecunUniform|Orthogonal|TruncatedNormal>()([3, 4])  #: random
tf.initializers.Identity(2.0)([3, 3])
tf.initializers.VarianceScaling(2.0, "fan_in", "uniform")([3, 4])  #: random
tf.TensorArray(tf.float32, 3).write(0, f(2)).write(1, f(2)).write(2, f(2)).stack()  #: float32
tf.TensorArray(tf.float32, 2).unstack(f(2, 3)).read(1)  #: float32
tf.TensorArray(tf.float32, 2).unstack(f(2, 3)).concat()  #: float32
tf.TensorArray(tf.float32, 2).unstack(f(3, 2)).gather([2, 0])  #: float32
tf.TensorArray(tf.float32, 2).split(f(5), [2, 3]).read(1)  #: float32
tf.TensorArray(tf.float32, 0, dynamic_size=True).write(1, f(2)).size()  #: float32
tf.TensorArray(tf.float32, 2).write(5, f(2))  #: float32
tf.TensorArray(tf.float32, 2).read(0)  #: float32
tf.TensorArray(tf.float32, 2).write(0, i([1]))  #: float32
tf.TensorShape([2, None, 3]).as_list()
tf.TensorShape([2, 3]).num_elements()
tf.TensorShape([2, 3]).concatenate([4])
tf.TensorShape([2, None]).merge_with([2, 3])
tf.TensorShape([2, None]).merge_with([3, 3])
tf.TensorShape([2, 3])[1:]
tf.TensorShape(None).rank
tf.TensorShape([2, 3]) == [2, 3]
tf.TensorShape([2, 3]).is_compatible_with([None, 3])
tf.TensorShape([2, 3]).assert_is_compatible_with([4])
tf.TensorShape("a")
tf.TensorShape([-1])
tf.IndexedSlices(f(2, 3), i([0, 2]), i([4, 3])).shape
tf.IndexedSlices(f(2, 3), i([0, 2])).dense_shape
tf.math.negative(tf.IndexedSlices(f(2, 3), i([0, 2]), i([4, 3])))
tf.scalar_mul(2.0, tf.IndexedSlices(f(2, 3), i([0, 2]), i([4, 3])))
tf.math.add(tf.IndexedSlices(f(2, 3), i([0, 2]), i([4, 3])), f(4, 3))
tf.add_n([tf.IndexedSlices(f(2, 3), i([0, 2]), i([4, 3])), f(4, 3)])
tf.TensorSpec([2, None], tf.float32).is_compatible_with(tf.ones([2, 3]))
tf.TensorSpec([2], tf.float32).is_compatible_with(tf.ones([2], tf.int32))
tf.UnconnectedGradients("zero").value
tf.UnconnectedGradients("no")
"""
