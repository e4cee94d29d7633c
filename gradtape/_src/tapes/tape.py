"""GradientTape: records what a program computes, then differentiates it.

The recording itself is native (`core/py/record.cpp`, `core/py/backward.cpp`); this file holds
TensorFlow's interface to it and the checks of what a user may pass.
"""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import log, nest
from gradtape._src.base.errors import more
from gradtape._src.tapes.assignments import Tracker, opened, record
from gradtape._src.tensors import above, protocol
from gradtape._src.tensors.composite import GRADIENTS
from gradtape._src.tensors.conversion import as_tensor, leaf_of
from gradtape._src.tensors.indexed_slices import IndexedSlices, flat_gradients

if TYPE_CHECKING:
    from gradtape._src.debug.explain import Explanation
    from gradtape._src.debug.health import Health
    from gradtape._src.debug.memory import Memory

_USED = (
    "A non-persistent GradientTape can only be used to compute one set of gradients (or jacobians). Hint: "
    "tape.gradient(y, [a, b]) gives several at once; tf.GradientTape(persistent=True) can be asked again."
    + more("several-gradients")
)
_INSIDE = (
    "Calling GradientTape.gradient on a persistent tape inside its context is significantly less efficient than "
    "calling it outside the context (it causes the gradient ops to be recorded on the tape, leading to increased "
    "CPU and memory usage). Only call GradientTape.gradient inside the context if you actually want to trace the "
    "gradient in order to compute higher order derivatives."
)
_MOST_DTYPE_WARNINGS = 5
_warned: dict[str, int] = {}


class UnconnectedGradients(enum.Enum):
    """What `gradient` returns for a source that the target does not depend on."""

    NONE = "none"
    ZERO = "zero"
    RAISE = "raise"  # gradtape's extension: an error that says why


def _unconnected(value: Any) -> UnconnectedGradients:
    try:
        return UnconnectedGradients(value)
    except ValueError:
        raise ValueError(
            f"Unknown value for unconnected_gradients: {value!r}; expected 'none', 'zero' or 'raise'."
        ) from None


def _described(value: Any) -> str:
    return (
        repr(value.name) if isinstance(value, _core.Variable) else f"a source of shape {tuple(value.shape)}"
    )


def _differentiable(value: Any) -> bool:
    return value.dtype.is_floating or value.dtype.is_complex


class GradientTape(_core.Tape):
    """Records operations for automatic differentiation.

    Operations are recorded while the tape's context is open, if one of their inputs is watched.
    Trainable variables are watched automatically, tensors by `watch`:

    >>> import gradtape as tf
    >>> x = tf.constant(3.0)
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = x * x
    >>> tape.gradient(y, x).numpy()
    np.float32(6.0)

    Tapes nest, for derivatives of higher order:

    >>> with tf.GradientTape() as outer:
    ...     outer.watch(x)
    ...     with tf.GradientTape() as inner:
    ...         inner.watch(x)
    ...         y = x * x * x
    ...     dy = inner.gradient(y, x)
    >>> outer.gradient(dy, x).numpy()
    np.float32(18.0)

    A tape is used up by `gradient`, unless it is persistent:

    >>> with tf.GradientTape(persistent=True) as tape:
    ...     tape.watch(x)
    ...     y = x * x
    ...     z = y * y
    >>> tape.gradient(z, x).numpy(), tape.gradient(y, x).numpy()
    (np.float32(108.0), np.float32(6.0))

    Several variables at once, in any structure:

    >>> w, b = tf.Variable([[1.0], [2.0]]), tf.Variable(0.5)
    >>> with tf.GradientTape() as tape:
    ...     loss = tf.reduce_sum(tf.matmul([[1.0, 1.0]], w) + b)
    >>> grads = tape.gradient(loss, {"w": w, "b": b})
    >>> grads["w"].numpy().tolist(), grads["b"].numpy()
    ([[1.0], [1.0]], np.float32(1.0))

    Args:
      persistent: keep the records, so that `gradient` can be called several times.
      watch_accessed_variables: watch trainable variables as soon as they are read.
      track_assign: record assignments to variables, an optimizer's included, like operations: a variable
        as a source then means the value it had when the tape was opened. TensorFlow has no such flag;
        on its tapes, and on ours without it, an assigned value is a constant.
    """

    def __init__(
        self, persistent: bool = False, watch_accessed_variables: bool = True, track_assign: bool = False
    ) -> None:
        trace = _core.current_trace()
        if trace is not None and getattr(trace, "records", False):
            trace.take_over(self, (persistent, watch_accessed_variables, track_assign), {})
            return
        self._configure(persistent, watch_accessed_variables)
        self._tracker = Tracker(self) if track_assign else None
        if self._tracker is not None:
            self._follow(self._tracker)
        self._adopted: dict[
            int, tuple
        ] = {}  # by the variable's id: the variable and the assigned tensor that stands for it

    # ---- context ----------------------------------------------------------------------------

    if TYPE_CHECKING:
        # Native: see tape_enter in core/py/tape_type.cpp.
        def __enter__(self) -> GradientTape: ...
        def __exit__(self, *_: Any) -> None: ...

    def _entering(self) -> None:
        """Called by the core before a tape that tracks assignments starts to record."""
        opened(self)
        if self._tracker is not None:
            self._tracker.start()

    def _left(self) -> None:
        """Called by the core when a tape that tracks assignments has stopped."""
        assert self._tracker is not None
        self._tracker.stop()

    def watch(self, tensor: Any) -> None:
        """Tracks a tensor, a variable, or every one in a nest of them, from now on.

        Raises:
          ValueError: if something is neither a Tensor nor a Variable.
          AttributeError: before the tape was entered, or after it was used up.
        """
        for value in nest.flatten(tensor, expand_composites=True):
            leaf = leaf_of(value)
            if leaf is None:
                raise ValueError(
                    f"Passed in object {value!r} of type {type(value).__name__!r}, not tf.Tensor or tf.Variable or "
                    "ExtensionType. Hint: tf.constant(value) makes a tensor that can be watched."
                )
            if self._stage != "open":
                raise AttributeError(
                    "watch: the tape is not recording. Hint: call watch inside `with tf.GradientTape() as tape:`."
                )
            if not _differentiable(leaf):
                self._warn_dtype("tensor", leaf)
            else:
                tracker = _core.assign_tracker()
                if tracker is not None and tracker is not self._tracker and isinstance(leaf, _core.Variable):
                    tracker.adopt(self, leaf)
                if id(leaf) not in self._adopted:
                    self._watch(leaf)

    @staticmethod
    def _warn_dtype(what: str, value: Any) -> None:
        _warned[what] = _warned.get(what, 0) + 1
        if _warned[what] <= _MOST_DTYPE_WARNINGS:
            log.warning(
                "The dtype of the watched %s must be floating (e.g. tf.float32), got %r%s",
                what,
                value.dtype,
                more("integers"),
            )

    def watched_variables(self) -> tuple:
        """The variables the tape watches, in the order in which they were created."""
        return self._variables()

    def reset(self) -> None:
        """Forgets everything recorded and watched so far.

        Raises:
          ValueError: outside the tape's context.
        """
        if not self._recording:
            raise ValueError("Tape is not recording.")
        self._forget()

    @contextlib.contextmanager
    def stop_recording(self) -> Iterator[None]:
        """A context in which nothing is recorded on this tape.

        Raises:
          RuntimeError: if the tape was never entered.
          ValueError: if it was left already.
        """
        if self._stage == "new":
            raise RuntimeError("Trying to stop recording a tape which is not recording.")
        if not self._recording:
            raise ValueError("Tape is not recording.")
        try:
            self._stop()
            yield
        finally:
            if self._stage == "open" and not self._recording:
                self._start()

    # ---- derivatives ------------------------------------------------------------------------

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
    ) -> Any:
        """The gradient of `target` (the sum of its elements) with respect to `sources`.

        Args:
          target: a tensor or variable, or a nest of them, which are summed.
          sources: tensors or variables in any structure; the result has the same.
          output_gradients: weights of the targets, one per flattened target; ones by default.
          unconnected_gradients: "none" or "zero": what is returned for a source that the target does not depend
            on; or "raise": an error that says why there is no gradient.

        Returns:
          A tensor per source; an IndexedSlices where rows of a table were gathered; None where
          the target does not depend on the source.

        Raises:
          RuntimeError: if a non-persistent tape was used up or never entered.
        """
        unconnected = _unconnected(unconnected_gradients)
        self._use()
        targets = self._targets(target)
        flat_sources = [self._source(s) for s in nest.flatten(sources, GRADIENTS)]
        given = None if output_gradients is None else flat_gradients(output_gradients)
        ys: list = []
        cotangents: list = []
        for i, t in enumerate(targets):
            if not _differentiable(t):
                continue
            ys.append(t)
            if given is None or i >= len(given):
                cotangents.append(None)  # ones
            else:
                cotangents.append(self._cotangent(given[i], t))
        if unconnected is UnconnectedGradients.RAISE or _core.assign_tracker() is not None:
            lines = record()
            if lines is not None and ys:
                lines.asked = self, ys[0]  # an optimizer may ask why there is no gradient
            with self._keeping_records(release=lines is None):
                grads = self._backward(ys, cotangents, flat_sources)
                if unconnected is UnconnectedGradients.RAISE:
                    self._want_connected(targets, sources, grads)
        else:
            grads = self._backward(ys, cotangents, flat_sources)
            if not self._persistent:
                self._release()
        for i, (g, s) in enumerate(zip(grads, flat_sources, strict=True)):
            if g is None or not _differentiable(s):
                grads[i] = ops.zeros_like(s) if unconnected is UnconnectedGradients.ZERO else None
        if isinstance(sources, (_core.Tensor, _core.Variable)):
            return grads[0]
        return nest.pack_sequence_as(sources, grads, GRADIENTS)

    def explain(self, target: Any, source: Any) -> Explanation:
        """Why the gradient of `target` with respect to `source` is None: the cause, the line, and what to do.

        >>> import gradtape as tf
        >>> x = tf.constant(3.0)
        >>> with tf.GradientTape() as tape:
        ...     y = x * x
        >>> print(tape.explain(y, x))
        The source, a tensor of shape (), was never watched: a tape follows tensors only if it is told to.
          Fix: tape.watch(x) inside the context, before x is used; or make it a tf.Variable, and change that by \
v.assign_sub(...): `v = v - ...` makes a tensor of it.

        Lines of your program are known under `with tf.debug.lines():`. A tape that is not persistent must
        be asked before `gradient`, or under `lines()`.

        Returns:
          An `Explanation`: its `cause` in a word or two, `text`, `fix`, and `line`, or None.
        """
        from gradtape._src.debug.explain import explain

        if self._stage == "new":
            raise RuntimeError(_USED)
        return explain(self, target, source)

    def _want_connected(self, targets: list, sources: Any, grads: list) -> None:
        for s, g in zip(nest.flatten(sources, GRADIENTS), grads, strict=True):
            if g is None and targets:
                from gradtape._src.debug.explain import explain

                said = explain(self, targets[0], s)
                raise ValueError(
                    f"gradient: there is no gradient with respect to {_described(s)}. {said}"
                    + more("none-gradients")
                )

    def _use(self) -> None:
        """Checks that the tape may be asked, and ends a non-persistent one's recording."""
        if self._stage != "open":
            raise RuntimeError(_USED)
        if self._persistent:
            if self._recording and not _warned.get("inside"):
                _warned["inside"] = 1
                log.warning(_INSIDE)
        else:
            self._use_up()

    @staticmethod
    def _targets(target: Any) -> list:
        if target is None:
            raise TypeError(
                "Argument `target` should be a list or nested structure of Tensors, Variables or CompositeTensors to be "
                "differentiated, but received None."
            )
        if isinstance(target, _core.Tensor):
            return [target]
        return [GradientTape._end(t, "target") for t in nest.flatten(target, GRADIENTS)]

    def _source(self, source: Any) -> Any:
        if not isinstance(source, (_core.Tensor, _core.Variable)):
            source = GradientTape._end(source, "source")
        return self._adopted[id(source)][1] if id(source) in self._adopted else source

    @staticmethod
    def _end(value: Any, role: str) -> Any:
        leaf = leaf_of(value)
        if leaf is not None:
            return leaf
        if value is None:
            raise TypeError(f"gradient: a {role} is None; expected a Tensor or Variable.")
        hint = (
            "a NumPy array or Python number has left the tape: compute with tf ops inside the context"
            if role == "target"
            else "tf.Variable(value), or tf.constant(value) and tape.watch"
        )
        if hasattr(value, "trainable_variables"):
            hint = "tape.gradient(loss, model.trainable_variables), for its variables"
            if role == "target":
                hint = "the loss of what it gives: loss = loss_fn(y, model(x))"
        raise AttributeError(
            f"gradient: a {role} is not a tensor; expected a Tensor or Variable; got {type(value).__name__!r}. Hint: {hint}."
            + more("none-gradients")
        )

    @staticmethod
    def _cotangent(value: Any, target: Any) -> Any:
        return value if isinstance(value, IndexedSlices) else as_tensor(value, target)

    def jacobian(
        self,
        target: Any,
        sources: Any,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """The matrix of derivatives of every element of `target` with respect to every element of `sources`.

        All rows are computed at once, or as many as fit into `tf.config.jacobian_memory`, in reverse
        or forward mode, whichever needs fewer passes. The last two arguments change nothing.

        Returns:
          For each source a tensor of shape `target.shape + source.shape`, or None.
        """
        from gradtape._src.batching.jacobian import jacobians_of

        unconnected = _unconnected(unconnected_gradients)
        self._use()
        y = self._seen(self._single(target, "jacobian"))
        flat_sources = [self._source(s) for s in nest.flatten(sources, GRADIENTS)]
        places = [i for i, s in enumerate(flat_sources) if _differentiable(s) and _differentiable(y)]
        jacobians: list = [None] * len(flat_sources)
        with self._keeping_records():
            differentiable = jacobians_of(self, y, [flat_sources[i] for i in places])
            for i, j in zip(places, differentiable, strict=True):
                jacobians[i] = j
            if unconnected is UnconnectedGradients.RAISE:
                self._want_connected([y], sources, jacobians)
        for i, (j, s) in enumerate(zip(jacobians, flat_sources, strict=True)):
            if j is None and unconnected is UnconnectedGradients.ZERO:
                jacobians[i] = ops.zeros([*y.shape, *s.shape], s.dtype)
        return nest.pack_sequence_as(sources, jacobians, GRADIENTS)

    @contextlib.contextmanager
    def _keeping_records(self, release: bool = True) -> Iterator[None]:
        """Keeps the records for several passes; afterwards a non-persistent tape releases them."""
        persistent = self._persistent
        try:
            self._configure(True, self._watch_accessed)
            yield
        finally:
            self._configure(persistent, self._watch_accessed)
            if release and not persistent:
                self._release()

    @staticmethod
    def _single(target: Any, method: str) -> Any:
        leaf = target._dense() if isinstance(target, IndexedSlices) else leaf_of(target)
        if leaf is None:
            raise AttributeError(
                f"{method}: expected one Tensor; got {type(target).__name__!r}. Hint: call {method} for each target."
            )
        return leaf

    def _seen(self, target: Any) -> Any:
        """The target as a tensor: a variable is read, and the tape sees that."""
        if not isinstance(target, _core.Variable):
            return target
        with _core.Scope(tapes=(self,)):
            return target._read()

    def batch_jacobian(
        self,
        target: Any,
        source: Any,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """The Jacobian of each example of a batch: shape `[batch, *target[1:], *source[1:]]`.

        Row i of `target` must depend on row i of `source` only.
        """
        from gradtape._src.batching.jacobian import batch_jacobian_of

        unconnected = _unconnected(unconnected_gradients)
        y, x = self._single(target, "batch_jacobian"), leaf_of(source)
        if x is None:
            raise AttributeError(
                f"batch_jacobian: expected one Tensor as source; got {type(source).__name__!r}."
            )
        for shape in (y.shape, x.shape):
            if len(shape) < 2:
                raise ValueError(f"Shape {shape} must have rank at least 2")
        if y.shape[0] != x.shape[0]:
            raise ValueError(
                f"Need first dimension of target shape ({y.shape}) and source shape ({x.shape}) to match."
            )
        self._use()
        y = self._seen(y)
        with self._keeping_records():
            jacobian = batch_jacobian_of(self, y, x) if _differentiable(y) and _differentiable(x) else None
            if unconnected is UnconnectedGradients.RAISE:
                self._want_connected([y], source, [jacobian])
        return ops.zeros([*y.shape, *tuple(x.shape)[1:]], x.dtype) if jacobian is None else jacobian

    # ---- looking at the tape ------------------------------------------------------------------

    _repr_html_ = above.shown

    def __repr__(self) -> str:
        kind = "persistent, " if self._persistent else ""
        stage = "recording" if self._recording else "not recording" if self._stage == "open" else self._stage
        return f"<GradientTape: {kind}{stage}, {self._size} records>"

    def memory(self) -> Memory:
        """The bytes that the tape keeps alive, by op, and by line of your program under `tf.debug.lines()`.

        >>> import gradtape as tf
        >>> x = tf.Variable(tf.ones([1024]))
        >>> with tf.GradientTape() as tape:
        ...     y = tf.reduce_sum(tf.exp(x + 1.0))
        >>> print(tape.memory())
        The tape keeps 4.0 KB in 3 records.
          kept    share  values  records  op
        4.0 KB  100.0 %       1        1  exp
           0 B    0.0 %       0        1  add
           0 B    0.0 %       0        1  sum
        By line of the program: run under `with tf.debug.lines():`.

        Returns:
          A `Memory`: its `total` in bytes, `by_op` and `by_line`. Each buffer counts once.
        """
        from gradtape._src.debug.memory import memory

        return memory(self)

    def health(self, target: Any, sources: Any = None, optimizer: Any = None) -> Health:
        """The state of gradients and activations: norms, ratios, zeros, NaNs, dead and saturated units; worst first.

        >>> import gradtape as tf
        >>> w = tf.Variable([[1.0, -1.0], [2.0, -3.0]], name="w")
        >>> with tf.GradientTape() as tape:
        ...     loss = tf.reduce_sum(tf.nn.relu(tf.matmul([[1.0, 2.0]], w)))
        >>> print(tape.health(loss, [w]))
        name  shape  gradient  weight  ratio  zeros  not finite
        w     [2,2]      2.24    3.87  0.577  50.0%           0
        <BLANKLINE>
        activation  shape  units  dead  saturated  near an end
        relu        [1,2]      2     1          0         0.0%

        Ask before `gradient`: the tape is not used up. A compiled function is one record, so its activations
        are seen only under `tf.debug.lines()`, where functions run eagerly.

        Args:
          target: what the gradients are of.
          sources: variables or watched tensors in any structure; by default all watched variables.
          optimizer: what will apply the gradients to these variables: the ratio is then that of its update to the
            weights. A step is tried and taken back.

        Returns:
          A `Health`: `sources`, `units`, `troubled`, and `plot(file)`.
        """
        from gradtape._src.debug.health import health

        if self._stage != "open" and record() is None:
            raise RuntimeError(_USED)
        return health(self, self._targets(target), sources, optimizer)

    def draw(self, target: Any = None, file: Any = None) -> str:
        """The recorded graph as SVG, or in `file` (.svg, or .html: a page to zoom and click in).

        In a notebook it is a picture: drag and zoom it, hover over an op to read about it, click to see the way to
        its sources.

        >>> import gradtape as tf
        >>> x = tf.Variable(3.0, name="x")
        >>> with tf.GradientTape() as tape:
        ...     y = x * x
        >>> tape.draw(y).startswith("<svg")
        True

        Args:
          target: draw only what it depends on, and show the norm of its gradient at every op. Of very large tapes,
            the last 4,000 records are drawn; an earlier target shows others.
          file: where to write; the page works without a network.

        Returns:
          The text of the SVG, or the path of the file.
        """
        from gradtape._src.debug.draw import draw

        return draw(self, None if target is None else self._targets(target), file)


if TYPE_CHECKING:

    def _promise(tape: GradientTape, tracker: Tracker) -> tuple[protocol.Tape, protocol.Tracker]:
        return tape, tracker
