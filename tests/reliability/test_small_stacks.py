"""Threads with a small stack: 128 KB is what musl gives each one."""

import subprocess
import sys

_PROGRAM = """
import threading
import numpy as np
import gradtape as tf

tf.config.threading.set_intra_op_parallelism_threads(1)  # all of it in the thread that asks
failed = []

def work():
    try:
        rows = np.ones([4096, 7], "float32")
        assert tf.reduce_sum(rows, 1).numpy().tolist() == [7.0] * 4096  # short rows, turned on their side
        wide = tf.constant(np.ones([300, 4000]), tf.bfloat16)
        assert float(tf.reduce_max(tf.reduce_mean(wide, 0))) == 1.0  # converted on the way
        whole = tf.ones([64, 5, 33], tf.int32)
        assert tf.reduce_mean(whole, [0, 2]).numpy().tolist() == [1] * 5
        assert tf.reduce_sum(tf.ones([100, 128], tf.complex128), 0).numpy().tolist() == [100] * 128
        x = tf.ones([128, 128])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.nn.softmax(tf.sort(tf.tanh(x) * x, axis=0)))
        assert tape.gradient(y, x).shape == (128, 128)
    except Exception as e:
        failed.append(e)

work()  # what is imported when first used needs more than that of Python itself
threading.stack_size(128 * 1024)
thread = threading.Thread(target=work)
thread.start()
thread.join()
assert not failed, failed
print("done")
"""


def test_reductions_do_not_need_a_large_stack():
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "done\n", (done.returncode, done.stderr[-2000:])
