"""Something else is compiled in place of what JAX asks for, and only inside of the block."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src import compiler

from jitcount._jax.substituting import substituted

if TYPE_CHECKING:
    from collections.abc import Callable

    from jitcount._jax.substituting import Compilable

_SETTING = "jax_xla_profile_version"
_FIRST, _SECOND = 1_000_001, 1_000_002


def _state() -> tuple[Any, Any]:
    return compiler.compile_or_get_cached, jax.config.values[_SETTING]


def _always(number: float) -> Callable[[Compilable], Any]:
    """In place of each program that gives float32: the same number everywhere."""

    def substitute(compilable: Compilable) -> Any:
        given, made = compilable.signature()
        if not all(each.endswith("f32>") for each in made):
            return None  # to compare results is an operation too
        heads = ", ".join(f"%arg{i}: {each}" for i, each in enumerate(given))
        lines = [f"%c{i} = stablehlo.constant dense<{number}> : {t}" for i, t in enumerate(made)]
        types = ", ".join(made)
        names = ", ".join(f"%c{i}" for i in range(len(made))) + (f" : {types}" if made else "")
        text = (
            f"func.func public @main({heads}) -> ({types}) {{\n"
            + "\n".join(lines)
            + f"\nfunc.return {names}\n}}\n"
        )
        return compilable.compile(compilable.with_body(text))

    return substitute


def _twice(x: Any) -> Any:
    return x * 2


def test_inside_and_outside_never_mix() -> None:
    f, x = jax.jit(_twice), jnp.float32(3)
    assert f(x) == 6
    for _ in range(2):
        with substituted(_always(1.5), _FIRST):
            assert f(x) == 1.5
        assert f(x) == 6
    with substituted(_always(2.5), _SECOND):
        assert f(x) == 2.5
    with substituted(_always(9.5), _FIRST):
        assert f(x) == 1.5  # the same number finds what was compiled under it
    assert f(x) == 6


def test_what_was_first_compiled_inside_is_not_found_outside() -> None:
    f, x = jax.jit(_twice), jnp.float32(3)
    with substituted(_always(1.5), _FIRST):
        assert f(x) == 1.5
        assert jnp.sin(x) == 1.5  # eager
        assert jax.jit(_twice).lower(x).compile()(x) == 1.5
    assert f(x) == 6
    assert jnp.sin(x) == pytest.approx(np.sin(3.0))


def test_none_is_as_ever() -> None:
    asked = []
    with substituted(lambda c: asked.append(c.platform), _FIRST):
        assert jax.jit(_twice)(jnp.float32(3)) == 6
    assert asked[-1:] == ["cpu"]


def test_what_is_compiled_is_described() -> None:
    seen: list[tuple[Any, ...]] = []

    def look(c: Compilable) -> None:
        seen.append((c.signature(), c.devices, c.has_bfloat16()))

    x = jnp.ones((2, 3))
    with substituted(look, _FIRST):
        jax.jit(lambda x, n: (x.astype(jnp.bfloat16), n + 1))(x, np.int32(1))
    kinds = (["tensor<2x3xf32>", "tensor<i32>"], ["tensor<2x3xbf16>", "tensor<i32>"])
    assert seen == [(kinds, 1, True)]


def test_outputs_of_any_number_and_structure() -> None:
    x = jnp.arange(3.0)
    with substituted(_always(1.5), _FIRST):
        made = jax.jit(lambda x: {"a": x, "b": (x.sum(), x[:0])})(x)
        assert jax.jit(lambda _: ())(x) == ()
    assert jax.tree.map(np.shape, made) == {"a": (3,), "b": ((), (0,))}
    np.testing.assert_array_equal(made["a"], [1.5, 1.5, 1.5])
    assert made["b"][0] == 1.5


def test_weak_types_stay() -> None:
    with substituted(_always(1.5), _FIRST):
        assert jax.jit(_twice)(2.0).weak_type
        assert not jax.jit(_twice)(np.float32(2)).weak_type


def test_donated_arguments_are_gone() -> None:
    x, y = jnp.arange(4.0), jnp.arange(4.0)
    with substituted(_always(1.5), _FIRST):
        made = jax.jit(lambda x, y: x + y, donate_argnums=0)(x, y)
        np.testing.assert_array_equal(made, np.full(4, 1.5))
    assert (x.is_deleted(), y.is_deleted()) == (True, False)


def test_under_grad_and_vmap() -> None:
    f, x = jax.jit(lambda x: jnp.sin(x).sum()), jnp.arange(3.0)
    with substituted(_always(1.5), _FIRST):
        assert f(x) == 1.5
        np.testing.assert_array_equal(jax.jit(jax.grad(f))(x), np.full(3, 1.5))
        np.testing.assert_array_equal(jax.jit(jax.vmap(_twice))(x), np.full(3, 1.5))
    np.testing.assert_allclose(jax.jit(jax.grad(f))(x), np.cos(np.arange(3.0)), 1e-6)


def test_everything_is_as_before_when_the_block_raises() -> None:
    before = _state()

    def fail() -> None:
        with substituted(_always(1), _FIRST):
            raise RuntimeError("the user's")

    with pytest.raises(RuntimeError, match="the user's"):
        fail()
    assert _state() == before
    assert jax.jit(_twice)(jnp.float32(3)) == 6


def test_blocks_inside_blocks() -> None:
    before = _state()
    f, x = jax.jit(_twice), jnp.float32(3)
    with substituted(_always(1.5), _FIRST):
        with substituted(_always(2.5), _SECOND):
            assert f(x) == 2.5
        assert f(x) == 1.5
        with substituted(_always(3.5), _FIRST):
            assert jax.jit(lambda x: x + 1)(x) == 3.5
    assert _state() == before
    assert f(x) == 6


def test_in_other_threads() -> None:
    f, found = jax.jit(_twice), []
    x = jnp.float32(3)

    def work() -> None:
        found.append(float(f(x)))

    def run() -> None:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    with substituted(_always(1.5), _FIRST):
        run()
    run()
    assert found == [1.5] * 4 + [6.0] * 4


@pytest.mark.usefixtures("disk_cache")
def test_the_persistent_cache_neither_gives_nor_gets() -> None:
    x = jnp.float32(3)
    with substituted(_always(1.5), _FIRST):
        assert jax.jit(_twice)(x) == 1.5
    jax.clear_caches()
    assert jax.jit(_twice)(x) == 6
    jax.clear_caches()
    with substituted(_always(2.5), _FIRST):
        assert jax.jit(_twice)(x) == 2.5


@pytest.mark.two_devices
def test_shardings_stay() -> None:
    mesh = jax.make_mesh((2,), ("x",))
    spec = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    x = jax.device_put(jnp.arange(4.0), spec)
    with substituted(_always(1.5), _FIRST):
        made = jax.jit(_twice, out_shardings=spec)(x)
    assert made.sharding == spec
    np.testing.assert_array_equal(made, np.full(4, 1.5))
