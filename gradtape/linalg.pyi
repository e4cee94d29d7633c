# Written by tools/stubs.py from the op table: `make stubs`.
from gradtape._src.ops.diagonals import diag as diag
from gradtape._src.ops.diagonals import diag_part as diag_part
from gradtape._src.ops.diagonals import set_diag as set_diag
from gradtape._src.ops.diagonals import tensor_diag as tensor_diag
from gradtape._src.ops.diagonals import tensor_diag_part as tensor_diag_part
from gradtape._src.ops.linalg_banded import banded_triangular_solve as banded_triangular_solve
from gradtape._src.ops.linalg_banded import tridiagonal_matmul as tridiagonal_matmul
from gradtape._src.ops.linalg_banded import tridiagonal_solve as tridiagonal_solve
from gradtape._src.ops.linalg_factor import cholesky_solve as cholesky_solve
from gradtape._src.ops.linalg_factor import logdet as logdet
from gradtape._src.ops.linalg_factor import lu as lu
from gradtape._src.ops.linalg_factor import lu_matrix_inverse as lu_matrix_inverse
from gradtape._src.ops.linalg_factor import lu_reconstruct as lu_reconstruct
from gradtape._src.ops.linalg_factor import lu_solve as lu_solve
from gradtape._src.ops.linalg_factor import qr as qr
from gradtape._src.ops.linalg_lstsq import lstsq as lstsq
from gradtape._src.ops.linalg_lstsq import pinv as pinv
from gradtape._src.ops.linalg_solve import inverse as _inverse
from gradtape._src.ops.linalg_solve import slogdet as slogdet
from gradtape._src.ops.linalg_spectral import eig as eig
from gradtape._src.ops.linalg_spectral import eigh as eigh
from gradtape._src.ops.linalg_spectral import eigh_tridiagonal as eigh_tridiagonal
from gradtape._src.ops.linalg_spectral import eigvals as eigvals
from gradtape._src.ops.linalg_spectral import eigvalsh as eigvalsh
from gradtape._src.ops.linalg_spectral import matrix_rank as matrix_rank
from gradtape._src.ops.linalg_spectral import svd as svd
from gradtape._src.ops.movement import adjoint as adjoint
from gradtape._src.ops.movement import matrix_transpose as matrix_transpose
from gradtape._typing import Any as _Any
from gradtape._typing import Bool as _Bool
from gradtape._typing import Int as _Int
from gradtape._typing import Name as _Name
from gradtape._typing import Tensor as _Tensor
from gradtape._typing import TensorLike as _TensorLike
from gradtape.linear_operator import LinearOperator as LinearOperator
from gradtape.linear_operator import LinearOperatorAdjoint as LinearOperatorAdjoint
from gradtape.linear_operator import LinearOperatorBlockDiag as LinearOperatorBlockDiag
from gradtape.linear_operator import LinearOperatorBlockLowerTriangular as LinearOperatorBlockLowerTriangular
from gradtape.linear_operator import LinearOperatorCirculant as LinearOperatorCirculant
from gradtape.linear_operator import LinearOperatorCirculant2D as LinearOperatorCirculant2D
from gradtape.linear_operator import LinearOperatorCirculant3D as LinearOperatorCirculant3D
from gradtape.linear_operator import LinearOperatorComposition as LinearOperatorComposition
from gradtape.linear_operator import LinearOperatorDiag as LinearOperatorDiag
from gradtape.linear_operator import LinearOperatorFullMatrix as LinearOperatorFullMatrix
from gradtape.linear_operator import LinearOperatorHouseholder as LinearOperatorHouseholder
from gradtape.linear_operator import LinearOperatorIdentity as LinearOperatorIdentity
from gradtape.linear_operator import LinearOperatorInversion as LinearOperatorInversion
from gradtape.linear_operator import LinearOperatorKronecker as LinearOperatorKronecker
from gradtape.linear_operator import LinearOperatorLowRankUpdate as LinearOperatorLowRankUpdate
from gradtape.linear_operator import LinearOperatorLowerTriangular as LinearOperatorLowerTriangular
from gradtape.linear_operator import LinearOperatorPermutation as LinearOperatorPermutation
from gradtape.linear_operator import LinearOperatorScaledIdentity as LinearOperatorScaledIdentity
from gradtape.linear_operator import LinearOperatorToeplitz as LinearOperatorToeplitz
from gradtape.linear_operator import LinearOperatorTridiag as LinearOperatorTridiag
from gradtape.linear_operator import LinearOperatorZeros as LinearOperatorZeros
from gradtape.linear_operator import experimental as experimental

def band_part(input: _TensorLike, num_lower: _Int, num_upper: _Int, name: _Name = ...) -> _Tensor: ...
def cholesky(input: _TensorLike, name: _Name = ...) -> _Tensor: ...
def cross(a: _Any, b: _Any, name: _Name = ...) -> _Tensor: ...
def det(input: _TensorLike, name: _Name = ...) -> _Tensor: ...
def einsum(equation: _Any, *inputs: _Any, **kwargs: _Any) -> _Tensor: ...
def expm(input: _TensorLike, name: _Name = ...) -> _Tensor: ...
def eye(num_rows: _Any, num_columns: _Any = ..., batch_shape: _Any = ..., dtype: _Any = ..., name: _Name = ...) -> _Tensor: ...
def global_norm(t_list: _Any, name: _Name = ...) -> _Tensor: ...
inv = _inverse
def l2_normalize(x: _Any, axis: _Any = ..., epsilon: _Any = ..., name: _Name = ..., dim: _Any = ...) -> _Tensor: ...
def logm(input: _TensorLike, name: _Name = ...) -> _Tensor: ...
def matmul(a: _TensorLike, b: _TensorLike, transpose_a: _Bool = ..., transpose_b: _Bool = ..., adjoint_a: _Any = ..., adjoint_b: _Any = ..., a_is_sparse: _Any = ..., b_is_sparse: _Any = ..., output_type: _Any = ..., grad_a: _Any = ..., grad_b: _Any = ..., name: _Name = ...) -> _Tensor: ...
def matvec(a: _Any, b: _Any, transpose_a: _Bool = ..., adjoint_a: _Bool = ..., a_is_sparse: _Bool = ..., b_is_sparse: _Bool = ..., name: _Name = ...) -> _Tensor: ...
def norm(tensor: _Any, ord: _Any = ..., axis: _Any = ..., keepdims: _Any = ..., name: _Name = ...) -> _Tensor: ...
def normalize(tensor: _Any, ord: _Any = ..., axis: _Any = ..., name: _Name = ...) -> _Any: ...
def solve(matrix: _TensorLike, rhs: _TensorLike, adjoint: _Bool = ..., name: _Name = ...) -> _Tensor: ...
def sqrtm(input: _TensorLike, name: _Name = ...) -> _Tensor: ...
def tensordot(a: _Any, b: _Any, axes: _Any, name: _Name = ...) -> _Tensor: ...
def trace(x: _Any, name: _Name = ...) -> _Tensor: ...
def triangular_solve(matrix: _TensorLike, rhs: _TensorLike, lower: _Bool = ..., adjoint: _Bool = ..., name: _Name = ...) -> _Tensor: ...
