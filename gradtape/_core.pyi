# The native core (core/py/*.cpp). Its types are checked at run time, not here.
from typing import Any

Tensor: Any
Variable: Any
Op: Any
Tape: Any
Program: Any

def __getattr__(name: str) -> Any: ...
