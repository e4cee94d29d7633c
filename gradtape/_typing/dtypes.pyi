# Written by tools/stubs.py from the op table: `make stubs`.
from gradtape._src.ops.casting import cast as cast
from gradtape._src.ops.casting import saturate_cast as saturate_cast
from gradtape._typing import Name as _Name
from gradtape._typing import Tensor as _Tensor
from gradtape._typing import TensorLike as _TensorLike

def complex(real: _TensorLike, imag: _TensorLike, name: _Name = ...) -> _Tensor: ...
