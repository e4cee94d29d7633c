"""The corpus of programs and the random programs of other tests."""

import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
CORPUS = importlib.import_module("programs.runner").CORPUS
random_graphs = importlib.import_module("test_random_graphs")
sys.path.pop(0)
