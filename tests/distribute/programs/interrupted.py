"""Worker 0 is interrupted in an exchange that worker 1 enters late; other programs have connected to its port before."""

import json
import os
import signal
import socket
import threading
import time

import gradtape as tf

config = json.loads(os.environ["TF_CONFIG"])
rank = config["task"]["index"]
host, _, port = config["cluster"]["worker"][0].partition(":")
out = {}
if rank == 1:
    calls = (
        b"GET / HTTP/1.1\r\n\r\n",
        b'{"hello": "x"}\n',
        b'{"hello": 99}\n',
        b'{"beat": 1}\n',
        b'[1]\n{"hello": -1}\n',
    )
    for data in calls:
        while True:
            try:
                stranger = socket.create_connection((host, int(port)), timeout=60)
                break
            except OSError:
                time.sleep(0.05)
        stranger.sendall(data)
        stranger.close()
group = tf.distribute.MultiWorkerMirroredStrategy()._group
group.barrier()
if rank == 0:
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    for name in ("first", "second"):
        try:
            group.barrier()
        except (KeyboardInterrupt, tf.errors.OpError) as e:
            out[name] = [type(e).__name__, str(e)]
else:
    while 0 not in group._watch.lost:  # until it learns that worker 0 has exited
        time.sleep(0.05)
print("RESULT" + json.dumps(out), flush=True)
