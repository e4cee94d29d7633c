"""`tf.train`: checkpoints, examples for record files, moving averages.

In reading order: `trackable` (what is saved, under which names), `safetensors` and `files` (how), `restoration` and
`late` (how values find their objects, also objects created later), `checkpoint`, `manager`, `reader`; `bundle`
reads TensorFlow's own checkpoints. `example`, `averages` and `cluster` are independent of these.
"""

from __future__ import annotations

import sys as _sys
import types as _types
from typing import Any as _Any

from gradtape._src.public import absent as _absent
from gradtape.train.averages import ExponentialMovingAverage
from gradtape.train.checkpoint import Checkpoint, CheckpointOptions
from gradtape.train.cluster import ClusterSpec, Coordinator
from gradtape.train.example import (
    BytesList,
    Example,
    Feature,
    FeatureList,
    FeatureLists,
    Features,
    FloatList,
    Int64List,
    SequenceExample,
)
from gradtape.train.files import checkpoints_iterator, get_checkpoint_state, latest_checkpoint
from gradtape.train.manager import CheckpointManager
from gradtape.train.reader import list_variables, load_checkpoint, load_variable
from gradtape.train.trackable import PythonState as _PythonState

experimental = _types.ModuleType(
    "gradtape.train.experimental", "TensorFlow's namespace `tf.train.experimental`."
)
experimental.PythonState = _PythonState  # type: ignore[attr-defined]
_sys.modules[experimental.__name__] = experimental

__getattr__, __dir__ = _absent.of("train")
