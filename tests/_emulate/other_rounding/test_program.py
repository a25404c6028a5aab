"""Whole programs with other roundings, as users run them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jitcount
from jitcount._emulate.other_rounding.program import OtherRounding
from tests._emulate.other_rounding.moving import X, here_and_moved


def _step(weights: Any, x: Any) -> Any:
    def loss(weights: Any) -> Any:
        hidden = x
        for each in weights:
            hidden = jnp.tanh(hidden @ each)
        return jnp.mean(hidden**2)

    return jax.value_and_grad(loss)(weights)


def test_a_seed_gives_the_same_in_every_run_and_another_one_something_else() -> None:
    weights = [X * 0.1, X.T * 0.1]
    runs = [here_and_moved(_step, weights, X, seed=seed) for seed in (1, 1, 2)]
    here, first = runs[0]
    again, other = runs[1][1], runs[2][1]
    assert all(
        np.array_equal(a, b) for a, b in zip(*map(jax.tree.leaves, (first, again)), strict=True)
    )
    for one in (first, other):
        for a, b in zip(*map(jax.tree.leaves, (here, one)), strict=True):
            np.testing.assert_allclose(b, a, rtol=0, atol=1e-5 * np.abs(a).max())
            assert np.any(a != b)
    assert any(np.any(a != b) for a, b in zip(*map(jax.tree.leaves, (first, other)), strict=True))


def test_unmoved_it_gives_this_machines_own_bits() -> None:
    def f(x: Any, key: Any) -> Any:
        def body(carry: Any, row: Any) -> Any:
            carry = carry * 0.9 + jnp.sin(row)
            return carry, jnp.where(carry.sum() > 0, carry, jnp.exp(carry))

        last, rows = lax.scan(body, x[0], x)
        limit = lax.while_loop(lambda y: y.sum() < 5, lambda y: y * 1.3 + 0.1, jnp.abs(last))
        small = x.astype(jnp.bfloat16) @ x.T.astype(jnp.bfloat16)
        return (
            jnp.sort(rows, 0),
            limit,
            jax.random.normal(key, (5,)),
            jnp.linalg.inv(x),
            small,
            (x + 1j * x.T) @ x,
            jnp.argsort(x),
            _step([x * 0.1], x),
        )

    here, unmoved = here_and_moved(f, X, jax.random.key(0), scale=0)
    for one, other in zip(jax.tree.leaves(here), jax.tree.leaves(unmoved), strict=True):
        assert one.tobytes() == other.tobytes()


def test_scale_says_how_far() -> None:
    here, near = here_and_moved(jnp.sum, X, scale=4)
    _, far = here_and_moved(jnp.sum, X, scale=4000)
    assert abs(far - here) > 100 * abs(near - here)


def test_steps_of_a_loop_are_moved_otherwise() -> None:
    def f(x: Any) -> Any:
        return lax.scan(lambda c, _: (c * 0.97 + 0.1, c), x, length=50)[1]

    here, moved = here_and_moved(f, X[0])
    steps = np.sign(moved - here)
    assert len({tuple(step) for step in steps[1:]}) > 40


def test_the_host_takes_part() -> None:
    def host_loop() -> float:
        total = 0.0
        for row in jnp.asarray(X):
            total += float(jnp.exp(row).sum())
        return total

    here = host_loop()
    with jitcount.as_if("rounding"):
        moved = host_loop()
    assert moved != here
    assert moved == pytest.approx(here, rel=1e-6)


def test_programs_names_and_counts_are_as_without_the_block() -> None:
    @jax.jit
    def doubled(x: Any) -> Any:
        return jnp.tanh(x) * 2.5 + x

    with jitcount.record() as log, jitcount.as_if("rounding") as emulation:
        doubled(X)
        doubled(X)
    (program,) = [each for each in emulation.programs if each.function == "doubled"]
    assert (program.signature, program.faithful) == (("float32[32,32]",), True)
    assert str(program.call_site).partition(":")[0].endswith("test_program.py")
    assert [each.function for each in log.compiles].count("doubled") == 1
    with jitcount.record() as log:
        doubled(X)
    (after,) = log.compiles
    assert after.function == "doubled"


def test_what_was_compiled_before_is_found_again_after_the_block() -> None:
    @jax.jit
    def f(x: Any) -> Any:
        return jnp.exp(x).sum()

    here = float(f(X))
    with jitcount.as_if("rounding"):
        assert float(f(X)) != here
    with jitcount.freeze():
        assert float(f(X)) == here


def test_donated_arguments_and_callbacks_stay() -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        jax.debug.callback(seen.append, x.sum())
        return jnp.tanh(x) + 1.5 * x

    given = jnp.asarray(X)
    with jitcount.as_if("rounding") as emulation:
        jax.jit(f, donate_argnums=0)(given).block_until_ready()
        jax.effects_barrier()
    assert emulation.faithful
    assert given.is_deleted()
    assert len(seen) == 1


def test_the_print_out_names_the_seed() -> None:
    with jitcount.as_if("rounding:3") as emulation:
        assert str(emulation) == "Computed with other rounding (seed 3): nothing was compiled"
        jax.jit(lambda x: x + 1)(X)
    assert str(emulation) == "Computed with other rounding (seed 3): 1 of 1 programs"
    assert emulation.target == "rounding:3"


def test_what_is_about_a_target_is_refused_in_one_sentence() -> None:
    with jitcount.as_if("rounding:3") as emulation:
        pass
    for wanted in ("error_by_line", "error_bound"):
        with pytest.raises(ValueError) as error:  # noqa: PT011 (the text is compared)
            getattr(emulation, wanted)(jnp.sin, 1.0)
        assert str(error.value) == (
            f"{wanted} is about a target's arithmetic, and this is as_if('rounding:3'); "
            "jitcount.tolerance(f, x) says how far rounding may move a result, and by which lines"
        )


@pytest.mark.parametrize(
    ("target", "arguments", "text"),
    [
        ("tpu:v5e", {"scale": 1.0}, "as_if('tpu:v5e') has no scale: it is for as_if('rounding')"),
        (
            "rounding",
            {"exact_products": True},
            "as_if('rounding') rounds no products otherwise: exact_products is no use",
        ),
        ("rounding", {"scale": -1}, "as_if('rounding'): a scale is from 0 on; it was given -1"),
    ],
)
def test_arguments_of_another_kind_are_refused(
    target: str, arguments: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 (the same)
        jitcount.as_if(target, **arguments)
    assert str(error.value) == text


def test_blocks_of_another_seed_or_scale_do_not_overlap() -> None:
    with (
        jitcount.as_if("rounding", scale=0.5),
        jitcount.as_if("rounding", scale=0.5),
        pytest.raises(ValueError, match=r"while as_if.'rounding', scale=0.5. is open"),
    ):
        jitcount.as_if("rounding:1").__enter__()


def test_a_program_that_cannot_be_rewritten_runs_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no such operation\nsecond line")

    monkeypatch.setattr(OtherRounding, "_rewrite", fail)
    f = jax.jit(lambda x: jnp.exp(x) + 1)
    with jitcount.as_if("rounding") as emulation:
        np.testing.assert_array_equal(f(X), f(X))
    assert [program.reason for program in emulation.programs] == ["RuntimeError: no such operation"]
    assert "as on the CPU: <lambda>(float32[32,32]): RuntimeError" in str(emulation)
