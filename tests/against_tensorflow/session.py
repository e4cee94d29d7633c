"""The comparison itself: both libraries in one process, every call in both, and the table at the end."""

from __future__ import annotations

import collections
import logging
import sys
import warnings
import time

import gradtape
import tensorflow

from . import rows, written
from .calling import run
from .compare import compare
from .rows import find

warnings.simplefilter("ignore")
logging.getLogger("tensorflow").setLevel("ERROR")
logging.getLogger("gradtape").setLevel("ERROR")


def has(lib, name):
    try:
        find(lib, name)
    except AttributeError:
        return False
    return True


def main(only: str, words: str, verbose: bool) -> int:
    def wanted(name):
        return name == only[1:] if only.startswith("=") else only in name

    import os
    only2=os.environ.get("PART","")
    count = collections.Counter()
    seen = collections.Counter()
    for source in [m for m in (rows, written) if only2 in m.__name__]:
        for call in source.calls(wanted):
            if words not in call.words:
                continue
            if not has(tensorflow, call.function) or not has(gradtape, call.function):
                count["only one"] += 1
                continue
            if verbose: print(">>", call.dtype, call.words, flush=True)
            ours = run(gradtape, call.call, call.words, call.dtype, call.gradients, call.second)
            theirs = run(tensorflow, call.call, call.words, call.dtype, call.gradients, call.second)
            count["calls"] += 1
            for d in compare(ours, theirs, call.factor, call.numbers):
                count[d.kind] += 1
                key = (call.function, d.kind)
                seen[key] += 1
                if seen[key] <= 3 and (d.kind != "wider"):
                    print(f"{d.kind:9} {call.function}: {call.words} [{call.dtype}]\n          {d.words}")
    print(count)
    return 0
