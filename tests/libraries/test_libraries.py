"""Causes through the libraries people use: the function and the arguments are the user's."""

# mypy: disallow-untyped-decorators=False

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import jitcount
from jitcount.explain.hub import hub

equinox = pytest.importorskip("equinox")
linen = pytest.importorskip("flax.linen")
nnx = pytest.importorskip("flax.nnx")
jaxtyping = pytest.importorskip("jaxtyping")
optax = pytest.importorskip("optax")

pytestmark = pytest.mark.filterwarnings("default")

SHORT, LONG = jnp.ones((2, 3)), jnp.ones((5, 3))


def causes(program: Callable[[], object]) -> list[str]:
    """Of each compile of the user's: the function, and each cause's kind and place."""
    with hub.own_history(), jitcount.record() as log:
        program()
    return [
        f"{c.function}: " + ", ".join(f"{cause.kind} {cause.where}" for cause in c.causes)
        for c in log.compiles
        if not c.eager
    ]


def mlp(width: int = 4) -> Any:
    return equinox.nn.MLP(3, 1, width, 1, key=jax.random.key(0))


def test_equinox_filter_jit_names_the_users_arguments() -> None:
    @equinox.filter_jit
    def predict(model: Any, x: Any, flag: bool = True) -> Any:  # noqa: FBT001, FBT002
        return jax.vmap(model)(x) if flag else x

    def program() -> None:
        model = mlp()
        predict(model, SHORT)
        predict(model, LONG)
        predict(model, SHORT, False)  # noqa: FBT003

    assert causes(program) == [
        "predict: first-call predict",
        "predict: shape x",
        "predict: pytree flag",
    ]


def test_equinox_filter_jit_names_a_static_value() -> None:
    @equinox.filter_jit
    def scale(x: Any, by: int) -> Any:
        return by * x

    def program() -> None:
        scale(SHORT, 2)
        scale(SHORT, 7)

    assert causes(program) == ["scale: first-call scale", "scale: static-argument by"]


def test_two_functions_behind_equinox_are_two_first_calls() -> None:
    def program() -> None:
        equinox.filter_jit(lambda x: x + 1)(SHORT)
        equinox.filter_jit(lambda x: x + 2)(SHORT)

    assert causes(program) == ["<lambda>: first-call <lambda>"] * 2


def test_a_new_lambda_behind_equinox_is_a_new_function() -> None:
    def program() -> None:
        for number in range(2):
            equinox.filter_jit(lambda x, n=number: x + n)(SHORT)

    assert [found.split()[1] for found in causes(program)] == ["first-call", "new-function"]


def test_a_module_of_equinox_is_told_by_its_arrays() -> None:
    def program() -> None:
        jitted = equinox.filter_jit(mlp())
        jitted(SHORT[0])
        jitted(SHORT[0].astype("bfloat16"))

    assert causes(program) == ["MLP: first-call MLP", "MLP: dtype x"]


def test_a_gradient_behind_equinox_is_the_users_loss() -> None:
    @equinox.filter_jit
    @equinox.filter_value_and_grad
    def loss(model: Any, x: Any) -> Any:
        return jax.vmap(model)(x).sum()

    def program() -> None:
        model = mlp()
        loss(model, SHORT)
        loss(model, LONG)

    assert causes(program) == ["loss: first-call loss", "loss: shape x"]


class Linear(nnx.Module):  # type: ignore[misc, name-defined]
    def __init__(self, width: int) -> None:
        self.layer = nnx.Linear(3, width, rngs=nnx.Rngs(0))

    def __call__(self, x: Any) -> Any:
        return self.layer(x)


def test_flax_nnx_names_the_users_arguments() -> None:
    @nnx.jit
    def predict(model: Any, x: Any) -> Any:
        return model(x)

    @nnx.jit
    def other(model: Any, x: Any) -> Any:
        return model(x)

    narrow, wide = Linear(2), Linear(4)

    def program() -> None:
        predict(narrow, SHORT)
        predict(narrow, LONG)
        other(narrow, SHORT)
        predict(wide, SHORT)

    *found, last = causes(program)
    assert found == ["predict: first-call predict", "predict: shape x", "other: first-call other"]
    places = last.removeprefix("predict: ").split(", ")
    assert sorted(place.removesuffix(".value") for place in places) == [
        "shape model.layer.bias",
        "shape model.layer.kernel",
        "static-argument model.layer.out_features",
    ]


class Dense(linen.Module):  # type: ignore[misc, name-defined]
    width: int = 2

    @linen.compact
    def __call__(self, x: Any) -> Any:
        return linen.Dense(self.width)(x)


def test_flax_linen_names_the_arguments_of_the_module() -> None:
    module = Dense()
    variables = module.init(jax.random.key(0), SHORT)

    def program() -> None:
        jitted = jax.jit(module.apply)
        jitted(variables, SHORT)
        jitted(variables, LONG)

    assert causes(program) == ["apply: first-call apply", "apply: shape x"]


def test_an_optax_loop_compiles_once_for_each_shape() -> None:
    optimiser = optax.adam(1e-3)

    @jax.jit
    def train(params: Any, state: Any, x: Any) -> Any:
        gradients = jax.grad(lambda p: (x @ p["w"]).sum())(params)
        updates, state = optimiser.update(gradients, state)
        return optax.apply_updates(params, updates), state

    def program() -> None:
        params: Any = {"w": jnp.ones(3)}
        state = optimiser.init(params)
        for x in SHORT, SHORT, LONG:
            params, state = train(params, state, x)

    assert causes(program) == ["train: first-call train", "train: shape x"]


def test_a_weakly_typed_optax_state_is_named_by_its_place() -> None:
    optimiser = optax.adam(1e-3)

    @jax.jit
    def train(params: Any, state: Any) -> Any:
        updates, state = optimiser.update(params, state)
        return optax.apply_updates(params, updates), state

    def program() -> None:
        params: Any = {"w": 1.0}
        state = optimiser.init({"w": jnp.float32(1)})
        for _ in range(2):
            params, state = train(params, state)

    assert causes(program) == ["train: first-call train", "train: weak-type params['w']"]


def test_a_jaxtyped_function_keeps_its_name_and_arguments() -> None:
    @jax.jit
    @jaxtyping.jaxtyped(typechecker=None)
    def shift(x: Any) -> Any:
        return x + 1

    def program() -> None:
        shift(SHORT)
        shift(LONG)

    assert causes(program) == ["shift: first-call shift", "shift: shape x"]
