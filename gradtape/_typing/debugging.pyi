# Written by tools/stubs.py from the op table: `make stubs`.
from gradtape._typing import Any as _Any
from gradtape._typing import Name as _Name
from gradtape._typing import Tensor as _Tensor

def is_non_decreasing(x: _Any, name: _Name = ...) -> _Tensor: ...
def is_strictly_increasing(x: _Any, name: _Name = ...) -> _Tensor: ...
