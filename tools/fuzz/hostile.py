"""Hostile calls as text: calls that work, with some arguments replaced by absurd ones.

The calls that work are the samples of the op table and the lines of `tests/against_tensorflow/calls`. A call is
Python, so that a crash is reported as a line that can be pasted; its words are those of `calls`. Call number `n` of
a seed is always the same one.
"""

from __future__ import annotations

import ast
import functools
import random
from collections.abc import Iterator
from typing import Any, TypeGuard

from gradtape._src.contract.cases import allowed
from gradtape._src.ops.samples import At, Inside, Matrices, Sample
from gradtape._src.ops.table import TABLE, Row
from tests.against_tensorflow import written

FLAVOURS = ("eager tape tape second function function_tape jacobian vectorized forward").split()
DTYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 complex128"
).split()

_INTS = (
    "-1 0 1 2 3 5 7 13 -2 -13 100 2**31-1 2**31 -2**31 2**32 2**40 2**62 2**63-1 2**63 -2**63 2**64 10**30 True "
    "np.int64(2**40) np.int8(-1) np.uint64(2**63) i(0) l(2**40) i(-7) i([1]) 1.0 1.5 None"
).split()
_FLOATS = (
    "nan -inf inf 0.0 -0.0 1e308 1e-320 -1.0 0.5 1.5 1e20 1j np.float16(1) np.float64(nan) np.longdouble(1) True 10**400 "
    "v(nan) v([inf]) t(1,'int8')"
).split()
_TEXTS = (
    "'' 'SAME' 'VALID' 'NHWC' 'NCHW' 'reflect' 'x'*1000 '\\0' 'é' b'SAME' b'\\xff\\x00' 'float32' '...' 'ij,jk->ik' "
    "'i...->i' 'ii->' ',->' 'abcdefghijklmnopqrstuvwxyz' '->' 'ij' None 0 np.str_('SAME') tf.float32 'complex64' 'string'"
).split()
_LISTS = (
    "[] () [0] [1] [2,0,3] [1]*13 [1]*12 [2]*64 [-1] [-1,-1] [0,0] [1,0] [0,1,2] [2**40,2**40] [2**31] [2**16,2**17] "
    "[2**62,4] [2**63] [0,2**62,2**62] [10**30] [None] [None,2] [[1,2],[3]] [[]] [[0,0],[1,1]] [[-1,2]] "
    "[[2**62,2**62]]*2 [1.5] ['a'] [True,False] range(3) {1,2} i([2,-1]) l([2**40,2**40]) i([]) i([[1,2],[3,4]]) "
    "v([1.0,2.0]) tf.TensorShape(None) tf.TensorShape([None,2]) np.array([1,2],'>i4') [i(1),2] [i([1]),2] [nan] "
    "[2,None,-1] (1,)*1000"
).split()
_SHAPES = (
    "", "0", "1", "2", "3", "2,3", "3,2", "0,3", "3,0", "1,1", "3,3", "2,2,2", "2,0,3", "1,4,4,1", "2,5,5,3",
    "1,2,3,4,5", "1,1,1,1,1,1,1,1,1,1,1,1", "7", "17", "1000", "257,3", "5,4", "0,0"
)  # fmt: skip
_OBJECTS = (
    "None evil.array evil.array_itself evil.array_text evil.array_huge evil.index evil.index_huge evil.index_text "
    "evil.length evil.length_negative evil.length_huge evil.number evil.truth evil.equal evil.iterator evil.shape "
    "evil.dtype evil.tensor evil.tensor_none evil.itself evil.deep evil.getattr evil.hash evil.string object() "
    "{} {'a':1} {'a':f(2)} [f(2),f(3)] [f(2),i(1)] (f(2),None) [None] len tf tf.Tensor type "
    "ValueError('x') (x_for_x_in_range(3)) map(int,'12') 2 'text' b'bytes' ... slice(None) slice(0,2**70) "
    "dead.watched dead.used dead.symbol dead.variable dead.token tf.Variable(f(2,3)) tf.Variable(i([1,2])) tf.constant([]) "
    "tf.IndexedSlices(f(2,3),i([0,9])) tf.IndexedSlices(f(2,3),i([0,-1]),i([4,3])) tf.IndexedSlices(f(2),f(2)) "
    "tf.TensorSpec([2,None]) tf.TensorShape([2]) tf.GradientTape() tf.function(len) tf.TensorArray(tf.float32,2) "
    "tf.data.Dataset.range(3) tf.float32 np.float32 tf.SparseTensor([[0,0]],[1.0],[2,2])"
).split()
_ARRAYS = (
    "np.asfortranarray(np.ones([2,3],'f4')) np.ones([4,6],'f4')[::2,::-3] odd.read_only np.ones([2,3],'>f4') "
    "np.ones([2,3],'>i8') np.ones([1]*13,'f4') np.ones([2,3],'f8') np.ones([2,3],'f2') np.ones([2,3],'c16') "
    "np.ones([2,3],'?') np.array([1,None],object) np.zeros(2,'i4,f4') np.longdouble(1) np.array(['a']) "
    "np.array(['2020-01-01'],'M8[D]') np.broadcast_to(np.float32(1),(3,4)) odd.zero_stride odd.overlapping "
    "odd.misaligned odd.matrix odd.masked np.empty([0,3],'f4') np.float32(nan) np.ones(3,'u8')*np.uint64(2**63) "
    "memoryview(b'abcd') bytearray(3)"
).split()
_ELEMENTS = "nan inf -inf 1e38 -1e38 1e-45 0.0 1.0".split()
_MAKERS = frozenset("f r c m spd z".split())
_WORDS = _MAKERS | set("n t op np bytearray memoryview map".split())
_KEYWORDS = "axis keepdims name dtype batch_dims out_type num seed shape strides padding exclusive data_format".split()


def _operand(given: Any, dtype: str, kind: str) -> str:
    """An operand of a sample as text."""
    if isinstance(given, At):
        own = dtype if given.dtype == "float" or kind in ("Operand", "Operands") else given.dtype
        return f"t({_plain(given.values)!r}, {own!r})"
    if isinstance(given, Inside):
        return f"f({''.join(f'{d}, ' for d in given.shape)}lo={given.lo!r}, hi={given.hi!r})"
    if isinstance(given, Matrices):
        return f"{'spd' if given.definite else 'm'}({', '.join(map(str, given.shape))})"
    if isinstance(given, list):
        return f"[{', '.join(_operand(one, dtype, kind) for one in given)}]"
    if isinstance(given, tuple) and all(type(d) is int for d in given):
        return f"f({', '.join(map(str, given))})"
    return "None"


def _plain(values: Any) -> Any:
    return values.tolist() if hasattr(values, "tolist") else values


def _of_sample(row: Row, sample: Sample, dtype: str) -> str | None:
    operands: list[Any] = list(sample.operands)
    params = row.operands
    if len(params) == 1 and params[0].kind == "Operands" and not (operands and isinstance(operands[0], list)):
        operands = [operands]
    arguments = [
        f"{p.name}={_operand(given, dtype, p.kind)}" for p, given in zip(params, operands, strict=False)
    ]
    for key, value in sample.attrs.items():
        text = f"tf.{value.name}" if hasattr(value, "as_numpy_dtype") else repr(value)
        arguments.append(f"{key}={text}")
    call = f"op({row.name!r})({', '.join(arguments)})"
    try:
        ast.parse(call, mode="eval")
    except SyntaxError:  # an attribute whose repr is not Python code
        return None
    return call


@functools.cache
def seeds() -> tuple[tuple[str, ...], ...]:
    """Calls that work, in groups: the calls of one row, or of one public function."""
    groups: dict[str, list[str]] = {}
    for row in TABLE.values():
        types = [d.name for d in allowed(row)]
        for number, sample in enumerate(row.samples):
            text = _of_sample(row, sample, types[number % len(types)])
            if text is not None:
                groups.setdefault(row.name, []).append(text)
    for line in written.lines():
        text = line.partition("#:")[0].strip()
        groups.setdefault(text.partition("(")[0], []).append(text)
    return tuple(tuple(group) for group in groups.values())


def _tensor(rng: random.Random) -> str:
    kind = rng.random()
    shape = rng.choice(_SHAPES)
    if kind < 0.5:
        return f"f({shape})"
    if kind < 0.8:
        return f"z({rng.choice(DTYPES)!r}{',' if shape else ''}{shape})"
    if kind < 0.9:
        return f"n(-9, 9{',' if shape else ''}{shape})"
    return f"v([{', '.join(rng.choices(_ELEMENTS, k=rng.randint(1, 6)))}])"


def _any(rng: random.Random) -> str:
    pick = rng.random()
    if pick < 0.35:
        return _tensor(rng)
    return rng.choice(rng.choice((_OBJECTS, _OBJECTS, _ARRAYS, _ARRAYS, _LISTS, _INTS, _FLOATS, _TEXTS)))


def _instead_of(node: ast.expr, rng: random.Random) -> str:
    """A hostile replacement for an argument; mostly of the same sort, so that it passes the first checks."""
    if rng.random() < 0.2:
        return _any(rng)
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    if isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, bool) or value is None:
            return rng.choice(("True", "False", "None", "2", "'no'", "b([True])", "b(False)", "evil.truth"))
        if isinstance(value, int):
            return rng.choice(_INTS)
        if isinstance(value, float):
            return rng.choice(_FLOATS)
        return rng.choice(_TEXTS)
    if isinstance(node, (ast.List, ast.Tuple)):
        return rng.choice(_LISTS)
    if isinstance(node, ast.Attribute):  # a dtype, mostly
        return f"tf.{rng.choice(DTYPES)}" if rng.random() < 0.7 else rng.choice(_TEXTS)
    if isinstance(node, ast.Lambda):
        return rng.choice(
            (
                "lambda *a: a",
                "lambda *a: None",
                "lambda *a: a[0]",
                "lambda *a: f(2)",
                "len",
                "lambda: evil.truth",
            )
        )
    pick = rng.random()
    if pick < 0.4 and _is_made(node) and node.args:
        node.args[rng.randrange(len(node.args))] = ast.Constant(rng.choice((0, 1, 2, 3, 4, 5, 9, 17)))
        return ast.unparse(node)
    return rng.choice(_ARRAYS) if pick < 0.6 else _tensor(rng)


def _is_made(node: ast.AST) -> TypeGuard[ast.Call]:
    """Whether this is an operand generated from its shape."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _MAKERS


class _Place:
    """An argument, or an element of a list, that can be exchanged."""

    def __init__(self, holder: list[Any], index: int) -> None:
        self.holder, self.index = holder, index

    def get(self) -> ast.expr:
        value = self.holder[self.index]
        return value.value if isinstance(value, ast.keyword) else value

    def set(self, new: ast.expr) -> None:
        value = self.holder[self.index]
        if isinstance(value, ast.keyword):
            value.value = new
        else:
            self.holder[self.index] = new


def _is_word(node: ast.AST) -> bool:
    """Whether this is a call of one of our words, whose arguments are not passed to the library."""
    return isinstance(node, ast.Call) and ast.unparse(node.func).partition(".")[0] in _WORDS


def _places(tree: ast.AST) -> Iterator[_Place]:
    if isinstance(tree, ast.Call):
        lists: list[list[Any]] = [tree.args, tree.keywords]
    else:
        lists = [tree.elts] if isinstance(tree, (ast.List, ast.Tuple)) else []
    for holder in lists:
        yield from (_Place(holder, k) for k in range(len(holder)))
    for node in ast.iter_child_nodes(tree):
        if not _is_word(node):
            yield from _places(node)


def _parsed(text: str) -> ast.expr:
    text = text.replace("x_for_x_in_range(3)", "x for x in range(3)")  # the lists above are split at spaces
    return ast.parse(text, mode="eval").body


def _mutate(tree: ast.Expression, rng: random.Random) -> None:
    places = list(_places(tree))
    if not places or rng.random() < 0.05:
        calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and not _is_word(n)]
        if not calls:
            return
        call = rng.choice(calls)
        if rng.random() < 0.5 or not call.args:
            call.keywords.append(ast.keyword(rng.choice(_KEYWORDS), _parsed(_any(rng))))
        else:
            call.args.pop()
        return
    place = rng.choice(places)
    if rng.random() < 0.05:
        other = rng.choice(places)
        one, two = place.get(), other.get()
        if one in ast.walk(two) or two in ast.walk(one):
            return
        place.set(two)
        other.set(one)
        return
    place.set(_parsed(_instead_of(place.get(), rng)))


def call_number(seed: int, number: int) -> tuple[str, str, str]:
    """Call `number` of a seed: the element type of its operands, how it is run, and its text."""
    rng = random.Random(f"{seed}:{number}")
    group = seeds()[number % len(seeds())]
    tree = ast.parse(rng.choice(group), mode="eval")
    for _ in range(rng.choices((0, 1, 2, 3, 5), (5, 50, 30, 10, 5))[0]):
        _mutate(tree, rng)
    dtype = rng.choice(("float32", "float32", "float64", "complex64", "complex128", "float16", "bfloat16"))
    return dtype, rng.choice(FLAVOURS), ast.unparse(ast.fix_missing_locations(tree))
