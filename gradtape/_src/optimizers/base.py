"""`Optimizer`: the options, the state and the methods that all optimizers share.

What a step computes is in `step`, the rules of the individual optimizers are in `rules`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from gradtape import _core
from gradtape._src import ops
from gradtape._src.base import replicas
from gradtape._src.base.calls import one_call
from gradtape._src.base.contexts import aside
from gradtape._src.optimizers import step, summed
from gradtape._src.optimizers.programs import Programs, held
from gradtape._src.optimizers.schedules import LearningRateSchedule, deserialize, serialize
from gradtape._src.state import initializers
from gradtape._src.state.variable import Variable
from gradtape._src.tapes.tape import GradientTape
from gradtape._src.tensors.indexed_slices import IndexedSlices

if TYPE_CHECKING:

    class CommonButDecay(TypedDict, total=False):
        """The arguments of all optimizers, with weight decay, which AdamW declares itself."""

        clipnorm: float | None
        clipvalue: float | None
        global_clipnorm: float | None
        use_ema: bool
        ema_momentum: float
        ema_overwrite_frequency: int | None
        loss_scale_factor: float | None
        gradient_accumulation_steps: int | None
        name: str | None
        lr: Any
        decay: float | None

    class Common(CommonButDecay, total=False):
        """What all optimizers take."""

        weight_decay: float | None


class _Signature:
    """The signature that `inspect.signature` shows for an optimizer: its own arguments, then the common ones."""

    def __get__(self, instance: Any, cls: type) -> inspect.Signature:
        own = list(inspect.signature(cls.__init__).parameters.values())[1:]  # type: ignore[misc]
        common = inspect.signature(Optimizer.__init__).parameters.values()
        if own and own[-1].kind is inspect.Parameter.VAR_KEYWORD and cls is not Optimizer:
            taken = {"self", *(p.name for p in own)}
            more = [
                p.replace(kind=p.KEYWORD_ONLY)
                for p in common
                if p.name not in taken and p.kind is not p.VAR_KEYWORD
            ]
            own[-1:] = more
        return inspect.Signature(own)


class Optimizer:
    """Updates variables from their gradients; the base of all optimizers.

    A step (`apply_gradients`) is one native program, traced when a set of variables is first
    seen. Inside a `tf.function` it becomes part of that function's graph.

    Args:
      learning_rate: a number, a tensor, a variable, a schedule, or a function without arguments.
      weight_decay: `v -= v * weight_decay * learning_rate` before each update.
      clipnorm: the largest L2 norm of a single gradient.
      clipvalue: the largest absolute value of an element.
      global_clipnorm: the largest L2 norm of all gradients together.
      use_ema: keep a moving average of the variables; `finalize_variable_values` takes it.
      ema_momentum: the weight of the old average.
      ema_overwrite_frequency: after how many steps the variables are set to their average.
      loss_scale_factor: what `scale_loss` multiplies by and gradients are divided by.
      gradient_accumulation_steps: how many calls make one update, with the mean of their gradients.
      name: the name of the optimizer.
      lr, decay: as in Keras 2: the learning rate; its decay `lr / (1 + decay * iterations)`.

    A custom optimizer defines its slots and how a variable is updated:

    >>> import gradtape as tf
    >>> class SignedMomentum(tf.optimizers.Optimizer):
    ...     def slots(self, v):
    ...         return {"momentum": 0.0}
    ...     def update(self, v, g, slots, lr, step):
    ...         slots.momentum = 0.9 * slots.momentum + g
    ...         return v - lr * tf.sign(slots.momentum)
    >>> v = tf.Variable([1.0, 2.0])
    >>> _ = SignedMomentum(0.5).apply_gradients([(tf.constant([3.0, -1.0]), v)])
    >>> v.numpy()
    array([0.5, 2.5], dtype=float32)
    """

    __signature__ = _Signature()

    def __init__(
        self,
        learning_rate: Any = 0.001,
        weight_decay: float | None = None,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
        use_ema: bool = False,
        ema_momentum: float = 0.99,
        ema_overwrite_frequency: int | None = None,
        loss_scale_factor: float | None = None,
        gradient_accumulation_steps: int | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        self._forget_programs()
        learning_rate = kwargs.pop("lr", learning_rate)
        self._decay = kwargs.pop("decay", None) or 0.0
        if kwargs:
            raise ValueError(f"Argument(s) not recognized: {kwargs}")
        if sum(a is not None for a in (clipnorm, clipvalue, global_clipnorm)) > 1:
            raise ValueError(
                "Only one of `clipnorm`, `clipvalue` and `global_clipnorm` can be set. Received: "
                f"clipnorm={clipnorm}, clipvalue={clipvalue}, global_clipnorm={global_clipnorm}"
            )
        step.want_scale("loss_scale_factor", loss_scale_factor)
        if gradient_accumulation_steps and not gradient_accumulation_steps >= 2:
            raise ValueError(
                "`gradient_accumulation_steps` must be an integer >= 2. "
                f"Received: gradient_accumulation_steps={gradient_accumulation_steps}"
            )
        if use_ema and not 0 <= ema_momentum <= 1:
            raise ValueError(
                f"`ema_momentum` must be in the range [0, 1]. Received: ema_momentum={ema_momentum}"
            )
        if (
            use_ema
            and ema_overwrite_frequency
            and (type(ema_overwrite_frequency) is not int or ema_overwrite_frequency < 1)
        ):
            raise ValueError(
                "`ema_overwrite_frequency` must be an integer >= 1 or None. "
                f"Received: ema_overwrite_frequency={ema_overwrite_frequency}"
            )
        self.name = name or re.sub("([a-z0-9])([A-Z])", r"\1_\2", type(self).__name__).lower()
        self.weight_decay = weight_decay
        self.clipnorm = clipnorm
        self.clipvalue = clipvalue
        self.global_clipnorm = global_clipnorm
        self.use_ema = use_ema
        self.ema_momentum = ema_momentum
        self.ema_overwrite_frequency = ema_overwrite_frequency
        self.loss_scale_factor = loss_scale_factor
        self.gradient_accumulation_steps = gradient_accumulation_steps
        self.built = False
        self._trainable_variables: list[Any] = []
        self._slots: dict[int, dict[str, Variable]] = {}  # by id of the variable
        self._scalars: dict[str, Variable] = {}
        self._added: list[Variable] = []  # by subclasses, with `add_variable`
        self._undecayed: tuple[dict[int, Any], re.Pattern | None] = ({}, None)
        self._iterations: _core.Variable = self._new_variable(np.int64(0), "iteration")
        self._rate_now: Any = None  # the rate of a step where Python code computes it
        self._set_rate(learning_rate)

    def __setattr__(self, name: str, value: Any) -> None:
        # Options are constants of the programs.
        if name[0] != "_" and name != "built":
            self._forget_programs()
        object.__setattr__(self, name, value)

    def _forget_programs(self) -> None:
        self._programs = Programs()
        self._constrain_after = False  # constraints that are not tensor arithmetic run after the program

    # ---- what a subclass defines ---------------------------------------------------------------

    @property
    def touches_rows_only(self) -> bool:
        """Whether a zero gradient changes nothing: then a sparse gradient updates only its own rows."""
        return False

    def slots(self, v: Any) -> dict[str, Any]:
        """The slots of variable `v`: names and initial values (a number fills the shape of `v`)."""
        return {}

    def scalars(self) -> dict[str, float]:
        """State shared by all variables: names and initial values."""
        return {}

    def begin(self, scalars: Any, step: Any) -> None:
        """Changes the scalars at the start of a step."""

    def update(self, v: Any, g: Any, slots: Any, lr: Any, step: Any) -> Any:
        """The new value of a variable; new slots are set as attributes of `slots`."""
        raise NotImplementedError(
            f"{type(self).__name__} must have a method `update(self, v, g, slots, lr, step)`."
        )

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Changes `variable` and its slots; what optimizers written for Keras override."""
        step.update_variable(self, gradient, variable, learning_rate)

    # ---- the learning rate ---------------------------------------------------------------------

    def _set_rate(self, rate: Any) -> None:
        self._forget_programs()
        if callable(rate) and not isinstance(rate, (_core.Tensor, _core.Variable)):
            self._learning_rate = rate
            if not getattr(rate, "_traceable", False):
                self._rate_now = self._new_variable(np.float32(0), "learning_rate")
            return
        if isinstance(rate, dict):
            self._learning_rate = deserialize(rate)
        elif isinstance(rate, _core.Variable):
            self._learning_rate = rate
        else:
            try:
                self._learning_rate = self._new_variable(rate, "learning_rate", "float32")
            except (TypeError, ValueError) as e:
                raise ValueError(
                    "Argument `learning_rate` should be float, or an instance of LearningRateSchedule, "
                    "or a callable. "
                    f"Received instead: learning_rate={rate!r}"
                ) from e

    @property
    def learning_rate(self) -> Any:
        """The variable that holds the rate; the current value where a schedule or function computes it."""
        rate = self._learning_rate
        return rate if isinstance(rate, _core.Variable) else self._called_rate()

    @learning_rate.setter
    def learning_rate(self, rate: Any) -> None:
        old = self._learning_rate
        if callable(rate) and not isinstance(rate, (_core.Tensor, _core.Variable)):
            self._set_rate(rate)
        elif isinstance(old, LearningRateSchedule):
            raise TypeError(
                "This optimizer was created with a `LearningRateSchedule` object as its `learning_rate` "
                "constructor "
                "argument, hence its learning rate is not settable. If you need the learning rate to be "
                "settable, you "
                "should instantiate the optimizer with a float `learning_rate` argument."
            )
        elif isinstance(old, _core.Variable):
            old.assign(rate)
        else:
            self._set_rate(rate)

    lr = learning_rate

    def _called_rate(self) -> Any:
        rate = self._learning_rate
        return rate(self._iterations) if isinstance(rate, LearningRateSchedule) else rate()

    # ---- state ---------------------------------------------------------------------------------

    @property
    def iterations(self) -> Any:
        """The number of updates done: a variable, or a tensor when several calls make one update."""
        k = self.gradient_accumulation_steps
        return self._iterations // k if k else self._iterations

    @iterations.setter
    def iterations(self, variable: Any) -> None:
        if isinstance(variable, _core.Variable):
            self._iterations = variable
        else:
            self._iterations.assign(variable)

    @property
    def variables(self) -> list[Variable]:
        """The state: number of calls, learning rate, then the slots of each variable."""
        rate = [self._learning_rate] if isinstance(self._learning_rate, _core.Variable) else []
        slots = [s for v in self._trainable_variables for s in self._slots[id(v)].values()]
        return _Variables([self._iterations, *rate, *slots, *self._scalars.values(), *self._added])

    @property
    def weights(self) -> list[Variable]:
        """The same as `variables`."""
        return self.variables

    def build(self, var_list: Iterable[Any]) -> None:
        """Creates the slots of the variables that have none yet."""
        var_list = [held(v) for v in var_list]
        step.require_variables(var_list)
        for v in var_list:
            if id(v) not in self._slots:
                self._trainable_variables.append(v)
                self._slots[id(v)] = self._new_slots(v)
        for name, value in self.scalars().items():
            if name not in self._scalars:
                self._scalars[name] = self._new_variable(np.float32(value), name)
        self.built = True

    def _new_slots(self, v: Any) -> dict[str, Variable]:
        first: dict[str, Any] = {}
        with aside():
            if self.use_ema:
                # A variable first seen at the first step: its average starts with its value after that step.
                first["average"] = v._peek() if int(self._iterations.numpy()) else 0
            if self.gradient_accumulation_steps:
                first["gradient_accumulator"] = 0
            first.update(self.slots(v))
            slots = {}
            for name, value in first.items():
                if not isinstance(value, _core.Tensor):
                    value = ops.fill(v._value_shape, ops.cast(value, v.dtype))
                slots[name] = self._new_variable(value, f"{re.sub('[/:]', '_', v.name)}_{name}")
        return slots

    def _new_variable(self, value: Any, name: str, dtype: Any = None) -> Variable:
        with aside():
            return Variable(value, trainable=False, name=name, dtype=dtype)

    def add_variable(
        self, shape: Any, initializer: Any = "zeros", dtype: Any = None, name: str | None = None
    ) -> Variable:
        """Adds a variable to the optimizer's state, for subclasses written for Keras."""
        if isinstance(initializer, str):
            initializer = getattr(initializers, f"{initializer}_initializer")()
        self._added.append(
            self._new_variable(lambda: initializer(shape, dtype or "float32"), name or "variable")
        )
        return self._added[-1]

    def add_variable_from_reference(
        self, reference_variable: Any, name: str = "var", initializer: Any = "zeros"
    ) -> Variable:
        """A variable of the shape and type of another one."""
        v = reference_variable
        return self.add_variable(v.shape, initializer, v.dtype, f"{re.sub('[/:]', '_', v.name)}_{name}")

    def add_optimizer_variables(
        self, trainable_variables: Iterable[Any], name: Any, initializer: Any = "zeros"
    ) -> Any:
        """One such variable for each variable; for a list of names, a tuple of lists."""
        if isinstance(name, str):
            return [self.add_variable_from_reference(v, name, initializer) for v in trainable_variables]
        return tuple(self.add_optimizer_variables(trainable_variables, n, initializer) for n in name)

    def _get_variable_index(self, variable: Any) -> int:
        return next(i for i, v in enumerate(self._trainable_variables) if v is variable)

    def get_slot_names(self) -> list[str]:
        """The names of the slots that variables have."""
        return list(dict.fromkeys(name for slots in self._slots.values() for name in slots))

    def get_slot(self, var: Any, slot_name: str) -> Variable:
        """The slot of a variable by name; Keras 2 called Adam's slots `"m"` and `"v"`."""
        slots = self._slots[id(var)]
        return slots[
            slot_name if slot_name in slots else {"m": "momentum", "v": "velocity"}.get(slot_name, slot_name)
        ]

    def get_weights(self) -> list[np.ndarray]:
        """The values of `variables`."""
        return [v.numpy() for v in self.variables]

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Sets `variables` to the values `get_weights` gave.

        Raises:
          ValueError: if the optimizer is not built, or a shape or the number of values is another
            one; nothing is changed then.
        """
        if not self.built:
            raise ValueError(
                "You are calling `set_weights()` on an optimizer that has not yet been built. Please call "
                "`optimizer.build(trainable_variables)` to create the optimizer weights before calling "
                "`set_weights()`."
            )
        step.set_all(self.variables, list(weights))

    def __getstate__(self) -> dict[str, Any]:
        # Slots are looked up by the identity of variables, and a copy has new variables.
        slots = [self._slots[id(v)] for v in self._trainable_variables]
        return {**self.__dict__, "_slots": slots}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._slots = dict(zip(map(id, self._trainable_variables), state["_slots"], strict=True))

    def get_config(self) -> dict[str, Any]:
        """The constructor arguments that recreate this optimizer, without its state."""
        import inspect

        rate = self._learning_rate
        if isinstance(rate, LearningRateSchedule):
            rate = serialize(rate)
        elif isinstance(rate, _core.Variable):
            rate = float(rate.numpy())
        names: dict[str, None] = {}
        for cls in (Optimizer, *type(self).__mro__):
            if "__init__" in cls.__dict__ and issubclass(cls, Optimizer):
                names.update(dict.fromkeys(inspect.signature(cls.__init__).parameters))
        config = {n: getattr(self, n) for n in names if n != "learning_rate" and hasattr(self, n)}
        return {
            "name": self.name,
            "learning_rate": rate,
            **config,
            **({"decay": self._decay} if self._decay else {}),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> Optimizer:
        """An optimizer with this configuration."""
        config = dict(config)
        if isinstance(config.get("learning_rate"), dict):
            config["learning_rate"] = deserialize(config["learning_rate"], custom_objects)
        return cls(**config)

    def exclude_from_weight_decay(
        self, var_list: Iterable[Any] | None = None, var_names: Iterable[str] | None = None
    ) -> None:
        """Excludes variables from weight decay: the variables themselves, or by a part of their name."""
        if self.built:
            raise ValueError(
                "`exclude_from_weight_decay()` can only be configured before the optimizer is built."
            )
        pattern = re.compile("|".join(var_names)) if var_names else None
        self._undecayed = (
            {id(v): v for v in var_list or ()},
            pattern,
        )  # referenced here so that their ids are not reused

    # ---- steps ---------------------------------------------------------------------------------

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, Any]],
        name: str | None = None,
        experimental_aggregate_gradients: bool = True,
        skip_gradients_aggregation: bool = False,
        **_: Any,
    ) -> Any:
        """Takes one step. In a replica of a strategy, gradients are summed over all replicas first.

        Args:
          grads_and_vars: pairs of a gradient (tensor, IndexedSlices or None) and its variable.
          name: accepted as in Keras 2.
          experimental_aggregate_gradients, skip_gradients_aggregation: False and True, where gradients are sums over
            all replicas already.

        Returns:
          The variable that counts the steps.

        Raises:
          ValueError: if all gradients are None, or there is no pair.
        """
        replica = replicas.current()
        if replica is None:
            return self._apply_pairs(grads_and_vars)
        grads, variables = step.unzip(grads_and_vars)
        aggregate = experimental_aggregate_gradients and not skip_gradients_aggregation
        self._apply_in(replica, grads, variables, aggregate)
        return self._iterations

    @one_call
    def _apply_pairs(self, grads_and_vars: Iterable[tuple[Any, Any]]) -> Any:
        pairs = list(grads_and_vars)
        # The usual case in one native call: the same variables as in the last step.
        last = self._programs.last
        if last is None or not last.step(pairs):
            grads, variables = step.unzip(pairs)
            self.apply(grads, variables)
        return self._iterations

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[Any] | None = None) -> None:
        """Takes one step; `variables` defaults to those it was built with, in order."""
        replica = replicas.current()
        if replica is None:
            self._apply_grads(grads, trainable_variables)
        else:
            self._apply_in(replica, grads, trainable_variables)

    def _apply_in(self, replica: Any, grads: Sequence[Any], variables: Any, aggregate: bool = True) -> None:
        """The step of all replicas: each clips its own gradients, as Keras does, and their sums are applied once."""
        clips = not self.gradient_accumulation_steps and (
            self.clipnorm or self.clipvalue or self.global_clipnorm
        )
        scale = self.loss_scale_factor or 1.0

        def clip(own: list) -> list:
            if not clips:
                return own
            unscaled = [
                step.mapped(
                    lambda x: x / scale, g if isinstance(g, IndexedSlices) else ops.convert_to_tensor(g)
                )
                for g in own
            ]
            return [step.mapped(lambda x: x * scale, g) for g in step.clipped(self, unscaled)]

        def apply(sums: list) -> None:
            if not clips:
                self._apply_grads(sums, variables)
                return
            of = [held(v) for v in (self._known_variables(sums) if variables is None else variables)]
            step.take(self, *self._prepare(sums, of), inline=True, clip=False)

        summed.in_replica(replica, grads, clip, apply, aggregate)

    @one_call
    def _apply_grads(self, grads: Sequence[Any], trainable_variables: Sequence[Any] | None = None) -> None:
        if trainable_variables is None:
            trainable_variables = self._known_variables(grads)
        trainable_variables = [held(v) for v in trainable_variables]
        if _core.current_trace() is None and _core.assign_tracker() is None:
            step.run(self, grads, trainable_variables)
            return
        grads, variables = self._prepare(grads, trainable_variables)
        step.take(self, grads, variables, inline=True)

    def _known_variables(self, grads: Sequence[Any]) -> list[Any]:
        if not self.built:
            raise ValueError(
                "When passing `grads` without `variables`, the optimizer must already be built on a "
                "list of variables. "
                "Call `optimizer.build(trainable_variables)` first. "
            )
        if len(grads) != len(self._trainable_variables):
            raise ValueError(
                "When passing `grads` as a list of gradient tensors, the gradients must match "
                "`optimizer.variables` "
                f"one-to-one. Received a list of {len(grads)} gradients, but the optimizer is tracking "
                f"{len(self._trainable_variables)} trainable variables."
            )
        return self._trainable_variables

    def _prepare(self, grads: Sequence[Any], variables: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The gradients that are not None, checked, as tensors; makes slots for all variables."""
        grads, connected = step.present(grads, variables)
        if not self.built or any(id(v) not in self._slots for v in variables):
            self.build(variables)
        return grads, connected

    def minimize(
        self, loss: Any, var_list: Any, grad_loss: Any = None, name: str | None = None, tape: Any = None
    ) -> Any:
        """Differentiates the loss and takes one step.

        Args:
          loss: a function without arguments, or a tensor that `tape` recorded.
          var_list: the variables, or a function that returns them.
          grad_loss: the cotangent of the loss, 1 by default.
          tape: the tape of the loss, if that is a tensor.
        """
        return self.apply_gradients(self.compute_gradients(loss, var_list, grad_loss, tape))

    def compute_gradients(
        self, loss: Any, var_list: Any, grad_loss: Any = None, tape: Any = None
    ) -> list[tuple]:
        """The first half of `minimize`: pairs of gradients and variables."""
        if not callable(loss) and tape is None:
            raise ValueError(
                f"`tape` is required when a `Tensor` loss is passed. Received: loss={loss}, tape={tape}."
            )
        with tape or GradientTape() as tape:
            value = self.scale_loss(loss() if callable(loss) else loss)
            variables = list(var_list() if callable(var_list) else var_list)
        return list(zip(tape.gradient(value, variables, grad_loss), variables, strict=True))

    def scale_loss(self, loss: Any) -> Any:
        """The loss times `loss_scale_factor`, which steps divide gradients by."""
        return loss if self.loss_scale_factor is None else loss * self.loss_scale_factor

    def finalize_variable_values(self, var_list: Iterable[Any]) -> None:
        """With `use_ema`, sets the variables to their averages."""
        if not self.use_ema:
            return
        var_list = list(var_list)
        unknown = [v.name for v in var_list if id(v) not in self._slots]
        if unknown:
            raise ValueError(
                f"finalize_variable_values: there is no average of {unknown}: no step changed them."
            )
        for v in var_list:
            v.assign(self._slots[id(v)]["average"])


class _Variables(list):
    """A list that Keras-2 code may call: `optimizer.variables()`."""

    def __call__(self) -> list:
        return self
