"""One of several workers, one of which is killed while they connect: `meeting.py WHO`."""

import json
import os
import signal
import sys

import gradtape as tf
from gradtape.distribute import groups_jax_names as names

if json.loads(os.environ["TF_CONFIG"])["task"]["index"] == int(sys.argv[1]):
    join = names.join

    def joined(*arguments):
        join(*arguments)
        os.kill(os.getpid(), signal.SIGKILL)

    names.join = joined

try:
    tf.distribute.MultiWorkerMirroredStrategy()
except tf.errors.OpError as e:
    print("RESULT" + json.dumps({"kind": type(e).__name__, "said": str(e)}), flush=True)
    raise
