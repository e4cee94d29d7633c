"""One worker: tensors of every type, small and large, through all exchanges. Prints the wrong results, as JSON."""

import json

import numpy as np

import gradtape as tf
from gradtape._src.base.dtypes import BY_CODE, HELD

group = tf.distribute.MultiWorkerMirroredStrategy()._group
rank, n = group.rank, group.size
wrong = []


def check(what, got, expected):
    if not np.array_equal(np.asarray(got), np.asarray(expected)):
        wrong.append(f"{what}: {got} is not {expected}")


for dtype in (d for d in BY_CODE if d._code not in HELD):
    for shape in ((), (3,), (0, 4), (40, 50)):
        x = tf.cast(tf.fill(shape, float(rank + 1)), dtype)
        what = f"{dtype.name}{list(shape)}"
        if dtype == tf.bool:
            try:
                group.all_reduce([x])
                wrong.append(f"{what} was added up")
            except tf.errors.InvalidArgumentError:
                pass
        else:
            ones = tf.ones_like(x)
            total, count = group.all_reduce([x, ones])
            check(f"sum of {what}", total, tf.cast(tf.fill(shape, n * (n + 1) / 2), dtype))
            check(f"count of {what}", count, tf.cast(tf.fill(shape, float(n)), dtype))
            if total.dtype != dtype or total.shape != x.shape:
                wrong.append(f"sum of {what} is {total.dtype.name}{list(total.shape)}")
        for r, part in enumerate(group.all_gather([x, tf.zeros([rank + 1])])[0]):
            check(f"part {r} of {what}", part, tf.cast(tf.fill(shape, float(r + 1)), dtype))
        check(f"first {what}", group.broadcast([x, x])[1], tf.cast(tf.ones(shape), dtype))
        check(f"last {what}", group.broadcast([x], n - 1)[0], tf.cast(tf.fill(shape, float(n)), dtype))

mixed = [
    tf.constant(1.5),
    tf.constant([1, 2]),
    tf.ones([700], tf.float64),
    tf.ones([300]),
    tf.constant(2 + 1j),
]
for got, x in zip(group.all_reduce(mixed), mixed, strict=True):
    check("several types", got, x * n)
lengths = [tf.fill([r], float(r)) for r in range(n)]
for got, x in zip(group.all_gather([lengths[rank]])[0], lengths, strict=True):
    check("lengths", got, x)
group.barrier()
print("RESULT" + json.dumps({"rank": rank, "wrong": wrong}), flush=True)
