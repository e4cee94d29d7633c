"""The known differences."""
from typing import NamedTuple
class Known(NamedTuple):
    functions: str
    kinds: str
    words: str
KNOWN = ()
