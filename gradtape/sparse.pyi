# Written by tools/stubs.py from the op table: `make stubs`.
from gradtape._src.ops.sparse import SparseTensor as SparseTensor
from gradtape._typing import Any as _Any
from gradtape._typing import Bool as _Bool
from gradtape._typing import Name as _Name
from gradtape._typing import Tensor as _Tensor

def from_dense(tensor: _Any, name: _Name = ...) -> _Any: ...
def reorder(sp_input: _Any, name: _Name = ...) -> _Any: ...
def to_dense(sp_input: _Any, default_value: _Any = ..., validate_indices: _Bool = ..., name: _Name = ...) -> _Tensor: ...
