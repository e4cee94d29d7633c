"""Calls with ragged tensors that must give TensorFlow's results, and a script that computes these.

`python tests/ragged/cases.py` in an environment with TensorFlow writes reference.json.
"""

import json
from pathlib import Path

import numpy as np

REFERENCE = Path(__file__).with_name("reference.json")


def names(tf):
    """The names that the calls below may use."""
    rc = tf.ragged.constant
    values = tf.constant([1.0, 2, 3, 4, 5, 6, 7])

    def gradient(f):
        with tf.GradientTape() as tape:
            tape.watch(values)
            y = f(tf.RaggedTensor.from_row_splits(values, [0, 3, 3, 5, 7]))
            y = y.flat_values if hasattr(y, "flat_values") else y
            weights = tf.reshape(tf.range(tf.size(y)) + 1, tf.shape(y))
            total = tf.reduce_sum(y * tf.cast(weights, y.dtype))
        return tf.convert_to_tensor(tape.gradient(total, values))

    return {
        "tf": tf,
        "gradient": gradient,
        "np": np,
        "rc": rc,
        "RT": tf.RaggedTensor,
        "A": rc([[3, 1, 4], [1, 5], [9], [], [2, 6]]),
        "A3": rc([[1, 2, 3], [4, 5], [6], [], [7, 8]]),
        "F": rc([[3.0, 1, 4], [1, 5], [9], [], [2, 6]]),
        "B": rc([[[1, 2], [3]], [], [[4, 5, 6], [], [7]]]),
        "B3": rc([[[1, 2], [3]], [], [[4, 5, 6], [], [7]]]),
        "G": rc([[[1.0, 2], [3]], [], [[4, 5, 6], [], [7]]]),
        "C": rc([[[1, 2], [3, 4]], [], [[5, 6]]], ragged_rank=1),
        "U": tf.RaggedTensor.from_tensor([[1, 2, 3], [4, 5, 6]]),
        "V": tf.RaggedTensor.from_uniform_row_length(rc([[1], [2, 3], [], [4]]), 2),
        "S": rc([["a", "bb"], [], ["ccc"]]),
        "S3": rc([[["a"], ["bb", "c"]], [], [["d", ""]]]),
        "M": rc([[True, False], [], [True, True]]),
    }


# construction, attributes, specs
_CONSTRUCTION = r"""
RT.from_row_splits([1,2,3],[0,2,4])
RT.from_row_splits([1,2,3],[1,2,3])
RT.from_row_splits([1,2,3],[0,2,1])
RT.from_row_splits([1,2,3],[])
RT.from_row_splits([1,2,3],[[0,3]])
RT.from_row_splits([1,2,3],[0.,3.])
RT.from_row_splits([1,2,3],tf.constant([0,3],tf.int8))
RT.from_row_splits(3,[0,3])
RT.from_row_splits([1,2,3],[0,2,3],validate=3)
RT.from_row_lengths([1,2,3],[2,-1,2])
RT.from_row_lengths([1,2,3],[2,2])
RT.from_row_lengths([1,2,3],[[2,2]])
RT.from_row_starts([1,2,3],[0,2])
RT.from_row_starts([1,2,3],[1,2])
RT.from_row_starts([1,2,3],[0,2,1])
RT.from_row_starts([1,2,3],[0,4])
RT.from_row_limits([1,2,3],[0,2])
RT.from_row_limits([1,2,3],[2,3])
RT.from_row_limits([1,2,3],[-2,3])
RT.from_value_rowids([1,2,3],[0,0,2])
RT.from_value_rowids([1,2,3],[0,0,2],nrows=5)
RT.from_value_rowids([1,2,3],[0,0,2],nrows=2)
RT.from_value_rowids([1,2,3],[0,0,2],nrows=-2)
RT.from_value_rowids([1,2,3],[0,2,1])
RT.from_value_rowids([1,2,3],[0,2])
RT.from_value_rowids([1,2,3],[-1,0,2])
RT.from_value_rowids([1,2,3],[[0,0,1]])
RT.from_value_rowids([1,2,3],[0,0,1],nrows=[2])
RT.from_uniform_row_length([1,2,3,4],2)
RT.from_uniform_row_length([1,2,3,4],3)
RT.from_uniform_row_length([1,2,3,4],-2)
RT.from_uniform_row_length([1,2,3,4],[2])
RT.from_uniform_row_length([],0,nrows=3)
RT.from_uniform_row_length([],0)
RT.from_uniform_row_length([1,2],1,nrows=3)
RT.from_nested_row_splits([1,2,3],[[0,1,2],[0,2,3]])
RT.from_nested_row_splits([1,2,3],tf.constant([[0,1,2],[0,2,3]]))
RT.from_nested_row_lengths([1,2,3],[[1,1],[2,1]])
RT.from_nested_value_rowids([1,2,3],[[0,1],[0,0,1]])
RT.from_nested_value_rowids([1,2,3],[[0,1],[0,0,1]],[3,2])
RT.from_nested_value_rowids([1,2,3],[[0,1],[0,0,1]],[3])
RT([1,2],[0,1])
RT.from_row_splits(rc([[1],[2]]),tf.constant([0,2]))
RT.from_row_splits(rc([[1],[2]]),np.array([0,2],np.int32))
RT.from_row_splits(rc([[1],[2]],row_splits_dtype='int32'),[0,2]).row_splits
RT.from_row_splits([1,2,3],np.array([0,2,3],np.int32)).row_splits.dtype
RT.from_row_splits([1,2,3],tf.constant([0,2,3])).row_splits.dtype
rc([[1,[2]]])
rc([[1],2])
rc([[[1,2],[3]]],ragged_rank=1)
rc([[1,2],[3]],ragged_rank=2)
rc(3)
rc(3,ragged_rank=1)
rc(rc([[1]]))
rc([[1,2],[3]],dtype=tf.float64).dtype
rc([[1,2],[3.]]).dtype
rc([[1,2],[3]],ragged_rank=0)
rc([[1,2],[3,4]],ragged_rank=0)
rc([[[]],[]])
rc([[[]],[]]).shape
rc([[],[]],inner_shape=(2,))
rc([[1,2],[3]],inner_shape=(2,))
rc([[1,2],[3]],ragged_rank=-1)
rc([np.array([1,2]),np.array([3])])
rc(np.array([[1,2],[3,4]]))
rc([[1,2],[3]]).with_values([1,2])
rc([[1,2],[3]]).with_values([[1],[2],[3]])
rc([[1,2],[3]]).with_values(5)
rc([[1,2],[3]]).with_row_splits_dtype(tf.int32).row_splits
rc([[1,2],[3]]).with_row_splits_dtype(tf.int8)
rc([[1,2],[3]]).merge_dims(0,1)
rc([[[1,2],[3]],[]]).merge_dims(1,2)
rc([[[1,2],[3]],[]]).merge_dims(2,1)
rc([[[1,2],[3]],[]]).merge_dims(0,3)
rc([[1,2],[3]]).nrows()
rc([[1,2],[3]]).nrows(out_type=tf.int32)
rc([[[1,2],[3]],[]]).row_lengths(axis=2)
rc([[[1,2],[3]],[]]).row_lengths(axis=-1)
rc([[[1,2],[3]],[]]).nested_row_lengths()
rc([[[1,2],[3]],[]]).nested_value_rowids()
rc([[[1,2],[3]],[]]).bounding_shape(axis=[0,2])
rc([[[1,2],[3]],[]]).bounding_shape(axis=1,out_type=tf.int32)
rc([[[1,2],[3]],[]]).uniform_row_length
rc([[[1,2],[3]],[]]).name
tf.RaggedTensorSpec([None,None])
tf.RaggedTensorSpec([2,None],tf.int32,0)
tf.RaggedTensorSpec(None)
tf.RaggedTensorSpec([None,None],ragged_rank=2)
tf.RaggedTensorSpec([None,None])._component_specs
tf.RaggedTensorSpec([None,None,2],ragged_rank=1)._component_specs
tf.RaggedTensorSpec([None,None])==tf.RaggedTensorSpec([None,None])
tf.RaggedTensorSpec([None,None]).is_compatible_with(rc([[1.]]))
tf.RaggedTensorSpec([None,None]).is_compatible_with(rc([[1]]))
tf.RaggedTensorSpec([None,None])._batch(3)
tf.RaggedTensorSpec([None,None])._unbatch()
"""

# operators
_OPERATORS = r"""
rc([[1,2],[3]])+rc([[10],[20]])
rc([[1,2],[3]])+[[10],[20]]
rc([[1,2],[3]])+rc([[10,20],[20,1]])
rc([[1,2],[3]])+tf.constant([[10,20],[20,1]])
rc([[1,2],[3]])+tf.constant([10,20])
rc([[1,2],[3,4]])+tf.constant([[[1]],[[2]]])
rc([[[1,2]],[[3],[4,5]]])+tf.constant([[[1]],[[2]]])
rc([[[1,2]],[[3],[4,5]]])+rc([[1],[1,2]])
rc([[[1,2]],[[3],[4,5]]])+rc([[[1]],[[1],[1]]])
rc([[1,2],[3]])+tf.constant(1.5)
rc([[1,2],[3]])+rc([[1.,2],[3]])
1+rc([[1,2],[3]])
tf.constant(5)-rc([[1,2],[3]])
rc([[1,2],[3]])+rc([[1],[3]])
rc([[1,2],[3]])+rc([[1,2]])
rc([[1,2],[3]])+RT.from_tensor([[1],[2]])
rc([[1,2],[3]])==rc([[1,2],[4]])
rc([[1,2],[3]])==rc([[1,2]])
rc([[1,2],[3]])==None
rc([[1,2],[3]])!=3
rc([[True],[]]) & rc([[False],[]])
-rc([[1,2],[3]])
abs(rc([[1,-2],[3]]))
~rc([[True],[]])
rc([[1,2],[3]])//2
rc([[1,2],[3]])/2
rc([[1,2],[3]])%2
rc([[1,2],[3]])**2
2**rc([[1,2],[3]])
rc([[1,2],[3]])<2
rc([[1,2],[3]])@rc([[1,2],[3]])
bool(rc([[1,2],[3]]))
len(rc([[1,2],[3]]))
list(rc([[1,2],[3]]))
rc([[1,2],[3]]).row_splits
rc([[1,2],[3]]).shape
rc([[1,2],[3]]).numpy()
rc([[1,2],[3,4]]).numpy()
rc([[[1,2]],[[3],[4,5]]]).numpy()
rc([[[1,2]],[[3],[4,5]]]).to_list()
str(rc([[1,2],[3]]))
rc([[1.5,2],[3]])
rc([])
rc([[],[]])
rc([[],[]]).numpy()
rc([],ragged_rank=1)
RT.from_tensor([[1,2],[3,4]])
RT.from_tensor([[1,2],[3,4]]).shape
rc([[[1,2]],[[3,4],[4,5]]],inner_shape=(2,))
rc([[[1,2]],[[3,4],[4,5]]],ragged_rank=1)
rc([[[1,2]],[[3,4],[4,5]]],ragged_rank=1).shape
tf.convert_to_tensor(rc([[1,2],[3]]))
np.array(rc([[1,2],[3]]))
tf.constant(rc([[1,2],[3]]))
tf.is_tensor(rc([[1]]))
rc([[1]])._type_spec
tf.type_spec_from_value(rc([[1]]))
RT.from_row_splits([1,2,3],[0,2,3]).consumers()
tf.shape(rc([[1,2],[3]]))
rc([[1,2],[3]]).bounding_shape()
rc([[1,2],[3]]).row_lengths(axis=2)
"""

# slices, conversions, tf.ragged
_SLICES = r"""
A3[0]
A3[-1]
A3[4]
A3[5]
A3[-6]
A3[1:3]
A3[1:]
A3[:-1]
A3[::2]
A3[::-1]
A3[4:1:-1]
A3[10:]
A3[3:1]
A3[-2:]
A3[:,1:]
A3[:,:2]
A3[:,-1:]
A3[:,:-1]
A3[:,::2]
A3[:,::-1]
A3[:,2:0:-1]
A3[:,5:]
A3[:,-2:-1]
A3[:,::-2]
A3[1:4,1:]
A3[0,1]
A3[0,1:]
A3[0,-1]
A3[0,5]
A3[:,0]
A3[...]
A3[...,1:]
A3[...,0]
A3[0,...]
A3[:,...,1:]
A3[tf.newaxis]
A3[:,tf.newaxis]
A3[:,:,tf.newaxis]
A3[0,tf.newaxis]
A3[tf.constant(1)]
A3[tf.constant(1):tf.constant(3)]
A3[np.int64(2)]
A3[np.array(2)]
A3[1.5]
A3[1.5:2]
A3[:,1.5:]
A3[:,'a':]
A3[0,0,0]
A3[:,:,0]
A3[:,:,:]
A3[[1,2]]
A3[tf.constant([1,2])]
A3[::0]
A3[:,::0]
A3[()]
A3[None,None]
B3[0]
B3[0,0]
B3[0,0,0]
B3[0,:,0]
B3[2,:,1:]
B3[:,0]
B3[:,:1]
B3[:,:,:1]
B3[:,1:,::-1]
B3[::2,:,1:]
B3[...,1:]
B3[...,tf.newaxis]
B3[:,tf.newaxis,:]
B3[...,...]
B3[1,0]
B3[2,5]
C[0]
C[:,:,0]
C[:,:1,1]
C[...,0]
C[:,...,0]
C[...,tf.newaxis]
C[:,:,tf.newaxis]
C[:,0]
C[:,:,5]
U[:,0]
U[:,-1]
U[:,3]
U[:,-4]
U[:,1:]
U[:,::2]
U[0]
U[1:]
U[...,1]
U[::-1]
U[:,::-1]
V[:,0]
V[:,1]
V[:,1,:1]
V[:,:1]
V[1]
V.shape
A3.to_tensor()
A3.to_tensor(default_value=-1)
A3.to_tensor(shape=[None,2])
A3.to_tensor(shape=[3,None])
A3.to_tensor(shape=[7,4])
A3.to_tensor(shape=(None,2),default_value=9)
A3.to_tensor(shape=tf.constant([2,-1]))
A3.to_tensor(shape=[2])
A3.to_tensor(default_value=1.5)
A3.to_tensor(default_value=[1])
B3.to_tensor()
B3.to_tensor(default_value=-1)
B3.to_tensor(shape=[None,2,2])
C.to_tensor()
C.to_tensor(default_value=[7,8])
C.to_tensor(shape=[None,3,2])
C.to_tensor(shape=[None,3,3])
U.to_tensor()
V.to_tensor()
rc([],ragged_rank=1).to_tensor()
rc([[],[]]).to_tensor()
rc([[],[]]).to_tensor(shape=[3,2])
A3.to_sparse().indices
A3.to_sparse().values
A3.to_sparse().dense_shape
B3.to_sparse().indices
B3.to_sparse().dense_shape
C.to_sparse().indices
C.to_sparse().values
RT.from_sparse(A3.to_sparse())
RT.from_sparse(tf.SparseTensor([[0,0],[0,2]],[1,2],[2,3]))
RT.from_sparse(tf.SparseTensor([[0,1]],[1],[2,3]))
RT.from_sparse(tf.SparseTensor([[0,0,0]],[1],[2,3,3]))
RT.from_sparse(A3)
RT.from_tensor([[1,2,3],[4,5,6]],lengths=[1,3])
RT.from_tensor([[1,2,3],[4,5,6]],lengths=[1,5])
RT.from_tensor([[1,2,3],[4,5,6]],lengths=[-1,2])
RT.from_tensor([[1,2,3],[4,5,6]],lengths=[1])
RT.from_tensor([[1,2,3],[4,5,6]],lengths=2)
RT.from_tensor([[1,2,0],[4,0,0]],padding=0)
RT.from_tensor([[1,0,2],[0,0,0]],padding=0)
RT.from_tensor([[1,0,2],[0,0,0]],padding=0,lengths=[1,1])
RT.from_tensor([[[1,0],[0,0]],[[0,0],[0,0]]],padding=[0,0])
RT.from_tensor([[[1,0],[0,0]],[[0,0],[0,0]]],padding=0,ragged_rank=2)
RT.from_tensor([[[1,0],[0,0]],[[0,0],[0,0]]],ragged_rank=2)
RT.from_tensor([[[1,0],[0,0]],[[0,0],[0,0]]],ragged_rank=2).shape
RT.from_tensor([[[1,0],[0,0]],[[0,0],[0,0]]],lengths=([1,2],[1,2,0]))
RT.from_tensor([[[1,0],[0,0]],[[0,0],[0,0]]],lengths=[[1,2],[1,2,0]],ragged_rank=3)
RT.from_tensor([1,2])
RT.from_tensor([[1,2]],ragged_rank=2)
RT.from_tensor([[1,2]],ragged_rank=0)
RT.from_tensor([[1,2]],ragged_rank='a')
RT.from_tensor([[1,2]],row_splits_dtype=tf.int32)
RT.from_tensor([[1,2],[3,4]],lengths=[1,2],row_splits_dtype=tf.int32)
RT.from_tensor(tf.zeros([0,3]))
RT.from_tensor(tf.zeros([3,0]))
tf.ragged.range([0,2,8],[3,2,12],[1,1,2])
tf.ragged.range([3,5,2])
tf.ragged.range([0.,0.5],[1.,2.],0.5)
tf.ragged.range([0,5],[3,1],[1,-2])
tf.ragged.range([0,5],[3,1],0)
tf.ragged.range([0,5],[3,1,2])
tf.ragged.range(5)
tf.ragged.range(0,[3,4],row_splits_dtype=tf.int32)
tf.ragged.range([0.,3],[10.,1])
tf.ragged.range([3],[2],-1,dtype=tf.float64)
tf.ragged.range([[3]])
tf.ragged.boolean_mask([[1,2,3],[4,5,6]],[[True,False,True],[False,False,False]])
tf.ragged.boolean_mask([1,2,3],[True,False,True])
tf.ragged.boolean_mask([[1,2,3],[4,5,6]],[True,False])
tf.ragged.boolean_mask(A3,[True,False,True,True,False])
tf.ragged.boolean_mask(A3,A3>2)
tf.ragged.boolean_mask(B3,[True,False,True])
tf.ragged.boolean_mask(B3,rc([[True,False],[],[True,False,True]]))
tf.ragged.boolean_mask(B3,B3>3)
tf.ragged.boolean_mask(C,rc([[True,False],[],[True]]))
tf.ragged.boolean_mask(C,C>2)
tf.ragged.boolean_mask([[[1,2],[3,4]],[[5,6],[7,8]]],[[[True,False],[True,True]],[[False,False],[True,False]]])
tf.ragged.boolean_mask([[[1,2],[3,4]],[[5,6],[7,8]]],[[False,True],[True,True]])
tf.ragged.boolean_mask(A3,[True,False])
tf.ragged.boolean_mask(A3,rc([[True],[False]]))
tf.ragged.boolean_mask(A3,True)
tf.ragged.boolean_mask(A3,A3)
tf.ragged.boolean_mask([1,2],rc([[True,False]]))
tf.ragged.row_splits_to_segment_ids([0,3,3,5])
tf.ragged.row_splits_to_segment_ids([0,3,3,5],out_type=tf.int32)
tf.ragged.row_splits_to_segment_ids(tf.constant([0,3,3,5]))
tf.ragged.row_splits_to_segment_ids([])
tf.ragged.row_splits_to_segment_ids([[0,1]])
tf.ragged.row_splits_to_segment_ids([0.,1.])
tf.ragged.segment_ids_to_row_splits([0,0,0,2,2])
tf.ragged.segment_ids_to_row_splits([0,0,2],num_segments=5)
tf.ragged.segment_ids_to_row_splits([],num_segments=2)
tf.ragged.segment_ids_to_row_splits([0,1],out_type=tf.int32)
tf.ragged.segment_ids_to_row_splits([[0,1]])
tf.ragged.stack([[1,2],[3]])
tf.ragged.stack([A3,A3])
tf.ragged.stack([A3,A3],axis=1)
tf.ragged.stack([A3,A3],axis=2)
tf.ragged.stack([A3,A3[:2]])
tf.ragged.stack([A3,A3[:2]],axis=1)
tf.ragged.stack([[[1,2]],[[3,4]]])
tf.ragged.stack([[[1,2]],[[3,4]]],axis=1)
tf.ragged.stack([[[1,2]],[[3,4]]],axis=2)
tf.ragged.stack([1,2])
tf.ragged.stack([A3,[[1,2]]])
tf.ragged.stack([A3,[1,2]])
tf.ragged.stack([])
tf.ragged.stack([B3,B3])
tf.ragged.stack([A3],axis=0)
tf.ragged.stack(A3)
tf.ragged.stack([A3,A3],axis=5)
tf.ragged.stack([C,B3])
tf.ragged.stack_dynamic_partitions([10,20,30,40],[1,0,1,3],5)
tf.ragged.stack_dynamic_partitions([10,20],[1,0],1)
tf.ragged.stack_dynamic_partitions([10,20],[-1,0],1)
tf.ragged.stack_dynamic_partitions([[1,2],[3,4]],[[0,1],[1,0]],2)
tf.ragged.stack_dynamic_partitions(A3,[0,1,0,1,0],3)
tf.ragged.stack_dynamic_partitions(A3,A3%2,3)
tf.ragged.stack_dynamic_partitions(5,1,3)
tf.ragged.stack_dynamic_partitions([1,2],[0],3)
tf.ragged.map_flat_values(tf.add,A3,A3)
tf.ragged.map_flat_values(tf.add,A3,1)
tf.ragged.map_flat_values(tf.reduce_sum,A3)
tf.ragged.map_flat_values(lambda x: x[:2],A3)
tf.ragged.map_flat_values(tf.add,A3,B3)
tf.ragged.map_flat_values(tf.add,1,2)
tf.ragged.map_flat_values(tf.add,rc([[1,2],[3]]),rc([[1],[2,3]]))
tf.ragged.map_flat_values(tf.stack,[A3,A3],axis=1)
"""

# functions
_FUNCTIONS = r"""
tf.reduce_sum(A)
tf.reduce_sum(A,0)
tf.reduce_sum(A,1)
tf.reduce_sum(A,axis=-1)
tf.reduce_sum(A,axis=-2)
tf.reduce_sum(A,axis=2)
tf.reduce_sum(A,axis=-3)
tf.reduce_sum(A,axis=[0,1])
tf.reduce_sum(A,axis=[1])
tf.reduce_sum(A,axis=[])
tf.reduce_sum(A,axis=(0,))
tf.reduce_sum(A,axis=tf.constant([0,1]))
tf.reduce_sum(A,keepdims=True)
tf.reduce_sum(A,0,keepdims=True)
tf.reduce_sum(A,1,keepdims=True)
tf.reduce_sum(A,[0,1],keepdims=True)
tf.reduce_sum(input_tensor=A,axis=1)
tf.reduce_sum(B,0)
tf.reduce_sum(B,1)
tf.reduce_sum(B,2)
tf.reduce_sum(B,[0,1])
tf.reduce_sum(B,[1,2])
tf.reduce_sum(B,[0,2])
tf.reduce_sum(B,[0,1,2])
tf.reduce_sum(B,2,keepdims=True)
tf.reduce_sum(B,1,keepdims=True)
tf.reduce_sum(B,0,keepdims=True)
tf.reduce_sum(C,0)
tf.reduce_sum(C,1)
tf.reduce_sum(C,2)
tf.reduce_sum(C,[1,2])
tf.reduce_sum(C,2,keepdims=True)
tf.reduce_sum(U,1)
tf.reduce_sum(U,0)
tf.reduce_prod(A,1)
tf.reduce_prod(B,1)
tf.reduce_min(A,1)
tf.reduce_min(F,1)
tf.reduce_min(F,0)
tf.reduce_max(A,1)
tf.reduce_max(F,1)
tf.reduce_max(F,0)
tf.reduce_max(B,1)
tf.reduce_mean(A,1)
tf.reduce_mean(A)
tf.reduce_mean(A,0)
tf.reduce_mean(F,1)
tf.reduce_mean(F,0)
tf.reduce_mean(F,1,keepdims=True)
tf.reduce_mean(G,2)
tf.reduce_mean(G,1)
tf.reduce_mean(G,[1,2])
tf.reduce_mean(C,1)
tf.math.reduce_variance(F,1)
tf.math.reduce_variance(F)
tf.math.reduce_std(F,1)
tf.math.reduce_std(F,0)
tf.math.reduce_std(G,2)
tf.math.reduce_variance(A,1)
tf.reduce_all(M,1)
tf.reduce_all(M)
tf.reduce_all(M,0)
tf.reduce_any(M,1)
tf.reduce_any(M)
tf.reduce_any(M,0)
tf.reduce_any(M,1,keepdims=True)
tf.reduce_logsumexp(F,1)
tf.argmax(F,1)
tf.cumsum(A,1)
tf.cumsum(A,1,exclusive=True)
tf.cumsum(A,1,reverse=True)
tf.cumsum(A,-1,True,True)
tf.cumsum(A,0)
tf.cumsum(A)
tf.cumsum(B,2)
tf.cumsum(B,1)
tf.cumsum(C,2)
tf.cumsum(C,1)
tf.cumsum(A,2)
tf.nn.softmax(F)
tf.nn.softmax(F,axis=1)
tf.nn.softmax(G)
tf.nn.softmax(F,axis=0)
tf.concat([A,A],0)
tf.concat([A,A],1)
tf.concat([A,A],-1)
tf.concat([A,U],0)
tf.concat([A,tf.constant([[1,2]])],0)
tf.concat([A,tf.ones([5,2],tf.int32)],1)
tf.concat([A,tf.ones([4,2],tf.int32)],1)
tf.concat([B,B],0)
tf.concat([B,B],1)
tf.concat([B,B],2)
tf.concat([B,A],0)
tf.concat([C,C],2)
tf.concat([C,C],1)
tf.concat([C,B],0)
tf.concat([A],0)
tf.concat([A,A],2)
tf.concat(A,0)
tf.concat([A,F],0)
tf.concat([A,A,A],1)
tf.concat([A,A.with_row_splits_dtype(tf.int32)],0)
tf.concat([U,U],1)
tf.concat([U,U],0)
tf.stack([A,A])
tf.stack([A,A],axis=1)
tf.stack([A,A],1)
tf.stack([A,A],-1)
tf.stack([A,U])
tf.gather(A,[0,4,0])
tf.gather(A,[[0,4],[1,2]])
tf.gather(A,2)
tf.gather(A,[5])
tf.gather(A,[-1])
tf.gather(A,rc([[0,1],[],[4]]))
tf.gather([10,20,30],rc([[0,1],[],[2]]))
tf.gather([[1,2],[3,4]],rc([[0,1],[],[1]]))
tf.gather([[1,2],[3,4]],rc([[0,1],[],[1]]),axis=1)
tf.gather(B,[0,2])
tf.gather(B,[[0],[2]])
tf.gather(C,[0,2,2])
tf.gather(A[:2],[0],axis=1)
tf.gather(A[:2],[0,1],axis=1)
tf.gather(A[:2],0,axis=1)
tf.gather(A[:2],rc([[0],[1,0]]),batch_dims=1)
tf.gather(A[:2],[[0,0],[1,0]],batch_dims=1)
tf.gather(A[:2],[[0,0],[1,0]],axis=1,batch_dims=1)
tf.gather(A[:2],[2,1],axis=1,batch_dims=1)
tf.gather([[1,2,3],[4,5,6]],rc([[0],[1,2]]),batch_dims=1)
tf.gather(B,rc([[0],[],[2,0]]),batch_dims=1)
tf.gather(B,rc([[[0],[0,0]],[],[[2],[],[0]]]),batch_dims=2)
tf.gather(C,[1,0],axis=2)
tf.gather(A,[0],axis=3)
tf.gather(A,[0],batch_dims=2)
tf.gather(params=A,indices=[1])
tf.gather_nd(A,[[0,1],[4,0]])
tf.gather_nd(A,[[0],[4]])
tf.gather_nd(A,[0,1])
tf.gather_nd(A,[1])
tf.gather_nd(A,[[[0,1]],[[4,0]]])
tf.gather_nd(A,[[[0]],[[4]]])
tf.gather_nd(B,[[0,1],[2,0]])
tf.gather_nd(B,[[0,1,0],[2,0,2]])
tf.gather_nd(C,[[0,1,0]])
tf.gather_nd(C,[[0,1]])
tf.gather_nd(A,[[]])
tf.gather_nd(A,rc([[[0,0]],[]],ragged_rank=1,inner_shape=(2,)))
tf.gather_nd(A,rc([[0,0],[1]]))
tf.gather_nd(A,0)
tf.gather_nd([[1,2],[3,4]],rc([[[0,0]],[]],ragged_rank=1,inner_shape=(2,)))
tf.where(M)
tf.where(B>3)
tf.where(C>3)
tf.where(M,1,2)
tf.where(M,rc([[1,2],[],[3,4]]),rc([[5,6],[],[7,8]]))
tf.where(M,rc([[1,2],[],[3,4]]),0)
tf.where([[True],[False],[True]],rc([[1,2],[],[3,4]]),rc([[5,6],[],[7,8]]))
tf.where(True,rc([[1,2],[],[3,4]]),rc([[5,6],[],[7,8]]))
tf.where(M,1)
tf.where(M,rc([[1,2],[],[3]]),0)
tf.where(A>2,A,-A)
tf.where(A>2,A,[[1],[2],[3],[4],[5]])
tf.tile(A,[2,1])
tf.tile(A,[1,2])
tf.tile(A,[2,3])
tf.tile(B,[1,2,1])
tf.tile(B,[2,1,2])
tf.tile(B,[1,2,2])
tf.tile(C,[1,2,2])
tf.tile(A,[0,1])
tf.tile(A,tf.constant([1,2]))
tf.tile(A,2)
tf.expand_dims(A,0)
tf.expand_dims(A,1)
tf.expand_dims(A,2)
tf.expand_dims(A,-1)
tf.expand_dims(A,3)
tf.expand_dims(B,2)
tf.expand_dims(B,axis=3)
tf.squeeze(tf.expand_dims(A,0),0)
tf.squeeze(tf.expand_dims(A,1),1)
tf.squeeze(tf.expand_dims(A,2),[2])
tf.squeeze(A,[0])
tf.squeeze(A,[1])
tf.squeeze(A)
tf.squeeze(rc([[1],[2]]),1)
tf.squeeze(rc([[[1]]]),[0,1,2])
tf.squeeze(rc([[[1]]]),[0,1])
tf.squeeze(A,[5])
tf.squeeze(A,1.5)
tf.reverse(A,[0])
tf.reverse(A,[1])
tf.reverse(A,[0,1])
tf.reverse(A,[-1])
tf.reverse(B,[2])
tf.reverse(A,[2])
tf.reverse(A,0)
tf.reverse(A,[])
tf.size(A)
tf.size(A,out_type=tf.int64)
tf.size(B)
tf.rank(A)
tf.rank(C)
tf.shape(A)
tf.shape(A)[0]
tf.shape(A)[1]
tf.shape(C)
tf.one_hot(A,4)
tf.one_hot(A,3,axis=-1)
tf.one_hot(A,3,axis=1)
tf.one_hot(A,3,axis=2,on_value=5,off_value=1)
tf.cast(A,tf.float32)
tf.identity(A)
tf.zeros_like(A)
tf.ones_like(A)
tf.ones_like(A,dtype=tf.float32)
tf.zeros_like(A,tf.int64)
tf.split(U,3,axis=1)
tf.split(A,5)
tf.split(A,[2,3])
tf.split(A,[2,2])
tf.split(A,2)
tf.split(A,2,axis=1)
tf.split(A,1)
tf.split(A,[5])
tf.split(A,0)
tf.dynamic_partition(A,[0,1,0,1,0],2)
tf.dynamic_partition(A,A%2,2)
tf.dynamic_partition([1,2,3],rc([[0,1],[0]]),2)
tf.add_n([A,A,A])
tf.add_n([F])
tf.math.bincount(A)
tf.math.bincount(A,axis=-1)
tf.math.bincount(A,axis=0)
tf.math.bincount(A,axis=1)
tf.math.bincount(A,axis=-1,minlength=12)
tf.math.bincount(A,axis=-1,maxlength=4)
tf.math.bincount(A,axis=-1,binary_output=True)
tf.math.bincount(A,axis=-1,weights=F)
tf.math.bincount(A,weights=F)
tf.math.bincount(A,weights=[1.])
tf.math.unsorted_segment_sum(A,[0,1,0,2,2],3)
tf.math.unsorted_segment_sum(A,A%3,3)
tf.math.unsorted_segment_sum(A,[0,1,0,2,2],2)
tf.math.unsorted_segment_sum(B,[0,1,0],2)
tf.math.unsorted_segment_max(A,[0,1,0,2,2],3)
tf.math.unsorted_segment_min(A,[0,1,0,2,2],3)
tf.math.unsorted_segment_prod(A,[0,1,0,2,2],3)
tf.math.unsorted_segment_mean(F,[0,1,0,2,2],3)
tf.math.unsorted_segment_sqrt_n(F,[0,1,0,2,2],3)
tf.math.unsorted_segment_sum(A,[0.,1,0,2,2],3)
tf.math.unsorted_segment_sum([1,2],rc([[0],[1]]),3)
tf.nn.embedding_lookup([[1.,2],[3,4]],rc([[0.],[1,0]]))
tf.nn.embedding_lookup_sparse(tf.constant([[1.,2],[3,4]]),rc([[0],[1,0]]),None)
tf.nn.embedding_lookup_sparse(tf.constant([[1.,2],[3,4]]),rc([[0],[1,0]]),None,combiner='sum')
tf.nn.embedding_lookup_sparse(tf.constant([[1.,2],[3,4]]),rc([[0],[1,0]]),rc([[1.],[2.,3.]]),combiner='sqrtn')
tf.nn.embedding_lookup_sparse(tf.constant([[1.,2],[3,4]]),rc([[0],[1,0]]),rc([[1.],[2.,3.]]))
tf.matmul(rc([[[1.,2],[3,4]],[[5,6]]],ragged_rank=1),tf.ones([2,2,3]))
tf.matmul(rc([[[1.,2],[3,4]],[[5,6]]]),rc([[[1.],[2]],[[3.],[4]]]))
tf.matmul(rc([[1.,2],[3,4]]),[[1.],[2.]])
tf.matmul(rc([[1.,2],[3]]),[[1.],[2.]])
tf.matmul(rc([[[1.,2],[3,4]],[[5,6]]]),rc([[[1.,2],[2,3]],[[3.],[4]]]))
tf.matmul(rc([[[1.,2],[3,4]],[[5,6]]]),rc([[[1.,2]],[[3.,1]]]),transpose_b=True)
tf.map_fn(tf.reduce_sum,A)
tf.map_fn(lambda x: x+1,A,fn_output_signature=tf.RaggedTensorSpec([None],tf.int32))
tf.map_fn(tf.reduce_mean,F)
tf.map_fn(lambda x: x[:1],A[:2])
tf.map_fn(lambda t: t[0]*t[1],(A,tf.constant([1,2,3,4,5])),fn_output_signature=tf.RaggedTensorSpec([None],tf.int32))
tf.map_fn(lambda n: tf.range(n),tf.constant([1,0,3]),fn_output_signature=tf.RaggedTensorSpec([None],tf.int32))
tf.map_fn(lambda x: tf.reduce_sum(x,axis=-1),B,fn_output_signature=tf.RaggedTensorSpec([None],tf.int32))
tf.map_fn(lambda x: x,A)
tf.nn.dropout(F,0.)
tf.nn.dropout(F,0.5,noise_shape=[1])
tf.reshape(F,[2,4])
tf.reshape(F,[-1])
tf.ones(tf.shape(A))
tf.zeros(tf.shape(B),tf.int32)
tf.fill(tf.shape(A),7)
tf.reshape(tf.range(8),tf.shape(A))
tf.broadcast_to([[1],[2],[3],[4],[5]],tf.shape(A))
tf.broadcast_to(5,tf.shape(A))
tf.broadcast_dynamic_shape(tf.shape(A),tf.shape(tf.ones([5,1])))
tf.experimental.DynamicRaggedShape.from_lengths([2,(1,3),2])
tf.experimental.DynamicRaggedShape.from_lengths([2,(1,3),2]).rank
tf.experimental.DynamicRaggedShape.from_lengths([2,(1,3),2]).inner_shape
tf.experimental.DynamicRaggedShape.from_lengths([2,(1,3),2])[2]
tf.experimental.DynamicRaggedShape.from_lengths([2,(1,3),2])[1]
tf.experimental.DynamicRaggedShape.from_tensor([[1,2]])
tf.experimental.DynamicRaggedShape.from_tensor(B).static_lengths()
tf.experimental.DynamicRaggedShape.from_tensor(B).static_lengths(ragged_lengths=False)
tf.experimental.DynamicRaggedShape.from_lengths([2,3,2],num_row_partitions=1)
tf.experimental.DynamicRaggedShape.from_lengths([2,3,2],num_row_partitions=1).is_uniform(1)
tf.image.resize(rc([[[[1.],[2.]],[[3.],[4.]]],[[[5.]]]],ragged_rank=2),[2,2])
tf.debugging.assert_equal(A,A)
tf.debugging.assert_equal(A,A+1)
tf.debugging.assert_less(A,100)
tf.is_tensor(A)
tf.abs(A)
tf.negative(A)
tf.square(x=A)
tf.sigmoid(F)
tf.nn.relu(F)
tf.nn.leaky_relu(F,alpha=0.5)
tf.clip_by_value(F,2.,4.)
tf.math.log(F)
tf.add(A,A)
tf.add(A,1)
tf.add(1,A)
tf.add(x=A,y=1)
tf.subtract(y=A,x=1)
tf.multiply(tf.constant([[1],[2],[3],[4],[5]]),A)
tf.divide(A,2)
tf.divide(A,A)
tf.math.floormod(A,2)
tf.maximum(A,3)
tf.pow(A,2)
tf.equal(A,A)
tf.equal(A,B)
tf.not_equal(A,3)
tf.less(A,tf.constant(3))
tf.logical_and(M,M)
tf.logical_not(M)
tf.math.squared_difference(F,1.)
tf.math.xlogy(F,F)
tf.math.scalar_mul(2,A)
tf.complex(F,F).dtype
tf.bitwise.bitwise_and(A,1)
tf.math.is_nan(F)
tf.nn.sigmoid_cross_entropy_with_logits(labels=F,logits=F)
tf.constant(2)*A
tf.constant([[1],[2],[3],[4],[5]])-A
tf.constant(2)<A
tf.Variable(2)*A
tf.constant(True)&M
tf.bitcast(A,tf.float32).dtype
tf.stop_gradient(A)
tf.transpose(A)
tf.sort(A)
tf.unstack(U)
tf.linalg.norm(F)
tf.nn.l2_loss(F)
tf.argsort(A)
tf.pad(A,[[0,0],[1,1]])
tf.nn.log_softmax(F)
tf.math.top_k(F)
tf.einsum('ij->i',F)
tf.boolean_mask(A,[True,False,True,True,False])
tf.repeat(A,2,axis=0)
tf.reduce_sum([A])
tf.math.cumprod(A,1)
tf.math.segment_sum(A,[0,0,1,1,1])
tf.Variable(A)
"""

# gradients with respect to the values
_GRADIENTS = r"""
gradient(lambda r:r*r)
gradient(lambda r:tf.reduce_sum(r*r,1))
gradient(lambda r:tf.reduce_sum(r*r,0))
gradient(lambda r:tf.reduce_mean(r*r,0))
gradient(lambda r:tf.reduce_max(r,0))
gradient(lambda r:tf.reduce_prod(r,1))
gradient(lambda r:r[1:,:1]**2)
gradient(lambda r:r[:,::-1]**2)
gradient(lambda r:r[0])
gradient(lambda r:r.to_tensor()**2)
gradient(lambda r:tf.concat([r,r*2],1))
gradient(lambda r:tf.stack([r,r*2],1))
gradient(lambda r:tf.gather(r,[0,0,2]))
gradient(lambda r:tf.gather_nd(r,[[0,1],[2,0]]))
gradient(lambda r:tf.where(r>3,r*r,-r))
gradient(lambda r:tf.tile(r,[2,2]))
gradient(lambda r:tf.nn.softmax(r))
gradient(lambda r:r*tf.constant([[1.],[2],[3],[4]]))
gradient(lambda r:tf.ragged.boolean_mask(r,r>2))
gradient(lambda r:tf.cumsum(r,1))
gradient(lambda r:tf.math.reduce_std(r[:1],1))
gradient(lambda r:tf.reduce_logsumexp(r,1))
gradient(lambda r:r.to_sparse().values*2)
gradient(lambda r:tf.math.unsorted_segment_sum(r,[0,1,0,1],2))
gradient(lambda r:tf.ragged.map_flat_values(tf.square,r))
gradient(lambda r: tf.math.reduce_variance(r[:1],1))
gradient(lambda r:tf.exp(r))
gradient(lambda r:tf.expand_dims(r,1)*r[:,tf.newaxis])
gradient(lambda r:tf.nn.embedding_lookup(tf.reshape(r.flat_values,[7,1]),rc([[1,1],[3]])))
gradient(lambda r: tf.map_fn(lambda v: v*v, r))
gradient(lambda r:r.to_tensor(default_value=r.flat_values[0]))
"""

# strings, crosses
_STRINGS = r"""
S
S.to_tensor()
S.to_tensor(default_value='x')
S[0]
S[:,::-1]
S[1:]
S.flat_values
tf.concat([S,S],1)
tf.stack([S,S])
tf.gather(S,[2,0])
tf.gather(['x','y','z'],rc([[0,1],[2]]))
tf.tile(S,[1,2])
tf.where(S=='a',S,'zz')
S=='a'
S!=S
tf.equal(S,'a')
tf.expand_dims(S,1)
tf.ragged.boolean_mask(S,S!='a')
tf.strings.length(S)
tf.strings.upper(S)
tf.strings.lower(S)
tf.strings.join([S,S],'-')
tf.strings.join([S,'x'])
tf.strings.substr(S,0,1)
tf.strings.strip(S)
tf.strings.to_number(rc([['1','2'],['3']]))
tf.strings.as_string(rc([[1,2],[3]]))
tf.strings.regex_replace(S,'b','d')
tf.strings.regex_full_match(S,'b+')
tf.strings.to_hash_bucket_fast(S,10)
tf.strings.reduce_join(S,axis=1)
tf.strings.reduce_join(S,axis=1,separator='_')
tf.strings.reduce_join(S,axis=0)
tf.strings.reduce_join(S)
tf.strings.reduce_join(S3,axis=-1)
tf.strings.split(['a b','c'])
tf.strings.split('a b c')
tf.strings.split(S3)
tf.strings.split(rc([['a b','c'],[]]))
tf.strings.bytes_split(S)
tf.strings.unicode_decode(['ab','c'],'UTF-8')
tf.strings.unicode_encode(rc([[97,98],[99]]),'UTF-8')
tf.strings.unicode_split(S,'UTF-8')
tf.strings.unicode_decode(S,'UTF-8')
tf.strings.ngrams(rc([['a','b','c'],['d']]),2)
tf.strings.ngrams(['a','b','c'],2)
tf.strings.ngrams(rc([['a','b','c'],['d']]),[1,2],separator='|')
tf.ragged.cross([rc([['a'],['b','c']]),rc([['d'],['e']])])
tf.ragged.cross([rc([['a'],['b','c']]),rc([[1],[2]])])
tf.ragged.cross([['a','b']])
tf.ragged.cross_hashed([rc([['a'],['b','c']]),rc([['d'],['e']])])
tf.ragged.cross_hashed([rc([['a'],['b','c']]),rc([[1],[2]])],num_buckets=50)
S.to_list()
S.numpy()
S.dtype
RT.from_tensor([['a',''],['','']],padding='')
S.to_sparse().values
RT.from_row_splits(['x','y'],[0,1,2])
tf.RaggedTensorSpec([None,None],tf.string).is_compatible_with(S)
tf.size(S)
tf.reverse(S,[1])
tf.map_fn(tf.strings.upper,S)
tf.map_fn(lambda r: tf.strings.reduce_join(r),S,fn_output_signature=tf.string)
tf.io.decode_base64(tf.io.encode_base64(S))
tf.strings.format('{}',S)
tf.strings.format('{} {}',(S,S))
tf.strings.unicode_script(rc([[97,98],[99]]))
tf.ragged.constant([['a',b'b']])
tf.ragged.constant([['a'],['b']],dtype=tf.int32)
tf.ragged.constant([[1]],dtype=tf.string)
tf.split(RT.from_tensor([['a','b']]),2,axis=1)
tf.stack([S,S],axis=1)
tf.unique(S.flat_values)[0]
tf.reduce_sum(S)
tf.zeros_like(S)
S+S
S+'x'
'x'+S
S<S
tf.zeros(tf.shape(S),tf.int32)
tf.io.decode_raw(S,tf.uint8)
tf.data.Dataset.from_tensor_slices(S).batch(2).element_spec
list(tf.data.Dataset.from_tensor_slices(S).batch(2))
tf.debugging.assert_equal(S,S)
tf.cast(S,tf.string)
tf.identity(S)
tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(['a','bb'],[1,2]),-1).lookup(S)
tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1,2],['a','b']),'?').lookup(rc([[1],[2,3]]))
tf.strings.to_hash_bucket(S,5)
tf.strings.to_hash_bucket_strong(S,5,[1,2])
tf.nn.embedding_lookup(tf.constant([['a'],['b']]),rc([[0,1],[1]]))
tf.ragged.cross_hashed([rc([[1],[2,3]]),rc([[4,5],[6]])])
tf.ragged.cross_hashed([rc([[1],[2,3]]),[[4],[6]]],num_buckets=100)
tf.ragged.cross_hashed([rc([[1],[2,3]]),rc([[4,5],[6,7]])],hash_key=5)
tf.ragged.cross_hashed([rc([[1],[2,3]]),rc([[4,5],[6,7]]),rc([[4,5],[]])],100,2**63+9)
tf.ragged.cross_hashed([rc([[1.],[2,3]])])
tf.ragged.cross_hashed([rc([[[1]]])])
tf.ragged.cross_hashed([rc([[-1],[2,3]],row_splits_dtype=tf.int32)])
tf.ragged.cross_hashed([rc([[1],[2,3]]),rc([[4,5]])])
tf.ragged.cross_hashed(rc([[1],[2,3]]))
tf.ragged.cross_hashed([[[1,2]],[[3,4]]])
"""

CALLS = [
    line
    for part in (_CONSTRUCTION, _OPERATORS, _SLICES, _FUNCTIONS, _GRADIENTS, _STRINGS)
    for line in part.strip().split("\n")
]


def described(value):
    """A result, as JSON holds it."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, (list, tuple)):
        return [described(v) for v in value]
    if hasattr(value, "to_list"):
        types = [value.dtype.name, value.row_splits.dtype.name]
        return {
            "rows": described(value.to_list()),
            "types": types,
            "shape": value.shape.as_list(),
            "ragged_rank": value.ragged_rank,
        }
    if hasattr(value, "numpy"):
        array = np.asarray(value.numpy())
        return {"values": described(array.tolist()), "dtype": value.dtype.name, "shape": list(array.shape)}
    return value if isinstance(value, (bool, int, float)) else repr(value)


def result_of(tf, call):
    """The result of a call, or the class of its error with its base classes, any of which a program may catch."""
    try:
        return described(eval(call, names(tf)))
    except Exception as e:
        return {"error": [c.__name__ for c in type(e).__mro__]}


if __name__ == "__main__":
    import tensorflow

    found = {call: result_of(tensorflow, call) for call in CALLS}
    for result in found.values():
        if isinstance(result, dict) and "error" in result:
            result["error"] = result["error"][0]
    lines = ",\n".join(f"{json.dumps(call)}: {json.dumps(result)}" for call, result in found.items())
    REFERENCE.write_text(f"{{\n{lines}\n}}\n")
