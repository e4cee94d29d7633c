# Decorators that keep the types of what they are given: `@tf.function` is no `Any` to a type checker. Written by hand.
from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from gradtape._src.functions.concrete import ConcreteFunction

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R", covariant=True)
T = TypeVar("T")

class Function(Generic[P, R]):
    """What `tf.function` returns. Call it like the Python function it was made of."""

    python_function: Callable[P, R]
    name: str
    input_signature: Any
    autograph: bool
    jit_compile: bool | None
    __name__: str
    __qualname__: str
    @property
    def function_spec(self) -> Any: ...
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def __get__(self, instance: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(self: Function[Concatenate[Any, Q], T], instance: object, owner: Any = None) -> Function[Q, T]: ...
    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction: ...
    def experimental_get_tracing_count(self) -> int: ...
    @property
    def function_type(self) -> Any: ...
    def pretty_printed_concrete_signatures(self, verbose: bool = True) -> str: ...
    def pretty(self, *args: Any, **kwargs: Any) -> str: ...
    def profile(self, *args: Any, **kwargs: Any) -> Any: ...

@overload
def function(
    func: Callable[P, T],
    input_signature: Any = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    experimental_implements: str | None = None,
    experimental_autograph_options: Any = None,
    experimental_attributes: dict[str, Any] | None = None,
    experimental_relax_shapes: bool | None = None,
    experimental_compile: bool | None = None,
    experimental_follow_type_hints: bool | None = None,
    *,
    check: bool = False,
) -> Function[P, T]:
    """Makes a Python function run as a graph; usable with and without arguments."""

@overload
def function(
    func: None = None,
    input_signature: Any = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    experimental_implements: str | None = None,
    experimental_autograph_options: Any = None,
    experimental_attributes: dict[str, Any] | None = None,
    experimental_relax_shapes: bool | None = None,
    experimental_compile: bool | None = None,
    experimental_follow_type_hints: bool | None = None,
    *,
    check: bool = False,
) -> _Decorator: ...

class _Decorator:
    def __call__(self, func: Callable[P, T], /) -> Function[P, T]: ...

class _CustomGradient:
    def __call__(self, f: Callable[P, tuple[T, Callable[..., Any]]], /) -> Callable[P, T]: ...

@overload
def custom_gradient(f: Callable[P, tuple[T, Callable[..., Any]]]) -> Callable[P, T]:
    """Decorator of a function that says itself what its gradient is."""

@overload
def custom_gradient(f: None = None) -> _CustomGradient: ...
def recompute_grad(f: Callable[P, T]) -> Callable[P, T]:
    """A function like `f` that keeps nothing for its gradient but its arguments, and runs `f` again."""

def grad_pass_through(f: Callable[P, T]) -> Callable[P, T]:
    """A function like `f` whose gradient is that of the identity: `floor`, `round`, quantisation."""
