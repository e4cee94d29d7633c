"""Jacobians of every program of the corpus, in double precision, against central differences.

Of an objective: the derivative of its loss, and the Hessian, as the Jacobian of the gradient. Of
a program: the Jacobian of each function that runs under its tapes, with respect to arguments and variables, at
the point where it is first called. In eager mode, by rules and compiled, in forward and reverse mode,
and inside `tf.function`.
"""

import numpy as np
import pytest

import gradtape as tf
from gradtape._src.batching.jacobian import jacobians_of
from gradtape._src.control.control_ops import aside

from .corpora import CORPUS
from .differences import columns, compiling, mode
from .double import Double, widened

MOST_PLACES = 3  # elements of a source that are varied
MOST_ROWS = 400  # elements of a result whose Jacobian is computed
LIMIT = 2e-6
EXACT = 1e-9

# Programs that differentiate no function, or not as it is, and why.
WITHOUT_FUNCTION = {"batch_norm_moving_statistics": "what it does is in one block with its tape"}
WITHOUT_GRADIENT = dict.fromkeys(
    ["jacobian_of_a_network", "per_example_gradient_norms", "gauss_newton"], "it asks for Jacobians only"
) | {"several_targets_and_output_gradients": "it weights its targets"}
NO_DERIVATIVE = {"custom_gradient_in_a_network": "it turns a gradient round"}


def is_float(x):
    return isinstance(x, tf.Tensor) and x.dtype.is_floating


class Function:
    """A function of a program, at the place where it was called.

    Attributes:
      sources: the tensors and Variables it is differentiated with respect to.
    """

    def __init__(self, library, f, args, sources):
        self.library, self.f, self.args = library, f, args
        with tf.GradientTape() as tape:
            results = self.outputs(args)
        read = {id(v) for v in tape.watched_variables()}
        self.sources = [*sources, *(v for v in library.variables if id(v) in read)]
        self.count = len(results)
        self.stopped = library.stopped

    def outputs(self, args):
        """The results that have a derivative."""
        self.library.hold(None)
        results = self.f(*args)
        return [y for y in tf.nest.flatten(results) if is_float(y) and y._numel <= MOST_ROWS]

    def jacobians(self, args=None):
        """For each result its Jacobians with respect to all sources."""
        args = self.args if args is None else args
        # Tensors among the sources are arguments; in a trace they are replaced by symbols.
        now = {id(a): b for a, b in zip(self.args, args, strict=True)}
        sources = [now.get(id(s), s) for s in self.sources]
        with tf.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
            tape.watch(sources)
            ys = self.outputs(args)
        return [tape.jacobian(y, sources, unconnected_gradients="zero") for y in ys]

    def tangents(self, direction):
        """The derivatives of the results along a direction, by forward mode."""
        with tf.autodiff.ForwardAccumulator(self.sources, direction) as acc:
            ys = self.outputs(self.args)
        return acc.jvp(ys, unconnected_gradients="zero")

    def batch_jacobians(self, x):
        """The results with as many rows as `x` has, and their Jacobians row by row."""
        with tf.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
            tape.watch(x)
            ys = self.outputs(self.args)
        return [tape.batch_jacobian(y, x) if y.ndim > 1 and y.shape[0] == x.shape[0] else None for y in ys]

    def columns(self, which, places):
        """Columns of the Jacobians with respect to one source, by central differences."""

        def value(*arrays):
            args = list(self.args)
            for s, a in zip(self.sources, arrays, strict=True):
                if isinstance(s, tf.Variable):
                    s.assign(a)
                else:
                    args = [tf.constant(a) if x is s else x for x in args]
            self.library.hold(self.stopped)
            results = tf.nest.flatten(self.f(*args))
            return [y.numpy() for y in results if is_float(y) and y._numel <= MOST_ROWS]

        before = [s.numpy() for s in self.sources]
        found = columns(value, before, which, places)
        for s, a in zip(self.sources, before, strict=True):
            if isinstance(s, tf.Variable):
                s.assign(a)
        return found


def check(function, numeric=True):
    """Compares the Jacobians of a function, made in all ways, with each other and with differences."""
    with compiling(False), mode("reverse"):
        expected = function.jacobians()
    if numeric:
        rng = np.random.default_rng(0)
        for i, s in enumerate(function.sources):
            size = int(np.prod(s.shape))
            places = rng.permutation(size)[:MOST_PLACES]
            if not size:
                continue
            for k, column in enumerate(function.columns(i, places)):
                j = expected[k][i].numpy()
                assert_close(
                    j.reshape(*column.shape[:-1], size)[..., places], column, LIMIT, f"result {k} by {i}"
                )
    for way in ("forward", "cheapest"):
        with compiling(True), mode(way):
            for time in range(2 if way == "cheapest" else 1):
                same(function.jacobians(), expected, f"{way}, time {time + 1}")
    if numeric:
        check_tangents(function, expected)
    check_batches(function, expected)
    with mode("cheapest"):
        inside = tf.function(lambda *args: function.jacobians(args))
        same(inside(*function.args), expected, "in a function")


def check_tangents(function, jacobians):
    rng = np.random.default_rng(1)
    direction = [rng.normal(size=s.shape).astype(s.dtype.as_numpy_dtype) for s in function.sources]
    tangents = function.tangents([tf.constant(d) for d in direction])
    for k, (t, js) in enumerate(zip(tangents, jacobians, strict=True)):
        product = sum(
            np.real(np.tensordot(np.conj(j.numpy()), d, d.ndim)) for j, d in zip(js, direction, strict=True)
        )
        assert_close(t.numpy(), product, EXACT, f"tangent of result {k}")


def check_batches(function, jacobians):
    """If each row of a result depends only on that row of an argument, `batch_jacobian` gives these blocks."""
    for i, x in enumerate(function.sources):
        if not isinstance(x, tf.Tensor) or x.ndim < 2:
            continue
        for k, got in enumerate(function.batch_jacobians(x)):
            j = jacobians[k][i].numpy()
            rows = np.moveaxis(j, j.ndim - x.ndim, 1)  # [row of the result, row of x, ...]
            if got is None or np.any(rows[~np.eye(x.shape[0], dtype=bool)]):
                continue
            expected = rows[range(x.shape[0]), range(x.shape[0])]
            assert_close(got.numpy(), expected, EXACT, f"batch_jacobian of result {k} by source {i}")
            BATCHES.append((k, i))


def same(got, expected, what):
    for k, (js, es) in enumerate(zip(got, expected, strict=True)):
        for i, (j, e) in enumerate(zip(js, es, strict=True)):
            assert_close(j.numpy(), e.numpy(), EXACT, f"{what}: result {k} by source {i}")


def assert_close(got, expected, limit, what):
    assert got.shape == expected.shape, f"{what}: shape {got.shape}, expected {expected.shape}"
    scale = np.maximum(1.0, np.max(np.abs(expected), initial=0.0))
    wrong = np.max(np.abs(got - expected), initial=0.0) / scale
    assert wrong <= limit, f"{what}: off by {wrong:.2g}, allowed {limit:.2g}"


ALL, BATCHES = [], []
OBJECTIVES = [name for name, entry in CORPUS.items() if entry.objective]
PROGRAMS = [name for name, entry in CORPUS.items() if not entry.objective]


def tensors(arrays):
    return [tf.constant(widened(a)) for a in arrays]


@pytest.mark.parametrize("name", OBJECTIVES)
def test_loss(name):
    library = Double(tf)
    loss, params, data = CORPUS[name].build(library)
    params, data = tensors(params), tensors(data)
    check(Function(library, loss, [*params, *data], params), name not in NO_DERIVATIVE)


@pytest.mark.parametrize("name", [n for n in OBJECTIVES if CORPUS[n].order > 1])
def test_hessian(name):
    library = Double(tf)
    loss, params, data = CORPUS[name].build(library)
    params, data = tensors(params), tensors(data)

    def gradient(*args):
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(args[: len(params)])
            y = loss(*args)
        grads = tape.gradient(y, args[: len(params)])
        return [tf.convert_to_tensor(g) for g in grads if g is not None]

    check(Function(library, gradient, [*params, *data], params), name not in NO_DERIVATIVE)


@pytest.mark.parametrize("name", PROGRAMS)
def test_functions_of_program(name):
    library = Double(tf)
    checked = []
    ALL.append(name)

    def forward(f):
        def call(*args):
            if f not in checked and tf.executing_eagerly():
                checked.append(f)
                with aside():
                    given = [tf.convert_to_tensor(a) if isinstance(a, np.ndarray) else a for a in args]
                    check(
                        Function(library, f, given, [a for a in given if is_float(a)]),
                        name not in NO_DERIVATIVE,
                    )
                    library.hold(None)
            return f(*args)

        return call

    CORPUS[name].build(library, lambda f: f, forward)
    assert checked or name in WITHOUT_FUNCTION
    assert len(checked) < 10


def test_some_functions_are_batched():
    if len(ALL) == len(PROGRAMS):
        assert len(BATCHES) > 10


class Tape(tf.GradientTape):
    """A tape that checks each gradient: it must be the sum over the rows of the Jacobian."""

    checked = 0

    def gradient(self, target, sources, output_gradients=None, **options):
        expected = None
        if isinstance(target, tf.Tensor) and target.dtype.is_floating and output_gradients is None:
            persistent, Tape.checked = self._persistent, Tape.checked + 1
            self._configure(True, self._watch_accessed)
            flat = [s for s in tf.nest.flatten(sources) if s.dtype.is_floating]
            with mode("forward" if Tape.checked % 2 else "reverse"):
                jacobians = jacobians_of(self, target, flat)
            self._configure(persistent, self._watch_accessed)
            expected = [
                None if j is None else tf.reduce_sum(j, axis=list(range(target.ndim))) for j in jacobians
            ]
        found = super().gradient(target, sources, output_gradients, **options)
        if expected is not None:
            flat = [
                g
                for g, s in zip(tf.nest.flatten(found), tf.nest.flatten(sources), strict=True)
                if s.dtype.is_floating
            ]
            for g, e in zip(flat, expected, strict=True):
                if e is None:
                    assert g is None or options
                else:
                    tf.debugging.assert_near(tf.convert_to_tensor(g), e, rtol=EXACT, atol=EXACT)
        return found


@pytest.mark.parametrize("where", ["eager", "function"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_of_program(name, where):
    library = Double(tf)
    library.GradientTape = Tape
    before = Tape.checked
    same = lambda f: f  # noqa: E731
    CORPUS[name].build(library, tf.function if where == "function" else same, same)
    assert Tape.checked > before or name in WITHOUT_GRADIENT
