# Written by tools/stubs.py from the op table: `make stubs`.
from gradtape import tnp as _tnp
from gradtape._typing import Any as _Any

class dlpack:
    @staticmethod
    def from_dlpack(dlcapsule: _Any) -> _Any: ...
    @staticmethod
    def to_dlpack(tf_tensor: _Any) -> _Any: ...
numpy = _tnp
