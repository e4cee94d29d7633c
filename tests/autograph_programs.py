"""One program for each statement and idiom that AutoGraph rewrites: a scalar in, a scalar out."""

from __future__ import annotations

import functools

import gradtape as tf


def abs_by_if(x):
    if x > 0:
        y = x * x
    else:
        y = -x * 3.0
    return y


def if_without_else(x):
    y = x * 2.0
    if x > 0:
        y = y * x
    return y


def elif_chain(x):
    if x > 10.0:
        y = x
    elif x > 1.0:
        y = x * x * x
    elif x > 0.0:
        y = tf.sin(x)
    else:
        y = tf.exp(x)
    return y


def nested_ifs(x):
    if x > 0:
        if x > 1.0:
            z = x * 3.0
            x = tf.square(x)
        else:
            z = x
    else:
        z = tf.exp(x)
    return z * x


def early_return(x):
    if x > 0:
        return x * x
    y = tf.exp(x)
    if y > 0.6:
        return y * 2.0
    return y * 3.0


def return_in_nested_if(x):
    if x > 0:
        if x > 5.0:
            return x
        x = x + 1.0
    return x * x


def while_counts(x):
    i = 0
    while x < 100.0 and i < 20:
        x = x * x + 1.0
        i += 1
    return x * 0.01


def while_data_dependent(x):
    n = 0.0
    while tf.abs(x) < 50.0:
        x = x * 1.7 + tf.sin(x)
        n = n + 1.0
    return x * n


def while_with_break(x):
    y = x
    i = tf.constant(0)
    while i < 10:
        y = y * 1.5
        if y * y > 20.0:
            break
        i += 1
    return y


def while_true_break(x):
    while True:
        x = x * 1.5
        if x * x > 30.0:
            break
    return x


def for_range(x):
    y = x
    for i in tf.range(4):
        y = y * x + tf.cast(i, tf.float32)
    return y


def for_range_of_tensor(x):
    n = tf.cast(tf.abs(x) * 5.0, tf.int32)
    y = x
    for i in tf.range(n):
        y = y + tf.sin(x) * tf.cast(i, tf.float32)
    return y


def for_python_range_of_tensor(x):
    n = tf.cast(tf.abs(x) * 5.0, tf.int32)
    y = x
    for _ in range(1, n + 3, 2):
        y = y * x
    return y


def for_range_down(x):
    y = x
    for i in tf.range(5, -3, -2):
        y = y * x + tf.cast(i, tf.float32)
    return y


def for_float_range(x):
    y = x
    for t in tf.range(0.0, 1.0, 0.3):
        y = y * x + t
    return y


def for_rows(x):
    rows = tf.stack([[x, x * 2.0], [x * x, 1.0 + x], [x, tf.sin(x)]])
    total = tf.zeros([2])
    for row in rows:
        total = total * 0.5 + row * row
    return tf.reduce_sum(total)


def for_rows_continue(x):
    total = x * 0.0
    for v in tf.stack([x, -x, x * 2.0, -3.0 * x]):
        if v < 0:
            continue
        total = total + v * v
    return total


def for_break(x):
    total = x * 0.0
    for v in tf.stack([x, x * 2.0, x * 3.0, x * 4.0]):
        if v * v > 8.0:
            break
        total = total + v * v
    return total


def for_else(x):
    total = x
    for i in tf.range(3):
        total = total * x
        if total > 100.0:
            break
    else:
        total = total + 5.0 * x
    return total


def return_in_loop(x):
    for i in tf.range(10):
        x = x * 1.5
        if x * x > 9.0:
            return x * x * tf.cast(i, tf.float32)
    return x


def nested_loops(x):
    total = x
    for i in tf.range(3):
        for j in tf.range(i + 1):
            if j > 1:
                break
            total = total + x * tf.cast(i * j + 1, tf.float32)
        if total > 1e3:
            continue
        total = total * 0.9
    return total


def while_in_for_in_if(x):
    if x > -5.0:
        for _ in tf.range(2):
            y = x
            while y * y < 10.0:
                y = y * 2.0
            x = x + y * 0.1
    return x * x


def tuple_state(x):
    pair = (x, x * 2.0)
    for _ in tf.range(3):
        a, b = pair
        pair = (b, a * b * 0.5)
    return pair[0] * pair[1]


def dict_state(x):
    d = {"a": x, "b": [x * 2.0, x]}
    for _ in tf.range(3):
        d = {"a": d["a"] * x, "b": [d["b"][1], d["a"]]}
    return d["a"] + d["b"][0] * d["b"][1]


def dict_entries(x):
    d = {"n": 0, "s": x}
    for _ in tf.range(3):
        d["n"] = d["n"] + 1
        d["s"] = d["s"] * x
    return d["s"] * tf.cast(d["n"], tf.float32)


def entries_by_name(x):
    d, row, k, i = {"a": x, "b": {"c": x}}, [x, x * 2.0], "a", 1
    if x > 0:
        d[k] = x * 3.0
        row[-i] = x * x
        d["b", i] = x
    else:
        d["b", i] = -x
    if x > 1.0:
        row[i - 1] = -row[i - 1]
    for _ in tf.range(2):
        d["b"]["c"] = d["b"]["c"] * x
        row[i] = row[i] * 0.5
    while row[i] < 5.0:
        row[i] = row[i] + 3.0
    for k in ("d", "e"):
        if x > 0:
            d[k] = -x
        else:
            d[k] = x * x
    return d["a"] + d["b"]["c"] + row[0] + row[1] * d["d"] * d["e"] + d["b", 1]


def temporaries(x):
    for i in tf.range(3):
        kind = "row"  # a Python value that lives inside of the loop
        scale = {"row": 2.0}[kind]
        x = x * scale
    return x


def defined_in_loop(x):
    for _ in tf.range(3):
        last = x * x
        x = x + 1.0
    return last


def none_before_loop(x):
    best = None
    for v in tf.stack([x, x * 3.0]):
        best = v * v
    return best


def conditional_expression(x):
    return x * x if x > 0 else tf.exp(x) * 2.0


def logic(x):
    y = x
    if x > 0 and x < 2.0 or x < -10.0:
        y = y * x
    if not (x > 0 or x < -5.0):
        y = y * 5.0
    if x > 100.0 and tf.math.log(x) > 1.0:
        y = y * 7.0
    return y


def chained_comparison(x):
    if 0.0 < x < 2.0:
        return x * x
    return x * 3.0


def helper(x, power=2, *, scale=1.0):
    if x > 0:
        return x**power * scale
    return -x * scale


def calls_functions(x):
    half = lambda v: v * 0.5 if v > 0 else v * 0.25  # noqa: E731
    twice = functools.partial(helper, scale=2.0)
    return helper(x) + helper(x, 3, scale=0.5) + half(x) + twice(x)


def recursion(x):
    def power(v, n):
        if n == 0:
            return tf.ones_like(v)
        if v > 0:
            return v * power(v, n - 1)
        return -v * power(v, n - 1)

    return power(x, 3)


def closure_state(x):
    count = 0.0

    def bump(v):
        nonlocal count
        if v > 0:
            count = count + v
        else:
            count = count - v * 2.0
        return count

    bump(x)
    bump(x * 0.5)
    return count * x


def star_arguments(x):
    def total(*args, **kwargs):
        s = kwargs["start"]
        for a in args:
            if a > 0:
                s = s + a
            else:
                s = s - a * 0.5
        return s

    return total(x, x * x, *[x, -x], start=x * 0.1) * x


def python_loop_tensor_break(x):
    for i in range(5):
        x = x * 1.4
        if x * x > 6.0:
            break
    return x


def python_values(x):
    """Conditions over Python values stay Python."""
    seen = []
    for i in range(5):
        if i == 1:
            continue
        if i == 4:
            break
        seen.append(i)
    assert seen == [0, 2, 3]
    while len(seen) > 1 and seen[-1] > 0:
        seen.pop()
    return x * float(len(seen))


def array_in_loop(x):
    ta = tf.TensorArray(tf.float32, size=4)
    for i in tf.range(4):
        ta = ta.write(i, x * tf.cast(i, tf.float32) + x * x)
    return tf.reduce_sum(tf.square(ta.stack()))


def growing_array(x):
    ta = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    for i in tf.range(3):
        x = x * 1.1
        ta = ta.write(i, x)
    return tf.reduce_prod(ta.stack())


def array_read_back(x):
    ta = tf.TensorArray(tf.float32, size=5, clear_after_read=False).write(0, x)
    for i in tf.range(1, 5):
        ta = ta.write(i, ta.read(i - 1) * x)
    return tf.reduce_sum(ta.gather([1, 4]))


def array_in_branch(x):
    ta = tf.TensorArray(tf.float32, size=2, element_shape=[])
    for i in tf.range(2):
        if x > 0:
            ta = ta.write(i, x * x)
        else:
            ta = ta.write(i, x)
    return tf.reduce_sum(ta.stack() * tf.constant([1.0, 2.0]))


def annotated_and_walrus(x):
    y: tf.Tensor = x
    if (z := x * 2.0) > 0:
        w: tf.Tensor = z * y
    else:
        w = z
    return w


def with_and_try(x):
    try:
        with tf.name_scope("s"):
            if x > 0:
                return x * x
            y = x * 3.0
    finally:
        pass
    return y


PROGRAMS = [
    abs_by_if, if_without_else, elif_chain, nested_ifs, early_return, return_in_nested_if, while_counts,
    while_data_dependent, while_with_break, while_true_break, for_range, for_range_of_tensor,
    for_python_range_of_tensor, for_range_down, for_float_range, for_rows, for_rows_continue, for_break, for_else,
    return_in_loop, nested_loops, while_in_for_in_if, tuple_state, dict_state, dict_entries, entries_by_name,
    temporaries,
    defined_in_loop, none_before_loop, conditional_expression, logic, chained_comparison, calls_functions, recursion,
    closure_state, star_arguments, python_loop_tensor_break, python_values, array_in_loop, growing_array,
    array_read_back, array_in_branch, annotated_and_walrus, with_and_try,
]  # fmt: skip
