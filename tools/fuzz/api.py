"""Tapes, variables, functions, accumulators, optimizers, datasets and arrays in any order, with hostile callbacks.

A case is a list of statements over the words of `api_words`; statements that raise are skipped. Callbacks delete
and mutate objects in use, call back into the library, raise, collect garbage, leave tapes in other threads. There
must be no crash and no internal exception, the values checked by `expect`, and a clean state once all is closed.
"""

from __future__ import annotations

import random
from collections import Counter

from tools.fuzz import harness

# Statements by the sort of object they make; `{T}` and the like stand for an object of that sort.
_MAKES = {
    "t": [
        "{T} * {T}",
        "tf.sin({T})",
        "{V} * {T}",
        "tf.identity({V})",
        "tf.matmul({T}[None], {T}[:, None])[0]",
        "{T} + float({K})",
        "{V}.read_value()",
        "{F}({T})",
        "{C}({T})",
        "tf.constant([1.0, 2.0]) * {K}",
        "tf.reduce_sum({T})",
        "{A}.stack()",
        "{A}.read(0)",
        "{I}.get_next()",
        "next({I})",
        "{G}.gradient({T}, {V})",
        "{G}.gradient({T}, {T})",
        "{G}.gradient([{T}, {T}], [{V}, {T}])[0]",
        "{G}.jacobian({T}, {V})",
        "{G}.gradient({T}, {V}, output_gradients={T})",
        "{J}.jvp({T})",
        "tf.py_function({B}, [{T}], tf.float32)",
        "tf.numpy_function({B}, [{T}], tf.float32)",
        "tf.cond(tf.reduce_sum({T}) > 0.0, lambda: {B}({T}), lambda: {T})",
        "tf.map_fn({B}, {T})",
        "tf.vectorized_map({B}, {T})",
        "tf.while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, {B}(x)), (0, {T}))[1]",
        "tf.stop_gradient({T})",
        "tf.recompute_grad({B})({T})",
        "tf.grad_pass_through({B})({T})",
        "leaked()",
        "kept({T})",
        "tf.gather({V}, [0, 0])",
        "tf.custom_gradient(lambda x: ({B}(x), {B}))({T})",
        "tf.nest.flatten(tf.nest.map_structure({B}, [{T}]))[0]",
    ],
    "v": [
        "tf.Variable({T})",
        "tf.Variable([1.0, 2.0])",
        "tf.Variable({T}, trainable=False)",
        "tf.Variable(lambda: {B}({T}))",
    ],
    "g": [
        "tf.GradientTape()",
        "tf.GradientTape(persistent=True)",
        "tf.GradientTape(watch_accessed_variables=False)",
        "tf.GradientTape(persistent=True, track_assign=True)",
        "opened()",
        "opened(persistent=True)",
    ],
    "s": [
        "{G}.stop_recording()",
        "tf.debug.lines()",
        "tf.debug.check_numerics()",
    ],
    "f": [
        "tf.function({B})",
        "tf.function(reading({V}))",
        "tf.function(assigning({V}))",
        "tf.function(differentiating({V}))",
        "tf.function(nesting({F}))",
        "tf.function({B}, input_signature=[tf.TensorSpec([None])])",
        "tf.function({C})",
    ],
    "c": [
        "tf.custom_gradient(own({B}))",
        "tf.custom_gradient(own(lambda g: [g, g]))",
        "tf.custom_gradient(own(lambda g: None))",
        "tf.custom_gradient(own(lambda g, variables=None: (g, [g])))",
        "tf.recompute_grad({F})",
        "primitive({K})",
    ],
    "j": [
        "tf.autodiff.ForwardAccumulator({T}, tf.ones_like({T}))",
        "tf.autodiff.ForwardAccumulator({V}, tf.ones_like({V}))",
    ],
    "o": [
        "tf.optimizers.SGD(0.1)",
        "tf.optimizers.Adam(0.1)",
        "tf.optimizers.SGD(0.1, momentum=0.9)",
    ],
    "d": [
        "tf.data.Dataset.range(3)",
        "tf.data.Dataset.from_generator(generator({B}, {T}), output_signature=tf.TensorSpec(None))",
        "tf.data.Dataset.from_tensor_slices({T}).map({B})",
        "tf.data.Dataset.range(3).map(lambda x: {T}).prefetch(1)",
        "tf.data.Dataset.from_tensors({T}).repeat(2).batch(2)",
    ],
    "i": [
        "iter({D})",
    ],
    "a": [
        "tf.TensorArray(tf.float32, 2, dynamic_size=True)",
        "{A}.write(0, {T})",
        "{A}.write({K}, {T})",
        "{A}.unstack({T})",
        "tf.TensorArray(tf.float32, 2, clear_after_read=False)",
    ],
    "n": ["abandoned({V})", "abandoned_function({V})", "abandoned_accumulator({T})"],
}
_DOES = [
    "{G}.__enter__()",
    "{G}.__enter__()",
    "{G}.__exit__(None, None, None)",
    "{G}.watch({T})",
    "{G}.watch({V})",
    "{G}.reset()",
    "in_thread({G}.__exit__, None, None, None)",
    "in_thread({G}.__enter__)",
    "in_thread({G}.gradient, {T}, {V})",
    "{G}.watched_variables()",
    "{G}.explain({T}, {V})",
    "{G}.memory()",
    "str({G}.health({T}))",
    "{G}.draw({T})",
    "inside({S}, {B}, {T})",
    "inside({S}, {F}, {T})",
    "{J}.__enter__()",
    "{J}.__exit__(None, None, None)",
    "in_thread({J}.__exit__, None, None, None)",
    "{V}.assign({T})",
    "{V}.assign_add({T})",
    "{V}[0].assign(5.0)",
    "{V}.assign({B}({T}))",
    "{O}.apply_gradients([({T}, {V})])",
    "{O}.apply_gradients([({T}, {V}), ({T}, {V})])",
    "{O}.minimize(lambda: tf.reduce_sum({V} * {V}), [{V}])",
    "{O}.apply_gradients(zip([{T}], [{V}]))",
    "{F}({T})",
    "{F}({T}, {T})",
    "{F}({V})",
    "{F}.get_concrete_function({T})",
    "{F}.profile({T}, repeats=2)",
    "{F}.profile(leaked(), repeats=2)",
    "{F}.pretty({T})",
    "in_thread({F}, {T})",
    "next({N})",
    "{N}.close()",
    "in_thread(next, {N})",
    "gc.collect()",
    "in_thread(gc.collect)",
    "finalize({T}, {B})",
    "finalize({V}, {B})",
    "finalize({G}, {B})",
    "finalize({F}, {B})",
    "dying({B})",
    "cycle({G}, {T})",
    "cycle({N}, {V})",
    "cycle({J}, {F})",
    "raising({G})",
    "twice({G}, {V})",
    "churn({V})",
    "churn({T})",
    "list({D})",
    "del {any}",
    "del {any}",
    "del {any}",
    "expect_config({K})",
    "expect_primitive({K})",
    "expect_variable_function({K})",
    "expect_gradient({V})",
    "expect_set({K})",
    "expect_tasks({V})",
    "expect_nested({K}, {V})",
    "expect_nested_forward({K})",
]
_CALLBACKS = (
    "same square fails deletes collects mutates enters leaves differentiates assigns appends interrupts_nothing "
    "traces returns_none returns_text recurses threads resets"
).split()


class Api:
    """Writes sequences of statements."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def text(self, number: int) -> str:
        rng = random.Random(f"{self.seed}:{number}")
        names: dict[str, list[str]] = {sort: [] for sort in _MAKES}
        lines: list[str] = []
        count = 0

        def make(sort: str, depth: int = 0) -> str:
            nonlocal count
            forms = _MAKES[sort]
            text = fill(
                forms[rng.randrange(len(forms))] if depth < 3 else {"t": "tf.ones([2])"}.get(sort, forms[0]),
                depth,
            )
            count += 1
            name = f"{sort}{count}"
            lines.append(f"{name} = {text}")
            names[sort].append(name)
            return name

        def word(sort: str, depth: int) -> str:
            if sort == "K":
                return str(rng.randint(1, 6))
            if sort == "B":
                return f"callbacks.{rng.choice(_CALLBACKS)}"
            sort = sort.lower()
            if names[sort] and (depth > 2 or rng.random() < 0.9):
                return rng.choice(names[sort][-3:] if rng.random() < 0.6 else names[sort])
            return make(sort, depth + 1)

        def fill(form: str, depth: int) -> str:
            if "{any}" in form:
                there = [n for sort in names for n in names[sort]]
                gone = rng.choice(there) if there else make("t", 3)
                for sort in names.values():
                    sort[:] = [n for n in sort if n != gone]
                return form.replace("{any}", gone)
            parts = form.split("{")
            out = parts[0]
            for part in parts[1:]:
                sort, _, rest = part.partition("}")
                out += word(sort, depth) + rest
            return out

        make("v")
        make("t", 3)
        make("g")
        lines.append(f"{names['g'][0]}.__enter__()")
        sorts = rng.choices(list(_MAKES), [10, 2, 3, 1, 3, 2, 1, 1, 1, 1, 1, 1], k=60)
        for sort in sorts[: rng.randint(5, 40)]:
            if rng.random() < 0.5:
                make(sort)
            else:
                lines.append(fill(rng.choice(_DOES), 0))
        return "\n".join(lines) + "\n"

    def run(self, text: str, number: int) -> Counter[str]:
        from tools.fuzz.api_words import run

        return run(text)


KIND = harness.Kind("api", Api, chunk=150, environments=({}, {"GRADTAPE_COMPILE": "always"}), programs=True)


def main(argv: list[str]) -> int:
    return harness.main(KIND, argv)
