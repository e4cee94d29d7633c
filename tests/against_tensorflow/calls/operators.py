"""Operators and methods of tensors, and indexing."""

CALLS = """
f(2, 3) + f(3)  #: of=Tensor.__add__ half
f(2, 3) - f(3)  #: of=Tensor.__sub__
f(2, 3) * f(3)  #: of=Tensor.__mul__
f(2, 3) / f(3, lo=0.5)  #: of=Tensor.__truediv__
f(2, 3) // f(3, lo=0.5)  #: of=Tensor.__floordiv__
f(2, 3) % f(3, lo=0.5)  #: of=Tensor.__mod__
f(2, 3, lo=0.5) ** f(3)  #: of=Tensor.__pow__
f(2, 3) @ f(3, 2)  #: of=Tensor.__matmul__
f(2, 3) @ f(3)  #: of=Tensor.__matmul__
[[1.0, 2.0]] @ f(2, 3)  #: of=Tensor.__matmul__
1 + f(2)  #: of=Tensor.__radd__
1.5 - f(2)  #: of=Tensor.__rsub__
2 * f(2)  #: of=Tensor.__rmul__
2 / f(2, lo=0.5)  #: of=Tensor.__rtruediv__
7 // i([2, 3])  #: of=Tensor.__rfloordiv__
7 % i([2, 3])  #: of=Tensor.__rmod__
2 ** f(2)  #: of=Tensor.__rpow__
[1.0, 2.0] + f(2)  #: of=Tensor.__radd__
np.ones(2, np.float32) * f(2)  #: of=Tensor.__rmul__
f(2) * np.ones(2)  #: of=Tensor.__mul__
i([1, 2]) + 1.5  #: of=Tensor.__add__
i([1, 2]) + f(2)  #: of=Tensor.__add__
i([1, 2]) / 2  #: of=Tensor.__truediv__
i([1, 2]) / i([2, 4])  #: of=Tensor.__truediv__
i([7, -7]) // 2  #: of=Tensor.__floordiv__
i([7, -7]) % 3  #: of=Tensor.__mod__
i([2, 3]) ** 2  #: of=Tensor.__pow__
f(2) + None  #: of=Tensor.__add__
f(2) + "text"  #: of=Tensor.__add__
f(2) + f(3)  #: of=Tensor.__add__
f(2) + True  #: of=Tensor.__add__
b([True]) + b([True])  #: of=Tensor.__add__
b([True, False]) & b([True, True])  #: of=Tensor.__and__
b([True, False]) | b([False, False])  #: of=Tensor.__or__
b([True, False]) ^ b([True, True])  #: of=Tensor.__xor__
~b([True, False])  #: of=Tensor.__invert__
i([5]) & i([3])  #: of=Tensor.__and__
i([5]) | 3  #: of=Tensor.__or__
~i([5])  #: of=Tensor.__invert__
f(2) & f(2)  #: of=Tensor.__and__
~f(2)  #: of=Tensor.__invert__
-f(2)  #: of=Tensor.__neg__
-b([True])  #: of=Tensor.__neg__
abs(f(2))  #: of=Tensor.__abs__
f(2) < f(2)  #: of=Tensor.__lt__
f(2) >= 0  #: of=Tensor.__ge__
f(2) == f(2)  #: of=Tensor.__eq__
f(2) == f(3)  #: of=Tensor.__eq__
f(2) != f(3)  #: of=Tensor.__ne__
f(2) == None  #: of=Tensor.__eq__
f(2) == "text"  #: of=Tensor.__eq__
f(2) == i([1, 2])  #: of=Tensor.__eq__
f(2) < i([1, 2])  #: of=Tensor.__lt__
i([1, 2]) == [1, 3]  #: of=Tensor.__eq__
bool(v([1.0]))  #: of=Tensor.__bool__
bool(f(2))  #: of=Tensor.__bool__
float(v(1.5))  #: of=Tensor.__float__
int(v(1.5))  #: of=Tensor.__int__
int(f(2))  #: of=Tensor.__int__
len(f(2, 3))  #: of=Tensor.__len__
len(f())  #: of=Tensor.__len__
[x for x in f(2, 3)]  #: of=Tensor.__iter__
[x for x in f()]  #: of=Tensor.__iter__
list(range(i(3)))  #: of=Tensor.__index__
[0, 1, 2][i(1)]  #: of=Tensor.__index__
[0, 1, 2][f()]  #: of=Tensor.__index__
hash(f())  #: of=Tensor.__hash__
f(2, 3)[0]  #: of=Tensor.__getitem__
f(2, 3)[-1, 1]  #: of=Tensor.__getitem__
f(2, 3)[:, 1:]  #: of=Tensor.__getitem__
f(5)[::2]  #: of=Tensor.__getitem__
f(5)[::-1]  #: of=Tensor.__getitem__
f(5)[4:0:-2]  #: of=Tensor.__getitem__
f(2, 3)[..., 0]  #: of=Tensor.__getitem__
f(2, 3)[:, tf.newaxis]  #: of=Tensor.__getitem__
f(2, 3)[None, ..., None]  #: of=Tensor.__getitem__
f(2, 3, 4)[1, ..., ::2]  #: of=Tensor.__getitem__
f(5)[i(2)]  #: of=Tensor.__getitem__
f(5)[i(1) : i(3)]  #: of=Tensor.__getitem__
f(5)[2:2]  #: of=Tensor.__getitem__
f(5)[3:99]  #: of=Tensor.__getitem__
f(5)[7]  #: of=Tensor.__getitem__
f(5)[-6]  #: of=Tensor.__getitem__
f(2, 3)[0, 0, 0]  #: of=Tensor.__getitem__
f(5)[1.0]  #: of=Tensor.__getitem__
f(5)["a"]  #: of=Tensor.__getitem__
f(5)[[0, 1]]  #: of=Tensor.__getitem__
f(5)[i([0, 1])]  #: of=Tensor.__getitem__
f(5)[b([True, False, True, False, True])]  #: of=Tensor.__getitem__
f(2, 3)[f(2, 3) > 0]  #: of=Tensor.__getitem__
f(5)[::0]  #: of=Tensor.__getitem__
f()[0]  #: of=Tensor.__getitem__
f()[...]  #: of=Tensor.__getitem__
f(0, 3)[:, 0]  #: of=Tensor.__getitem__
f(2, 3)[..., ...]  #: of=Tensor.__getitem__
f(5)[np.int64(2)]  #: of=Tensor.__getitem__
f(5)[True]  #: of=Tensor.__getitem__
f(2, 3).shape  #: of=Tensor.shape
f(2, 3).dtype  #: of=Tensor.dtype
f(2, 3).numpy()  #: of=Tensor.numpy value
f(2, 3).get_shape()  #: of=Tensor.get_shape
f(2, 3).ndim  #: of=Tensor.ndim
f(2, 3).reshape([3, 2])  #: of=Tensor.reshape
f(2, 3).T  #: of=Tensor.T
f(2, 3).set_shape([2, 3])  #: of=Tensor.set_shape
f(2, 3).set_shape([2, 4])  #: of=Tensor.set_shape
f(2, 3).nonsense  #: of=Tensor.__getattr__
tf.Variable([1.0, 2.0]) + f(2)  #: of=Variable.__add__ float32
tf.Variable([1.0, 2.0])[0]  #: of=Variable.__getitem__
tf.Variable([1.0, 2.0]).assign([3.0, 4.0])  #: of=Variable.assign
tf.Variable([1.0, 2.0]).assign([3.0])  #: of=Variable.assign
tf.Variable([1.0, 2.0]).assign_add([3.0, 1.0])  #: of=Variable.assign_add
tf.Variable([1.0, 2.0]).assign_sub(1.0)  #: of=Variable.assign_sub
tf.Variable([1.0, 2.0]).scatter_add(tf.IndexedSlices([5.0], [1]))  #: of=Variable.scatter_add
tf.Variable([1.0, 2.0]).scatter_update(tf.IndexedSlices([5.0], [0]))  #: of=Variable.scatter_update
tf.Variable([1.0, 2.0]).scatter_nd_update([[0]], [7.0])  #: of=Variable.scatter_nd_update
tf.Variable([1.0, 2.0]).gather_nd([[1]])  #: of=Variable.gather_nd
tf.Variable([1.0, 2.0]).sparse_read([1])  #: of=Variable.sparse_read
tf.Variable([1, 2], dtype=tf.float64).value()  #: of=Variable.value
tf.Variable(1.0, dtype=tf.int32)  #: of=Variable
tf.Variable(None)  #: of=Variable
tf.Variable([1.0], shape=[2])  #: of=Variable
tf.Variable()  #: of=Variable
"""
