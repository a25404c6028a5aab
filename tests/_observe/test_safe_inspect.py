"""Objects are looked at without running any code of theirs."""

import dataclasses
import enum
import functools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

import jitcount
from jitcount._observe.safe_inspect import (
    instance_dict,
    is_a,
    safe_getattr,
    safe_hasattr,
    type_name,
)
from jitcount._registry import registry

X, Y = np.ones(3, np.float32), np.ones(4, np.float32)

OURS = str(Path(jitcount.__file__).parent)


def refuse() -> None:
    """Raise, wherever jitcount stands on the stack: an object's own code was run for it."""
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename.startswith(OURS):
            raise KeyboardInterrupt(f"run by {frame.f_code.co_qualname}")
        frame = frame.f_back  # type: ignore[assignment]


def hostile(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, *args: Any) -> Any:
        refuse()
        return plain(self, *args)

    method.__name__ = name
    return method


class HostileMeta(type):
    """A type that is itself asked for nothing."""

    for _name in ("__getattribute__", "__hash__", "__repr__", "__instancecheck__", "__eq__"):
        locals()[_name] = hostile(_name, getattr(type, _name))


def value_of(one: Any) -> int:
    return int(object.__getattribute__(one, "value"))


class Hostile:
    """All that can be asked of an object."""

    def __init__(self, value: int) -> None:
        object.__setattr__(self, "value", value)

    def __getattr__(self, name: str) -> Any:
        refuse()
        raise AttributeError(name)

    def __call__(self, x: jax.Array) -> jax.Array:
        return x + 1

    def method(self, x: jax.Array) -> jax.Array:
        return x + 2

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        refuse()
        return Hostile


DUNDERS: dict[str, Callable[..., Any]] = {
    "__getattribute__": object.__getattribute__,
    "__eq__": lambda s, o: type(s) is type(o) and value_of(s) == value_of(o),
    "__ne__": lambda s, o: type(s) is not type(o) or value_of(s) != value_of(o),
    "__hash__": value_of,
    "__repr__": lambda _: "Hostile",
    "__str__": lambda _: "Hostile",
    "__format__": lambda *_: "Hostile",
    "__len__": lambda _: 3,
    "__bool__": lambda _: True,
    "__iter__": lambda _: iter(()),
    "__contains__": lambda *_: False,
    "__getitem__": lambda *_: 1,
    "__dir__": lambda _: [],
    "__reduce_ex__": lambda *_: "",
    "__sizeof__": lambda _: 1,
    "__index__": lambda _: 1,
    "__copy__": lambda s: s,
    "__deepcopy__": lambda s, _: s,
}
for _dunder, _plain in DUNDERS.items():
    setattr(Hostile, _dunder, hostile(_dunder, _plain))


class WithMeta(Hostile, metaclass=HostileMeta):
    pass


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        self.value = value


class Text(str):
    __slots__ = ()


class Number(int):
    pass


class Members(tuple):  # type: ignore[type-arg]  # noqa: SLOT001
    pass


class Mapped(dict):  # type: ignore[type-arg]
    pass


for _kind, _names in {
    Slotted: ("__eq__", "__hash__", "__repr__"),
    Text: ("__eq__", "__ne__", "__hash__", "__repr__", "__str__", "__len__", "__getitem__"),
    Number: ("__eq__", "__ne__", "__hash__", "__repr__", "__str__", "__index__", "__int__"),
    Members: ("__eq__", "__ne__", "__hash__", "__repr__", "__len__", "__iter__", "__getitem__"),
    Mapped: ("__eq__", "__ne__", "__hash__", "__repr__", "__len__", "__iter__", "__getitem__"),
}.items():
    for _dunder in _names:
        _plain = DUNDERS[_dunder] if _kind is Slotted else getattr(_kind.__base__, _dunder)
        setattr(_kind, _dunder, hostile(_dunder, _plain or (lambda _: 3)))


class Colour(enum.Enum):
    RED = 1
    BLUE = 2

    def __hash__(self) -> int:
        refuse()
        return 3

    def __eq__(self, other: object) -> bool:
        refuse()
        return self is other


class Pair(NamedTuple):
    a: int
    b: int


@dataclasses.dataclass(frozen=True)
class Config:
    inner: Any
    rate: float = 1.0


class Node:
    def __init__(self, x: Any, aux: Any) -> None:
        self.x, self.aux = x, aux

    __getattr__, __eq__, __hash__, __repr__, __len__ = (
        hostile(name, DUNDERS.get(name, object.__getattribute__))
        for name in ("__getattr__", "__eq__", "__hash__", "__repr__", "__len__")
    )


jax.tree_util.register_pytree_node(Node, lambda n: ((n.x,), n.aux), lambda aux, c: Node(*c, aux))


class Key:
    """JAX sorts keys, and names them; we ask for their order alone."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __lt__(self, other: Any) -> bool:
        return bool(self.number < other.number)

    __eq__ = hostile("__eq__", lambda s, o: s.number == o.number)
    __hash__ = hostile("__hash__", lambda s: hash(s.number))
    __repr__ = hostile("__repr__", lambda s: f"Key({s.number})")


def of_statics(make: Callable[[int], Any]) -> list[Any]:
    @functools.partial(jax.jit, static_argnums=1, static_argnames=("by",))
    def f(x: jax.Array, static: Any = None, by: Any = None) -> jax.Array:
        del static, by
        return 2 * x

    again = [f(X, make(1)), f(X, make(2)), f(Y, make(2))]
    return [*again, f(X, by=make(1)), f(Y, by=make(2))]


def of_closures(make: Callable[[int], Any]) -> list[Any]:
    def made(held: Any) -> Callable[[jax.Array], jax.Array]:
        return lambda x: (held, x * 2)[1]

    return [jax.jit(made(make(number)))(X) for number in (1, 2)]


def of_partials(make: Callable[[int], Any]) -> list[Any]:
    def f(_held: Any, x: jax.Array, **_also: Any) -> jax.Array:
        return 3 * x

    partials = [functools.partial(f, make(number), also=make(number)) for number in (1, 2)]
    return [jax.jit(partial)(X) for partial in partials]


def of_callables(make: Callable[[int], Any]) -> list[Any]:
    one = make(1)
    functions = (one, make(2), one.method, functools.partial(one))
    return [jax.jit(function)(x) for function in functions for x in (X, Y)]


def of_aux_data(make: Callable[[int], Any]) -> list[Any]:
    f = jax.jit(lambda node: 2 * node.x)
    return [f(Node(X, make(1))), f(Node(X, make(2))), f(Node(Y, make(2)))]


def of_keys(make: Callable[[int], Any]) -> list[Any]:
    f = jax.jit(lambda values: [2 * value for value in values.values()])
    return [f({make(1): X, make(2): Y}), f({make(1): Y, make(3): Y})]


@pytest.fixture
def history() -> Iterator[None]:
    with registry.own_history():
        yield


@pytest.mark.usefixtures("history")
@pytest.mark.parametrize(
    ("place", "make"),
    [
        *((of_statics, kind) for kind in (Hostile, WithMeta, Slotted, Text, Number)),
        (of_statics, lambda n: (Hostile(n), 1)),
        (of_statics, lambda n: frozenset({Hostile(n)})),
        (of_statics, lambda n: Config(Config((Text("a"), Number(n), Hostile(n))))),
        (of_statics, lambda n: Members((n, "a"))),
        (of_statics, lambda n: Mapped(a=n)),
        (of_statics, Colour),
        (of_statics, lambda n: [Hostile, WithMeta][n - 1]),
        (of_statics, lambda n: functools.partial(len, Hostile(n))),
        (of_statics, lambda n: Hostile(n).method),
        (of_closures, Hostile),
        (of_closures, WithMeta),
        (of_partials, Hostile),
        (of_callables, Hostile),
        (of_aux_data, Hostile),
        (of_aux_data, WithMeta),
        (of_aux_data, Text),
        (of_keys, Key),
    ],
)
def test_none_of_the_users_code_is_run(place: Callable[..., list[Any]], make: Any) -> None:
    with jitcount.record() as log, jitcount.max_compiles(100):
        found = jax.tree.leaves(place(make))
    assert log.count() > 1
    assert "unknown" not in {cause.kind for c in log.compiles for cause in c.causes}
    assert str(log)
    expected = [np.asarray(value).tolist() for value in jax.tree.leaves(place(make))]
    assert [np.asarray(value).tolist() for value in found] == expected


@pytest.mark.usefixtures("history")
def test_values_that_are_equal_by_some_of_their_fields_are_the_same() -> None:
    class Model:
        def __init__(self, name: str, made: int) -> None:
            self.name, self.made = name, made

        def key(self) -> str:
            return self.name

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Model) and self.key() == other.key()

        def __hash__(self) -> int:
            return hash(self.name)

    f = jax.jit(lambda x, _: x, static_argnums=1)
    with jitcount.record() as log:
        f(X, Model("a", 1))
        f(Y, Model("a", 2))
        f(Y, Model("b", 1))
    assert [[c.kind for c in one.causes] for one in log.compiles] == [
        ["first-call"],
        ["shape"],
        ["static-argument"],
    ]


def test_what_an_object_holds_is_found_without_asking_it() -> None:
    named = Pair(1, 2)
    one = Hostile(5)
    assert (
        safe_getattr(one, "value"),
        safe_getattr(one, "method"),
        safe_getattr(one, "other", 3),
    ) == (5, None, 3)
    assert (
        safe_getattr(Slotted(7), "value"),
        safe_getattr(named, "b"),
        safe_getattr(len, "__name__"),
    ) == (7, 2, "len")
    assert (instance_dict(one), instance_dict(3), type_name(one)) == ({"value": 5}, {}, "Hostile")
    assert (
        safe_hasattr(one, "value"),
        safe_hasattr(one, "method"),
        safe_hasattr(one, "other"),
    ) == (True, True, False)
    assert is_a(np.float32(1), np.generic)
    assert not is_a(one, int, str)
