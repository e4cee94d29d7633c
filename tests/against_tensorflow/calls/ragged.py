"""Ragged tensors: rows of different lengths."""

CALLS = """
# ---- making
tf.ragged.constant([[1, 2], [], [3]])
tf.ragged.constant([[[1.0], [2.0, 3.0]], []])
tf.ragged.constant([[1, 2], [3]], dtype=tf.float64)
tf.ragged.constant([[[1, 2]], [[3, 4], [5, 6]]], ragged_rank=1)
tf.ragged.constant([1, [2]])
tf.RaggedTensor.from_row_splits(f(4), [0, 1, 1, 4])
tf.RaggedTensor.from_row_splits(f(4), [0, 3, 1, 4])
tf.RaggedTensor.from_row_splits(f(4), [1, 4])
tf.RaggedTensor.from_row_splits(f(4), [0, 3])
tf.RaggedTensor.from_row_lengths(f(4), [1, 0, 3])
tf.RaggedTensor.from_row_lengths(f(4), [1, 0, 2])
tf.RaggedTensor.from_row_lengths(f(4), [-1, 5])
tf.RaggedTensor.from_value_rowids(f(4), [0, 0, 2, 3], 5)
tf.RaggedTensor.from_value_rowids(f(4), [0, 2, 1, 3])
tf.RaggedTensor.from_row_starts(f(4), [0, 1, 4])
tf.RaggedTensor.from_row_limits(f(4), [1, 1, 4])
tf.RaggedTensor.from_uniform_row_length(f(4), 2)
tf.RaggedTensor.from_uniform_row_length(f(4), 3)
tf.RaggedTensor.from_tensor(v([[1, 0], [2, 3]]), lengths=[1, 2])
tf.RaggedTensor.from_tensor(v([[1, 0], [2, 3]]), padding=0.0)
tf.ragged.range([1, 2, 3])
tf.ragged.range([0, 5], [3, 8], 2)
tf.ragged.row_splits_to_segment_ids([0, 2, 2, 5])
tf.ragged.segment_ids_to_row_splits([0, 0, 2, 3])
tf.ragged.stack([[1, 2], [3]])
tf.ragged.boolean_mask([[1, 2], [3, 4]], [[True, False], [True, True]])
tf.ragged.map_flat_values(tf.sin, tf.RaggedTensor.from_row_splits(f(4), [0, 1, 4]))
tf.ragged.stack_dynamic_partitions([1, 2, 3], [0, 2, 0], 3)
tf.ragged.cross([tf.ragged.constant([["a"], ["b", "c"]]), tf.ragged.constant([["d"], ["e"]])])
tf.ragged.cross_hashed([tf.ragged.constant([["a"], ["b", "c"]]), tf.ragged.constant([["d"], ["e"]])], num_buckets=100)
# ---- parts
tf.RaggedTensor.from_row_splits(f(4), [0, 1, 1, 4])[0]
tf.RaggedTensor.from_row_splits(f(4), [0, 1, 1, 4])[2, 1:]
tf.RaggedTensor.from_row_splits(f(4), [0, 1, 1, 4])[::-1]
tf.RaggedTensor.from_row_splits(f(4), [0, 1, 1, 4])[:, :2]
tf.RaggedTensor.from_row_splits(f(4), [0, 1, 1, 4])[:, -1:]
tf.RaggedTensor.from_row_splits(f(4), [0, 1, 1, 4])[5]
tf.RaggedTensor.from_row_splits(f(4), [0, 1, 1, 4])[:, 0]
tf.RaggedTensor.from_row_splits(f(4), [0, 1, 1, 4]).to_tensor() #: of=RaggedTensor.to_tensor
tf.RaggedTensor.from_row_splits(f(4), [0, 1, 1, 4]).to_tensor(-1.0) #: of=RaggedTensor.to_tensor
tf.RaggedTensor.from_row_splits(f(4), [0, 1, 4]).to_tensor(shape=[None, 2]) #: of=RaggedTensor.to_tensor
tf.RaggedTensor.from_row_splits(f(4), [0, 1, 4]).to_sparse() #: of=RaggedTensor.to_sparse
tf.RaggedTensor.from_row_splits(f(4), [0, 1, 4]).bounding_shape() #: of=RaggedTensor.bounding_shape
tf.RaggedTensor.from_row_splits(f(4), [0, 1, 4]).row_lengths() #: of=RaggedTensor.row_lengths
tf.RaggedTensor.from_row_splits(f(4), [0, 1, 4]).value_rowids() #: of=RaggedTensor.value_rowids
# ---- element by element
tf.RaggedTensor.from_row_splits(f(4), [0, 1, 4]) + 1.0 #: of=RaggedTensor.__add__
tf.RaggedTensor.from_row_splits(f(4), [0, 1, 4]) * v([[2.0], [3.0]]) #: of=RaggedTensor.__mul__
tf.RaggedTensor.from_row_splits(f(4), [0, 1, 4]) + tf.RaggedTensor.from_row_splits(f(4), [0, 2, 4]) #: of=RaggedTensor.__add__
tf.exp(tf.RaggedTensor.from_row_splits(f(4), [0, 1, 4]))
tf.add(f(1), tf.RaggedTensor.from_row_splits(f(4), [0, 1, 4]))
tf.maximum(tf.RaggedTensor.from_row_splits(f(4), [0, 1, 4]), 0.0)
tf.cast(tf.ragged.constant([[1, 2], [3]]), tf.float32)
tf.where(tf.ragged.constant([[True], [False, True]]), tf.ragged.constant([[1], [2, 3]]), tf.ragged.constant([[4], [5, 6]]))
# ---- reductions
tf.reduce_sum(tf.RaggedTensor.from_row_splits(f(4), [0, 1, 1, 4]), 1)
tf.reduce_sum(tf.RaggedTensor.from_row_splits(f(4), [0, 1, 1, 4]), 0)
tf.reduce_sum(tf.RaggedTensor.from_row_splits(f(4), [0, 1, 1, 4]))
tf.reduce_mean(tf.RaggedTensor.from_row_splits(f(4), [0, 1, 4]), 1)
tf.reduce_max(tf.RaggedTensor.from_row_splits(f(4), [0, 1, 1, 4]), 1)
tf.reduce_prod(tf.RaggedTensor.from_row_splits(f(4), [0, 1, 4]), 1, keepdims=True)
tf.reduce_any(tf.ragged.constant([[True, False], [False]]), 1)
tf.reduce_sum(tf.RaggedTensor.from_row_splits(f(4), [0, 1, 4]), 2)
# ---- joining and moving
tf.concat([tf.ragged.constant([[1], [2, 3]]), tf.ragged.constant([[4, 5], [6]])], 1)
tf.concat([tf.ragged.constant([[1], [2, 3]]), tf.ragged.constant([[4, 5]])], 0)
tf.stack([tf.ragged.constant([[1], [2, 3]]), tf.ragged.constant([[4, 5], []])])
tf.gather(tf.RaggedTensor.from_row_splits(f(4), [0, 1, 4]), [1, 0, 1])
tf.gather(f(4), tf.ragged.constant([[0], [3, 1]]))
tf.tile(tf.ragged.constant([[1], [2, 3]]), [1, 2])
tf.expand_dims(tf.ragged.constant([[1], [2, 3]]), 0)
tf.reverse(tf.ragged.constant([[1], [2, 3]]), [1])
tf.size(tf.ragged.constant([[1], [2, 3]]))
tf.rank(tf.ragged.constant([[1], [2, 3]]))
tf.ones_like(tf.ragged.constant([[1.0], [2.0, 3.0]]))
"""
