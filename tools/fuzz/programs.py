"""Random programs: a body that computes, assigns, branches and loops, with the same results in every mode.

A case is the text of a program: variables, inputs, and `body(...)`, which returns some results. `program_runs` runs
it eagerly, with compiled passes, as a function with the tape inside and outside of it, in forward mode, and
compares. Conditions depend on inputs and counters only, and steps of low precision are smooth, so that rounding
errors stay small. `FREE` in a text says that control flow depends on values: where one branch does not use a
source, a function returns zeros and eager code may return None, as in TensorFlow.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import NamedTuple

import numpy as np

from tools.fuzz import harness

_REAL = (
    "tf.sin tf.tanh tf.sigmoid tf.square tf.negative tf.identity tf.math.erf tf.nn.softplus tf.cos".split()
)
_KINKED = "tf.abs tf.nn.relu tf.nn.elu tf.sign tf.floor tf.nn.leaky_relu".split()  # not in low precision
_COMPLEX = "tf.sin tf.square tf.negative tf.identity tf.math.conj".split()
_WEIGHTS = {"float32": 7, "float64": 6, "bfloat16": 2, "float16": 1, "complex64": 2, "complex128": 2}
_EXACT = ("float32", "float64")


class _Value(NamedTuple):
    name: str
    dtype: str
    shape: tuple[int, ...]


class _Writer:
    """One program, written line by line."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.dtype = rng.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
        self.shapes = [(), (rng.randint(2, 4),), (rng.randint(2, 3), rng.randint(2, 4))]
        self.top: list[str] = []  # lines before the body
        self.lines: list[str] = []
        self.indent = "    "
        self.pool: list[_Value] = []
        self.variables: list[_Value] = []
        self.names = 0
        self.free = False
        self.sized = rng.choice((0, 0, 2))  # how often sizes depend on values; in most programs never
        self.plain = False  # only ops are allowed: in branches, and in functions that are called

    # ---- words ------------------------------------------------------------------------------

    def fresh(self, letter: str = "a") -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def line(self, text: str) -> None:
        self.lines.append(self.indent + text)

    def put(self, expression: str, dtype: str, shape: tuple[int, ...]) -> _Value:
        value = _Value(self.fresh(), dtype, shape)
        self.line(f"{value.name} = {expression}")
        self.pool.append(value)
        return value

    def number(self) -> float:
        return round(self.rng.uniform(-1.5, 1.5), 2) or 0.5

    def array(self, shape: tuple[int, ...], dtype: str) -> str:
        values = np.array([self.number() for _ in range(int(np.prod(shape, dtype=int)))]).reshape(shape)
        if dtype.startswith("complex"):
            values = values + 1j * self.number()
        return f"tf.constant({values.tolist()!r}, tf.{dtype})"

    def any(self, dtype: str | None = None, shape: tuple[int, ...] | None = None) -> _Value | None:
        """A value or a variable, mostly a recent one."""
        fit = [
            v
            for v in self.pool + self.variables
            if dtype in (None, v.dtype) and shape in (None, v.shape) and not v.dtype.startswith("int")
        ]
        if not fit:
            return None
        return self.rng.choice(fit[-4:] if self.rng.random() < 0.5 else fit)

    def made(self, dtype: str, shape: tuple[int, ...]) -> str:
        """An expression of this type and shape."""
        value = self.any(dtype, shape)
        if value is not None:
            return value.name
        value = self.any(dtype)
        if value is not None and not value.shape:
            return f"({value.name} * tf.ones({list(shape)}, tf.{dtype}))"
        if value is not None and self.rng.random() < 0.7:
            return f"(tf.reduce_mean({value.name}) * tf.ones({list(shape)}, tf.{dtype}))"
        return self.array(shape, dtype)

    def condition(self) -> str:
        """A condition that rounding errors cannot change: it reads inputs and constants."""
        x = self.rng.choice(self.inputs)
        real = f"tf.math.real({x.name})" if x.dtype.startswith("complex") else x.name
        return f"tf.reduce_sum({real}) {self.rng.choice('<>')} {self.number()}"

    # ---- steps ------------------------------------------------------------------------------

    def unary(self, a: _Value) -> str:
        if a.dtype.startswith("complex"):
            return f"{self.rng.choice(_COMPLEX)}({a.name})"
        names = _REAL + (_KINKED if a.dtype in _EXACT else [])
        return f"{self.rng.choice(names)}({a.name})"

    def step_unary(self) -> None:
        a = self.any()
        if a:
            self.put(self.unary(a), a.dtype, a.shape)

    def step_binary(self) -> None:
        a = self.any()
        b = a and self.any(a.dtype)
        if not a or not b:
            return
        try:
            shape = np.broadcast_shapes(a.shape, b.shape)
        except ValueError:
            return
        forms = ["{0} + {1}", "{0} - {1}", "{0} * {1}", "tf.add_n([{0} * {1}, {0} * {1}])", "{0} * 0.5 + {1}"]
        if a.dtype in _EXACT:
            forms += ["tf.maximum({0}, {1})", "{0} / (1.5 + {1} * {1})", "tf.atan2({0}, 2.0 + {1} * {1})"]
            forms += ["tf.math.divide_no_nan({0}, {1} * {1} + 1.0)", "tf.math.squared_difference({0}, {1})"]
        self.put(self.rng.choice(forms).format(a.name, b.name), a.dtype, shape)

    def step_reduce(self) -> None:
        a = self.any()
        if a and a.shape:
            axis = self.rng.randrange(len(a.shape))
            name = self.rng.choice(
                ["sum", "mean", "max", "logsumexp"] if a.dtype in _EXACT else ["sum", "mean"]
            )
            shape = a.shape[:axis] + a.shape[axis + 1 :]
            self.put(f"tf.reduce_{name}({a.name}, {axis})", a.dtype, shape)

    def step_move(self) -> None:
        a = self.any()
        if not a or not a.shape:
            return
        pick = self.rng.randrange(6)
        if pick == 0 and len(a.shape) == 2:
            self.put(f"tf.transpose({a.name})", a.dtype, a.shape[::-1])
        elif pick == 1:
            self.put(f"tf.reshape({a.name}, [-1])", a.dtype, (int(np.prod(a.shape)),))
        elif pick == 2:
            self.put(f"{a.name}[0]", a.dtype, a.shape[1:])
        elif pick == 3:
            self.put(f"tf.reverse({a.name}, [0])", a.dtype, a.shape)
        elif pick == 4:
            n = self.rng.randint(1, 3)
            rows = [self.rng.randrange(a.shape[0]) for _ in range(n)]
            self.put(f"tf.gather({a.name}, {rows})", a.dtype, (n, *a.shape[1:]))
        elif a.shape[0] < 5:
            self.put(
                f"tf.concat([{a.name}, {self.made(a.dtype, a.shape)}], 0)",
                a.dtype,
                (2 * a.shape[0], *a.shape[1:]),
            )

    def step_matmul(self) -> None:
        a = self.any(shape=self.shapes[2])
        if a:
            self.put(f"tf.matmul({a.name}, {a.name}, transpose_b=True)", a.dtype, (a.shape[0],) * 2)

    def step_select(self) -> None:
        a = self.any()
        x = self.rng.choice(self.inputs)
        if a and x.shape == a.shape and x.dtype in _EXACT:
            self.put(
                f"tf.where({x.name} > {self.number()}, {a.name}, {self.made(a.dtype, a.shape)})",
                a.dtype,
                a.shape,
            )

    def step_sized(self) -> None:
        """An expression whose sizes depend on values of an input, which rounding errors do not change."""
        a = self.any()
        fit = [x for x in self.inputs if x.shape and a and a.shape[:1] == x.shape[:1]]
        if not a or not fit:
            return
        x = self.rng.choice(fit)
        real = f"tf.math.real({x.name})" if x.dtype.startswith("complex") else x.name
        truth = f"({real} > {self.number()})"
        row = truth if len(x.shape) == 1 else f"tf.reduce_any{truth[:-1]}, 1)"
        n = a.shape[0]
        forms = [
            f"tf.boolean_mask({a.name}, {row})",
            f"{a.name}[{row}]",
            f"tf.gather({a.name}, tf.where({row})[:, 0])",
            f"tf.gather({a.name}, tf.unique(tf.cast(tf.abs(tf.reshape({real}, [-1])) * 3, tf.int32) % {n})[0])",
            f"tf.dynamic_partition({a.name}, tf.cast({row}, tf.int32), 2)[{self.rng.randrange(2)}]",
            f"tf.repeat({a.name}, tf.cast({row}, tf.int32) * 2, axis=0)",
            f"{a.name}[:tf.reduce_sum(tf.cast({row}, tf.int32))]",
            f"tf.concat([tf.boolean_mask({a.name}, {row}), {a.name}], 0)",
        ]
        part = _Value(self.fresh("m"), a.dtype, (-1, *a.shape[1:]))
        self.line(f"{part.name} = {self.rng.choice(forms)}")
        for _ in range(self.rng.randint(0, 3)):
            kind = self.rng.randrange(4)
            if kind == 0 and not self.plain:
                self.step_assign()
            elif kind == 1:
                self.line(f"{part.name} = {part.name} * {part.name}")
            else:
                self.line(f"{part.name} = {self.unary(part)}")
        if len(x.shape) == 1 and self.rng.random() < 0.2:
            self.put(
                f"tf.scatter_nd(tf.where({truth}), tf.boolean_mask({a.name}, {truth}), "
                f"tf.shape({a.name}, out_type=tf.int64))", a.dtype, a.shape,
            )  # fmt: skip
        self.put(f"tf.reduce_sum({part.name}, 0)", a.dtype, a.shape[1:])

    def step_sized_rows(self) -> None:
        """A function of the library that calls a user function with such sizes."""
        x = self.rng.choice(self.inputs)
        v = self.any(x.dtype, ())
        if len(x.shape) != 2 or x.dtype not in _EXACT or not v:
            return
        self.free = True
        row = f"tf.reduce_sum(tf.boolean_mask(r, r > {self.number()}) * {v.name})"
        forms = {
            f"tf.map_fn(lambda r: {row}, {x.name})": x.shape[:1],
            f"tf.foldl(lambda c, r: c * 0.5 + {row}, {x.name}, initializer=tf.zeros([], tf.{x.dtype}))": (),
            f"tf.recompute_grad(lambda r: {row})({x.name})": (),
        }
        form, shape = self.rng.choice(list(forms.items()))
        self.put(form, x.dtype, shape)

    def step_cast(self) -> None:
        a = self.any()
        if not a or a.dtype.startswith("complex"):
            if a:
                self.put(f"tf.math.{self.rng.choice(['real', 'imag'])}({a.name})",
                         "float32" if a.dtype == "complex64" else "float64", a.shape)  # fmt: skip
            return
        to = self.rng.choice(["float32", "float64", "bfloat16", "complex64", "complex128"])
        if to.startswith("complex") and a.dtype in ("bfloat16", "float16"):
            to = "float32"
        self.put(f"tf.cast({a.name}, tf.{to})", to, a.shape)

    def step_cut(self) -> None:
        a = self.any()
        if a:
            self.put(f"tf.stop_gradient({a.name})", a.dtype, a.shape)

    def step_integer(self) -> None:
        """A cast to a type without gradients and back."""
        x = self.rng.choice(self.inputs)
        a = self.any(shape=x.shape)
        if a and not x.dtype.startswith("complex"):
            self.put(f"tf.cast(tf.cast({x.name} * 3, tf.int32), {a.name}.dtype) * {a.name}", a.dtype, a.shape)

    def step_read(self) -> None:
        v = self.rng.choice(self.variables)
        if v.dtype.startswith("int"):
            return
        form = self.rng.choice(
            ["tf.identity({})", "{}.read_value()", "tf.convert_to_tensor({})", "{}.value()"]
        )
        self.put(form.format(v.name), v.dtype, v.shape)

    def step_assign(self) -> None:
        v = self.rng.choice(self.variables)
        if v.dtype.startswith("int"):
            self.line(f"{v.name}.assign_add(1)")
            return
        method = self.rng.choice(["assign", "assign_add", "assign_sub", "slice"])
        if method == "slice" and v.shape:
            self.line(f"{v.name}[0].assign({self.made(v.dtype, v.shape[1:])})")
            return
        method = "assign" if method == "slice" else method
        call = f"{v.name}.{method}({self.made(v.dtype, v.shape)})"
        if self.rng.random() < 0.2 and not self.plain:
            self.put(f"tf.identity({call})", v.dtype, v.shape)
        else:
            self.line(call)

    # ---- control flow -----------------------------------------------------------------------

    def branch(self, result: _Value) -> list[str]:
        """Lines of a branch, which assigns `result`."""
        lines, pool, plain = self.lines, list(self.pool), self.plain
        self.lines, self.plain, self.indent = [], True, self.indent + "    "
        for _ in range(self.rng.randint(0, 2)):
            self.rng.choice([self.step_unary, self.step_binary, self.step_assign, self.step_read])()
        # The result is a value made in this branch. Such values cannot be used after it.
        mine = [v for v in self.pool if v not in pool and (v.dtype, v.shape) == (result.dtype, result.shape)]
        last = mine[-1].name if mine else self.made(result.dtype, result.shape)
        # A name for the variable itself would be read later, at another time in a branch of a function.
        self.line(f"{result.name} = tf.identity({last})")
        self.indent = self.indent[4:]
        branch_lines, self.lines, self.pool, self.plain = self.lines, lines, pool, plain
        return branch_lines

    def step_if(self) -> None:
        a = self.any()
        if not a or self.plain:
            return
        self.free = True
        result = _Value(self.fresh(), a.dtype, a.shape)
        self.line(f"if {self.condition()}:")
        self.lines += self.branch(result)
        self.line("else:")
        self.lines += self.branch(result)
        self.pool.append(result)

    def step_loop(self) -> None:
        a = self.any()
        if not a or self.plain:
            return
        kind = self.rng.randrange(4)
        count = self.rng.randint(0, 3)
        result = self.put(f"tf.identity({a.name})", a.dtype, a.shape)
        if kind:
            self.free = True
        i = self.fresh("i")
        if kind == 0:
            self.line(f"for {i} in range({count}):")
        elif kind == 1:
            self.line(f"for {i} in tf.range({count}):")
        elif kind == 2:
            self.line(
                f"for {i} in {self.made('float32', (count + 1,)) if self.dtype == 'float32' else 'tf.ones([2])'}:"
            )
        else:
            self.line(f"{i} = tf.constant(0)")
            self.line(f"while {i} < {count}:")
            self.line(f"    {i} = {i} + 1")
        body = self.branch(result)
        # The last line assigns the result to the same name: add the old value, so that loops carry it.
        last = body.pop().strip().partition(" = ")[2]
        self.lines += body
        self.line(f"    {result.name} = tf.tanh({result.name} * 0.5 + {last})" if "complex" not in a.dtype
                  else f"    {result.name} = {result.name} * 0.5 + {last}")  # fmt: skip

    def step_cond(self) -> None:
        a = self.any()
        b = a and self.any(a.dtype, a.shape)
        if a and b:
            self.free = True
            self.put(
                f"tf.cond({self.condition()}, lambda: {self.unary(a)}, lambda: {b.name} * 2)",
                a.dtype,
                a.shape,
            )

    def step_while(self) -> None:
        a = self.any()
        if a:
            self.free = True
            self.put(
                f"tf.while_loop(lambda i, c: i < {self.rng.randint(0, 3)}, lambda i, c: (i + 1, c * 0.5 + {a.name}), "
                f"(tf.constant(0), tf.identity({a.name})))[1]", a.dtype, a.shape,
            )  # fmt: skip

    # ---- functions and custom gradients -------------------------------------------

    def helper(self, decorator: str) -> tuple[str, _Value, _Value] | None:
        """A function of one tensor above the body, with variables of its own to read and assign."""
        a = self.any()
        if not a or self.plain:
            return None
        name = self.fresh("f")
        lines, pool, indent = self.lines, self.pool, self.indent
        self.lines, self.pool, self.plain, self.indent = [], [_Value("p", a.dtype, a.shape)], True, "    "
        inputs, self.inputs = self.inputs, [_Value("p", a.dtype, a.shape)]
        steps = [self.step_unary, self.step_binary, self.step_binary, self.step_read]
        if decorator == "@tf.function":
            steps += [self.step_assign, self.step_assign, self.step_cond]
        for _ in range(self.rng.randint(1, 4)):
            self.rng.choice(steps)()
        result = self.pool[-1]
        # A variable that is returned as it is would be read later; a function returns its value now.
        last = "tf.identity(p)" if result.name == "p" else result.name
        self.top += [decorator, f"def {name}(p):", *self.lines, f"    return {last}"]
        self.lines, self.pool, self.plain, self.indent, self.inputs = lines, pool, False, indent, inputs
        return name, a, result

    def step_function(self) -> None:
        helper = self.helper("@tf.function")
        if helper:
            name, a, result = helper
            for _ in range(self.rng.randint(1, 2)):
                self.put(f"{name}({a.name})", result.dtype, result.shape)

    def step_recompute(self) -> None:
        helper = self.helper("@tf.recompute_grad")
        if helper:
            self.put(f"{helper[0]}({helper[1].name})", helper[2].dtype, helper[2].shape)

    def step_custom(self) -> None:
        a = self.any()
        if not a or self.plain:
            return
        name, k = self.fresh("f"), self.number()
        self.top += ["@tf.custom_gradient", f"def {name}(p):", "    def grad(g):", f"        return g * {k}"]
        self.top += [f"    return {self.unary(_Value('p', a.dtype, a.shape))}, grad"]
        self.put(f"{name}({a.name})", a.dtype, a.shape)

    def step_tape(self) -> None:
        a = self.any()
        if not a or self.plain or a in self.variables:
            return
        tape, b, g = self.fresh("t"), self.fresh(), _Value(self.fresh(), a.dtype, a.shape)
        self.line(f"with tf.GradientTape() as {tape}:")
        self.line(f"    {tape}.watch({a.name})")
        self.line(f"    {b} = {a.name} * {a.name} + {self.unary(a)}")
        self.line(f"{g.name} = {tape}.gradient({b}, {a.name})")
        self.pool.append(g)

    def step_array(self) -> None:
        a = self.any()
        if a and not self.plain:
            ta = self.fresh("ta")
            self.line(f"{ta} = tf.TensorArray(tf.{a.dtype}, 2)")
            self.line(f"{ta} = {ta}.write(0, {a.name}).write(1, {self.unary(a)})")
            self.put(f"{ta}.stack()", a.dtype, (2, *a.shape))

    def step_python(self) -> None:
        a = self.any()
        if a and not self.plain and a not in self.variables:
            self.put(f"tf.ensure_shape(tf.py_function(lambda p: tf.sin(p) * 2, [{a.name}], tf.{a.dtype}), {list(a.shape)})",
                     a.dtype, a.shape)  # fmt: skip

    def step_map(self) -> None:
        a = self.any()
        if a and a.shape and a.dtype in _EXACT:
            form = self.rng.choice(["map_fn", "vectorized_map"])
            self.put(f"tf.{form}(lambda r: tf.sin(r) * r, {a.name})", a.dtype, a.shape)
            self.free = True

    # ---- the whole --------------------------------------------------------------------------

    def text(self) -> str:
        rng = self.rng
        others = ["float32", "float64", self.dtype, self.dtype]
        self.inputs = [
            _Value(f"x{k}", self.dtype if k == 0 else rng.choice(others), rng.choice(self.shapes))
            for k in range(rng.randint(1, 2))
        ]
        self.variables = [
            _Value(f"v{k}", self.dtype if k == 0 else rng.choice(others), rng.choice(self.shapes))
            for k in range(rng.randint(1, 3))
        ]
        if rng.random() < 0.2:
            self.variables.append(_Value("n", "int64", ()))
        for v in self.variables:
            given = "tf.constant(0, tf.int64)" if v.dtype == "int64" else self.array(v.shape, v.dtype)
            self.top.append(f"{v.name} = tf.Variable({given}{', trainable=False' * (rng.random() < 0.1)})")
        given = ", ".join(self.array(x.shape, x.dtype) for x in self.inputs)
        self.top.append(f"variables, inputs = [{', '.join(v.name for v in self.variables)}], [{given}]")
        self.pool = list(self.inputs)
        steps = {
            self.step_unary: 6, self.step_binary: 10, self.step_reduce: 2, self.step_move: 4, self.step_matmul: 1,
            self.step_select: 1, self.step_cast: 2, self.step_cut: 1, self.step_integer: 1, self.step_read: 3,
            self.step_assign: 5, self.step_if: 1, self.step_loop: 1, self.step_cond: 0.7, self.step_while: 0.7,
            self.step_function: 1.5, self.step_recompute: 0.4, self.step_custom: 0.6, self.step_tape: 0.6,
            self.step_array: 0.4, self.step_python: 0.3, self.step_map: 0.4, self.step_sized: self.sized,
            self.step_sized_rows: self.sized / 2,
        }  # fmt: skip
        for step in rng.choices(list(steps), list(steps.values()), k=rng.randint(2, 14)):
            step()
        fit = self.pool[len(self.inputs) :] or self.pool
        results = {fit[-1].name, *(v.name for v in rng.choices(fit, k=rng.randint(0, 2)))}
        self.line(f"return [{', '.join(sorted(results))}]")
        header = ["FREE = True"] if self.free else []
        return "\n".join(
            [*header, *self.top, f"def body({', '.join(x.name for x in self.inputs)}):", *self.lines, ""]
        )


class Programs:
    """Writes programs and has them compared."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def text(self, number: int) -> str:
        return _Writer(random.Random(f"{self.seed}:{number}")).text()

    def run(self, text: str, number: int) -> Counter[str]:
        from tools.fuzz.program_runs import compare

        return compare(text, number)


# Every other process compiles each pass at once; the others when it is repeated.
KIND = harness.Kind(
    "programs", Programs, chunk=40, environments=({"GRADTAPE_COMPILE": "always"}, {}), programs=True
)


def main(argv: list[str]) -> int:
    return harness.main(KIND, argv)
