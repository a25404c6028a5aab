"""Advice is a promise: applied to the program that got it, and the recompile is gone.

Every class of cause that has advice has its programs here; a new class without one fails by name.
"""

import contextlib
import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import jitcount
from jitcount._explain.causes import AnyCause, Cause
from jitcount._explain.causes.arguments import (
    CallConvention,
    NoEquality,
    Parameter,
    StaticField,
    StaticFunction,
    StaticObject,
    StaticValue,
)
from jitcount._explain.causes.arrays import Dtype, OnDevice, Shape, Sharding, WeakType
from jitcount._explain.causes.functions import (
    CachesCleared,
    FirstCall,
    JitOption,
    NewFunction,
    Setting,
    Transform,
    Unknown,
)
from jitcount._explain.causes.structure import Container, Keys, Length, Optional, StaticPart
from jitcount._explain.summary import advice_of
from jitcount._registry import registry

NOTHING_TO_MEND = {FirstCall, Unknown}
"""Of these, there is no recompile that could be spared."""


@dataclass(frozen=True)
class Advised:
    """A program that gets some advice, and what becomes of it with the advice applied."""

    cause: type[Cause]
    advice: str
    program: Callable[[], object]
    applied: dict[str, Callable[[], object]]
    function: str = "step"
    compiles: int = 1
    """How many programs of the function are left."""

    devices: int = 1


ADVISED: list[Advised] = []


def advised(cause: type[Cause], advice: str, program: Callable[[], object], **about: Any) -> None:
    applied = {name: about.pop(name) for name in [*about] if callable(about[name])}
    ADVISED.append(Advised(cause, advice, program, applied, **about))


def compiles_of(program: Callable[[], object], function: str) -> list[jitcount.Compile]:
    jax.clear_caches()
    with registry.own_history(), jitcount.record() as log:
        program()
    return [compiled for compiled in log.compiles if compiled.function == function]


def arr(*shape: int, dtype: str = "float32") -> Any:
    return np.ones(shape, dtype)


def step(x: Any, n: Any = 2) -> Any:
    del n
    return 2 * jnp.asarray(jax.tree.leaves(x)[0])


def calls(*arguments: Any, **options: Any) -> Callable[[], None]:
    """A program that calls one jit with each of some arguments, or tuples of them."""

    def program() -> None:
        jitted = jax.jit(step, **options)
        for each in arguments:
            given = each() if callable(each) else each
            jitted(*(given if isinstance(given, tuple) else (given,)))

    return program


# --- Arrays ---------------------------------------------------------------------------------------


def padded(length: int, to: tuple[int, ...]) -> Any:
    return np.pad(arr(length), (0, min(b for b in to if b >= length) - length))


advised(
    Shape,
    "pad axis 0 of x to a few lengths with jitcount.bucketed, and mask the padding",
    calls(arr(3), arr(4)),
    one_length=calls(padded(3, (4,)), padded(4, (4,))),
)


def bucketed(lengths: range, sizes: list[int]) -> Callable[[], None]:
    """A program that calls one jit with arrays of some lengths, padded to sizes."""

    def program() -> None:
        padded_step = jitcount.bucketed(jax.jit(step), sizes, axes={"x": 0})
        for length in lengths:
            assert padded_step(arr(length)).shape == (length,)

    return program


advised(
    Shape,
    "pad axis 0 of x to a few lengths with jitcount.bucketed, and mask the padding",
    calls(*map(arr, range(1, 9))),
    as_it_says=bucketed(range(1, 9), [4, 8]),
    a_few=calls(*(padded(length, (4, 8)) for length in range(1, 9))),
    compiles=2,
)
advised(
    Shape,
    "pad axes 0, 1 of x to a few shapes with jitcount.bucketed, and mask the padding",
    calls(arr(2, 3), arr(4, 5)),
    one_shape=calls(np.pad(arr(2, 3), ((0, 2), (0, 2))), arr(4, 5)),
)
advised(
    Shape,
    "pass x with rank 1 in every call",
    calls(arr(3), arr(1, 3)),
    rank=calls(arr(3), arr(1, 3)[0]),
)
advised(
    Dtype,
    "give it that dtype in every call: jnp.int32(x)",
    calls(2, True),  # noqa: FBT003 (arguments of a jit)
    given_a_dtype=calls(jnp.int32(2), jnp.int32(True)),  # noqa: FBT003 (the same)
)
advised(
    Dtype,
    "cast it before the call: x.astype('float32')",
    calls(arr(3), arr(3, dtype="int32")),
    cast=calls(arr(3), arr(3, dtype="int32").astype("float32")),
)
advised(
    Dtype,
    "cast them before the call: x.astype('float32'), n.astype('float32')",
    calls((arr(3), arr(3)), (arr(3, dtype="int32"), arr(3, dtype="int32"))),
    cast=calls((arr(3), arr(3)), (arr(3, dtype="int32").astype("float32"),) * 2),
)
advised(
    WeakType,
    "pass jnp.float32(...) for x in every call",
    calls(0.0, np.float32(1)),
    an_array=calls(lambda: jnp.float32(0.0), lambda: jnp.float32(np.float32(1))),
)


def carried(start: Callable[[], Any]) -> Callable[[], None]:
    """An average that is carried from call to call."""

    def program() -> None:
        @jax.jit
        def step(average: Any, loss: Any) -> Any:
            return 0.9 * average + 0.1 * loss

        average = start()
        for loss in (1, 2, 3):
            average = step(average, np.float32(loss))

    return program


advised(
    WeakType,
    "pass jnp.float32(...) for average in every call",
    carried(lambda: 0.0),
    an_array=carried(lambda: jnp.float32(0.0)),
)
advised(
    WeakType,
    "make it strongly typed before the first call: x.astype('float32')",
    calls(arr(3), lambda: jnp.full((3,), 1.0)),
    strong=calls(arr(3), lambda: jnp.full((3,), 1.0).astype("float32")),
)


class Averages(NamedTuple):
    mean: Any
    rate: Any
    key: Any


def averages() -> Averages:
    return Averages(jnp.full((3,), 1.0), 0.1, jax.random.key(0))


def stepped(start: Callable[[], Averages]) -> Callable[[], None]:
    """A state whose first values are weakly typed, and those that a step returns are not."""

    def program() -> None:
        @jax.jit
        def step(state: Averages, x: Any) -> Averages:
            return Averages(state.mean * x, state.rate * x, state.key)

        state = start()
        for x in (1, 2, 3):
            state = step(state, np.float32(x))

    return program


advised(
    WeakType,
    "make state strongly typed before the first call: "
    "jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.result_type(leaf)), state)",
    stepped(averages),
    mapped=stepped(
        lambda: jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.result_type(leaf)), averages())
    ),
)
advised(
    OnDevice,
    f"put x on {jax.devices()[0]} once, with jax.device_put, before the first call",
    calls(arr(3), lambda: jax.device_put(arr(3), jax.devices()[0])),
    once=calls(*[lambda: jax.device_put(arr(3), jax.devices()[0])] * 2),
)


def sharded(*spec: Any) -> Callable[[], Any]:
    def make() -> Any:
        mesh = Mesh(np.array(jax.devices()[:2]), ("i",))
        return jax.device_put(arr(4, 4), NamedSharding(mesh, PartitionSpec(*spec)))

    return make


advised(
    OnDevice,
    f"put x on {jax.devices()[0]} once, with jax.device_put, before the first call",
    calls(*(functools.partial(jax.device_put, arr(3), device) for device in jax.devices()[:2])),
    once=calls(*[functools.partial(jax.device_put, arr(3), jax.devices()[0])] * 2),
    devices=2,
)
advised(
    Sharding,
    "set the sharding of x once, with jax.device_put, before the first call",
    calls(sharded("i"), sharded(None, "i")),
    once=calls(sharded("i"), sharded("i")),
    devices=2,
)


# --- Static arguments and static fields -----------------------------------------------------------

advised(
    StaticValue,
    "pass n as an array if it is only computed with; "
    "if it gives a shape or chooses a branch, keep to a few values",
    calls((arr(3), 2), (arr(3), 7), static_argnums=1),
    an_array=calls((arr(3), jnp.int32(2)), (arr(3), jnp.int32(7))),
)
advised(
    StaticValue,
    "each value of n has a program of its own: keep to a few of them",
    calls(*((arr(3), f"mode {number}") for number in range(4)), static_argnums=1),
    a_few=calls(*((arr(3), f"mode {number % 2}") for number in range(4)), static_argnums=1),
    compiles=2,
)


class Plain:
    def __repr__(self) -> str:
        return "Plain()"


@dataclass(frozen=True)
class Frozen:
    pass


PLAIN = Plain()
advised(
    NoEquality,
    "give Plain __eq__ and __hash__ (a frozen dataclass has both), or pass the same object as n",
    calls(*[lambda: (arr(3), Plain())] * 2, static_argnums=1),
    equality=calls(*[lambda: (arr(3), Frozen())] * 2, static_argnums=1),
    the_same=calls((arr(3), PLAIN), (arr(3), PLAIN), static_argnums=1),
)


class Rated:
    def __init__(self, rate: float) -> None:
        self.rate = rate

    def __repr__(self) -> str:
        return f"Rated({self.rate})"


RATED = [Rated(0.1), Rated(0.2)]
advised(
    NoEquality,
    "each Rated object has a program of its own: keep to a few of them, "
    "or pass what differs as an array",
    calls(*((arr(3), Rated(rate)) for rate in (0.1, 0.2, 0.3, 0.4)), static_argnums=1),
    a_few=calls(*((arr(3), RATED[n % 2]) for n in range(4)), static_argnums=1),
    compiles=2,
)
advised(
    NoEquality,
    "each Rated object has a program of its own: keep to a few of them, "
    "or pass what differs as an array",
    calls(*((arr(3), rated) for rated in RATED), static_argnums=1),
    an_array=calls(*((arr(3), np.float32(rated.rate)) for rated in RATED)),
)

ONCE = lambda: None  # noqa: E731
FUNCTIONS = [math.sin, math.cos, math.tan, math.exp]
advised(
    StaticFunction,
    "make the function that is passed as n once; "
    "pass what it reads, if that changes, as an argument",
    calls(*((arr(3), lambda: None) for _ in range(2)), static_argnums=1),
    once=calls(*((arr(3), ONCE) for _ in range(2)), static_argnums=1),
)
advised(
    StaticFunction,
    "each function for n has a program of its own: keep to a few of them",
    calls(*((arr(3), each) for each in FUNCTIONS), static_argnums=1),
    a_few=calls(*((arr(3), each) for each in FUNCTIONS[:2] * 2), static_argnums=1),
    compiles=2,
)


@functools.partial(jax.tree_util.register_dataclass, data_fields=["x"], meta_fields=["name"])
@dataclass
class State:
    x: Any
    name: Any


@functools.partial(jax.tree_util.register_dataclass, data_fields=["x", "n"], meta_fields=[])
@dataclass
class Arrays:
    x: Any
    n: Any


advised(
    StaticField,
    "x.name is compiled in: keep it the same, or keep what changes in an array field of State",
    calls(State(arr(3), 1), State(arr(3), 2)),
    the_same=calls(State(arr(3), 1), State(arr(3), 1)),
    an_array=calls(Arrays(arr(3), jnp.int32(1)), Arrays(arr(3), jnp.int32(2))),
)
advised(
    StaticObject,
    "make what x.name holds once, and give the same to every State",
    calls(State(arr(3), Plain()), State(arr(3), Plain())),
    once=calls(State(arr(3), PLAIN), State(arr(3), PLAIN)),
)


class Counter(tuple[Any, int]):
    """An array and a number; its static part has no fields that could be named."""

    __slots__ = ()


jax.tree_util.register_pytree_node(
    Counter,
    lambda node: (node[:1], f"counts to {node[1]}"),
    lambda static, children: Counter((*children, int(static.split()[-1]))),
)
advised(
    StaticPart,
    "keep what changes in x in an array field of Counter; its static fields are compiled in",
    calls((Counter((arr(3), 1)),), (Counter((arr(3), 2)),)),
    an_array=calls(*((Counter(((arr(3), np.int32(n)), 0)),) for n in (1, 2))),
)


def at_axes(rev: Callable[[Any, tuple[int]], Any]) -> Callable[[], None]:
    def program() -> None:
        x = jax.device_put(arr(2, 2))
        for axis in (0, 1):
            rev(x, (axis,))

    return program


def in_one_jit() -> None:
    @jax.jit
    def both(x: Any) -> Any:
        return [jax.lax.rev(x, (axis,)) for axis in (0, 1)]

    both(arr(2, 2))


advised(
    Parameter,
    "put the operation into a jitted function, or keep its dimensions the same",
    at_axes(jax.lax.rev),
    the_same=at_axes(lambda x, _: jax.lax.rev(x, (0,))),
    function="rev",
)
advised(
    Parameter,
    "put the operation into a jitted function, or keep its dimensions the same",
    at_axes(jax.lax.rev),
    into_a_jit=in_one_jit,
    function="rev",
    compiles=0,
)


def passed(*ways: str) -> Callable[[], None]:
    def program() -> None:
        jitted = jax.jit(step)
        for way in ways:
            if way == "by keyword":
                jitted(x=arr(3))
            else:
                jitted(arr(3))

    return program


advised(
    CallConvention,
    "pass x by position in every call, or by keyword in every call",
    passed("by position", "by keyword"),
    by_position=passed("by position", "by position"),
    by_keyword=passed("by keyword", "by keyword"),
)


# --- Structure ------------------------------------------------------------------------------------

advised(
    Keys,
    "pass ['mask'] of x in every call, or in none",
    calls({"x": arr(3)}, {"x": arr(3), "mask": arr(3)}),
    in_every_call=calls(*[{"x": arr(3), "mask": arr(3)}] * 2),
    in_none=calls({"x": arr(3)}, {"x": arr(3)}),
)
advised(
    Length,
    "pad x to one length, or to a few (buckets)",
    calls([arr(3)], [arr(3)] * 2),
    one_length=calls([arr(3), arr(3)], [arr(3)] * 2),
)
advised(
    Length,
    "pad x to one length, or to a few (buckets)",
    calls(*([arr(3)] * length for length in range(1, 5))),
    a_few=calls(*([arr(3)] * length for length in (2, 2, 4, 4))),
    compiles=2,
)
advised(
    Optional,
    "give n in every call, or in none",
    calls(arr(3), (arr(3), arr(3))),
    in_every_call=calls((arr(3), arr(3)), (arr(3), arr(3))),
    in_none=calls(arr(3), arr(3)),
)
advised(
    Container,
    "pass x as a list of 1 in every call",
    calls([arr(3)], lambda: ((arr(3),),)),
    a_list=calls([arr(3)], [arr(3)]),
)
advised(
    Container,
    "pass an array for n in every call: zeros, say, where there is nothing to pass",
    calls((arr(3), None), (arr(3), arr(3))),
    zeros=calls((arr(3), np.zeros(3, np.float32)), (arr(3), arr(3))),
)


# --- Functions, their jits and what surrounds them ------------------------------------------------


def twice(make: Callable[[], Callable[..., Any]], *arguments: Any) -> Callable[[], None]:
    """A program that makes a function anew for each call, and jits it."""

    def program() -> None:
        for _ in range(2):
            jax.jit(make())(arr(3), *arguments)

    return program


def once(make: Callable[[], Callable[..., Any]], *arguments: Any) -> Callable[[], None]:
    """The same with the function, and its jit, made once."""

    def program() -> None:
        jitted = jax.jit(make())
        for _ in range(2):
            jitted(arr(3), *arguments)

    return program


def inner() -> Callable[..., Any]:
    factor = np.float32(2)

    def step(x: Any) -> Any:
        return factor * x

    return step


def with_its_factor(x: Any, factor: Any) -> Any:
    return factor * x


with_its_factor.__name__ = "step"


class Model:
    def step(self, x: Any) -> Any:
        return 2 * x

    __call__ = step


def of_a_library(body: str) -> Callable[..., Any]:
    namespace: dict[str, Any] = {}
    source = "import jax\ndef make():\n    def step(x, _=None):\n        return " + body
    exec(compile(f"{source}\n    return step", "/opt/site-packages/library.py", "exec"), namespace)  # noqa: S102
    return namespace["make"]


def calls_the_library(x: Any) -> Any:
    return jax.jit(made_by_a_library())(x)


made_by_a_library = of_a_library("2 * x")
body_of_a_library = of_a_library("(2 * x, None)")

advised(
    NewFunction,
    "make step once; what it closes over can be passed as an argument",
    twice(inner),
    once=once(inner),
    as_an_argument=once(lambda: with_its_factor, np.float32(2)),
)
advised(
    NewFunction,
    "make the lambda once, and its jax.jit once; "
    "pass what it reads, if that changes, as an argument",
    twice(lambda: lambda x: 2 * x),
    once=once(lambda: lambda x: 2 * x),
    function="<lambda>",
)
advised(
    NewFunction,
    "make the partial of step once, or pass what it binds as arguments",
    twice(lambda: functools.partial(step, n=2)),
    once=once(lambda: functools.partial(step, n=2)),
    as_an_argument=once(lambda: step, 2),
)
advised(
    NewFunction,
    "keep one object, and one jax.jit of its step",
    twice(lambda: Model().step),
    one_object=once(lambda: Model().step),
)
advised(
    NewFunction,
    "keep one Model, and one jax.jit of it",
    twice(Model),
    one_object=once(Model),
    function="Model",
)
advised(
    NewFunction,
    "keep the step that the library made, and one jax.jit of it; "
    "if the library jits it itself, call it inside of a jitted function",
    twice(made_by_a_library),
    kept=once(made_by_a_library),
)
advised(
    NewFunction,
    "keep the step that the library made, and one jax.jit of it; "
    "if the library jits it itself, call it inside of a jitted function",
    twice(made_by_a_library),
    inside=once(lambda: calls_the_library),
    compiles=0,
)
advised(
    NewFunction,
    "make the jax.jit of step once, outside of the loop",
    twice(lambda: jax.value_and_grad(summed_step)),
    once=once(lambda: jax.value_and_grad(summed_step)),
)


def summed_step(x: Any) -> Any:
    return jnp.sin(x).sum()


summed_step.__name__ = "step"


def scanned(make: Callable[[], Callable[..., Any]]) -> Callable[[], None]:
    def program() -> None:
        for _ in range(2):
            jax.lax.scan(make(), arr(3), None, 3)

    return program


def body(x: Any, _: Any) -> Any:
    return 2 * x, None


def scan_in_a_jit(make: Callable[[], Callable[..., Any]]) -> Callable[[], None]:
    return once(lambda: lambda x: jax.lax.scan(make(), x, None, 3)[0])


advised(
    NewFunction,
    "call scan inside of a jitted function, or make the lambda once",
    scanned(lambda: lambda x, _: (2 * x, None)),
    once=scanned(lambda: body),
    function="scan",
)
advised(
    NewFunction,
    "call scan inside of a jitted function, or make the lambda once",
    scanned(lambda: lambda x, _: (2 * x, None)),
    inside=scan_in_a_jit(lambda: lambda x, _: (2 * x, None)),
    function="scan",
    compiles=0,
)
advised(
    NewFunction,
    "call it inside of a jitted function: the library makes step at each call",
    scanned(body_of_a_library),
    inside=scan_in_a_jit(body_of_a_library),
    function="scan",
    compiles=0,
)


def gradients(wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Callable[[], None]:
    def program() -> None:
        def of_a_new_jit(x: Any) -> Any:
            return jax.grad(jax.jit(lambda x: jnp.sin(x).sum()))(x)

        gradient = wrap(of_a_new_jit)
        for _ in range(2):
            gradient(arr(3))

    return program


advised(
    NewFunction,
    "call <lambda> inside of a jitted function",
    gradients(lambda function: function),
    inside=gradients(jax.jit),
    function="<lambda>",
)


def mapped(*axes: int) -> Callable[[], None]:
    def program() -> None:
        jitted = jax.jit(step)
        for axis in axes:
            jax.vmap(jitted, axis)(arr(4, 4))

    return program


advised(
    Transform,
    "each way of transforming step has a program of its own: keep to a few of them",
    mapped(0, 1),
    a_few=mapped(0, 0),
)


def jits(*options: dict[str, Any]) -> Callable[[], None]:
    def program() -> None:
        for each in options:
            jax.jit(step, **each)(arr(3))

    return program


advised(
    JitOption,
    "keep one jax.jit of the function, with donate_argnums=(), and call that",
    jits({}, {"donate_argnums": 0}),
    one=jits({}, {}),
)


def multiplied(*precisions: str | None, once: bool = False) -> Callable[[], None]:
    def program() -> None:
        jitted = jax.jit(step)
        with contextlib.ExitStack() as whole:
            if once:
                whole.enter_context(jax.default_matmul_precision("float32"))
            for precision in precisions:
                with contextlib.ExitStack() as block:
                    if precision and not once:
                        block.enter_context(jax.default_matmul_precision(precision))
                    jitted(arr(3))

    return program


@contextlib.contextmanager
def as_before(name: str) -> Iterator[None]:
    value = jax.config.values[name]
    try:
        yield
    finally:
        jax.config.update(name, value)


def configured(*, before_the_first_call: bool) -> None:
    jitted = jax.jit(step)
    with as_before("jax_numpy_rank_promotion"):
        if before_the_first_call:
            jax.config.update("jax_numpy_rank_promotion", "warn")
        jitted(arr(3))
        jax.config.update("jax_numpy_rank_promotion", "warn")
        jitted(arr(3))


advised(
    Setting,
    "a context manager has set it; set it once, before the first call",
    multiplied(None, "float32"),
    once=multiplied(None, "float32", once=True),
)
advised(
    Setting,
    "jax.config.update has set it; set it once, before the first call",
    lambda: configured(before_the_first_call=False),
    once=lambda: configured(before_the_first_call=True),
)


def cleared(clear: Callable[[], None]) -> Callable[[], None]:
    def program() -> None:
        jitted = jax.jit(step)
        for _ in range(2):
            jitted(arr(3))
            clear()

    return program


advised(
    CachesCleared,
    "do not call jax.clear_caches() between calls of step",
    cleared(jax.clear_caches),
    not_cleared=cleared(lambda: None),
)


# --- The tests ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("advised", "way"),
    [
        pytest.param(each, way, id=f"{number}-{each.cause.__name__}-{way}")
        for number, each in enumerate(ADVISED)
        for way in each.applied
    ],
)
def test_the_recompile_is_gone_once_the_advice_is_applied(advised: Advised, way: str) -> None:
    if jax.device_count() < advised.devices:
        pytest.skip(f"needs {advised.devices} devices")
    compiles = compiles_of(advised.program, advised.function)
    given = {
        (type(cause), advice)
        for compiled in compiles
        for cause in compiled.causes
        for advice in (cause.advice, *advice_of(compiled.causes))
    }
    assert (advised.cause, advised.advice) in given, [c.causes for c in compiles]
    mended = compiles_of(advised.applied[way], advised.function)
    left = [cause for compiled in mended for cause in compiled.causes]
    if advised.function != "<lambda>":
        assert len(mended) == advised.compiles < len(compiles)
    if advised.compiles <= 1:
        assert advised.cause not in set(map(type, left)), left


def test_every_cause_that_has_advice_is_here() -> None:
    have_advice = {cause for cause in get_args(AnyCause) if cause not in NOTHING_TO_MEND}
    lacking = sorted(cause.__name__ for cause in have_advice - {each.cause for each in ADVISED})
    assert not lacking, f"a program that gets the advice of {lacking}, and one that follows it"
