"""Causes through the libraries people use: the function and the arguments are the user's."""

# mypy: disallow-untyped-decorators=False

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jitcount
from jitcount._registry import registry

equinox = pytest.importorskip("equinox")
haiku = pytest.importorskip("haiku")
linen = pytest.importorskip("flax.linen")
nnx = pytest.importorskip("flax.nnx")
train_state = pytest.importorskip("flax.training.train_state")
jaxtyping = pytest.importorskip("jaxtyping")
numpyro = pytest.importorskip("numpyro")
svi = pytest.importorskip("numpyro.infer")
optax = pytest.importorskip("optax")

pytestmark = pytest.mark.filterwarnings("default")

SHORT, LONG = jnp.ones((2, 3)), jnp.ones((5, 3))


def causes(program: Callable[[], object]) -> list[str]:
    """Of each compile of the user's: the function, and each cause's kind and place."""
    with registry.own_history(), jitcount.record() as log:
        program()
    return [
        f"{c.function}: " + ", ".join(f"{cause.kind} {cause.where}" for cause in c.causes)
        for c in log.compiles
        if not c.eager
    ]


def sentences(program: Callable[[], object]) -> list[list[str]]:
    """Of each compile of the user's, what is said; nothing of the program is not known."""
    with registry.own_history(), jitcount.record() as log:
        program()
    kinds = {cause.kind for c in log.compiles for cause in c.causes}
    assert not kinds & {"unknown", "caches-cleared"}
    return [[str(cause) for cause in c.causes] for c in log.compiles if not c.eager]


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


class Dropping(linen.Module):  # type: ignore[misc, name-defined]
    @linen.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        for _ in range(3):
            x = linen.Dropout(0.5, deterministic=False)(linen.Dense(3)(x))
        return x


def test_a_profile_has_the_lines_inside_of_a_module_of_flax() -> None:
    """Flax keeps its own frames out of what JAX writes; and its random numbers are JAX's."""
    module, keys = Dropping(), {"params": jax.random.key(0), "dropout": jax.random.key(1)}
    variables = module.init(keys, SHORT)

    @jax.jit
    def loss(variables: Any, x: Any, key: Any) -> Any:
        return module.apply(variables, x, rngs={"dropout": key}).sum()

    with jitcount.record(profile=True) as log:
        loss(variables, SHORT, keys["dropout"])
    (found,) = log.compiles
    users = [line for line in found.lines if line.file == __file__ and line.optimised_operations]
    assert {line.function for line in users} == {
        "Dropping.__call__",
        f"{test_a_profile_has_the_lines_inside_of_a_module_of_flax.__name__}.loss",
    }
    assert users[0].function == "Dropping.__call__"
    assert [(loop.call_site.function, loop.copies) for loop in found.loops] == [
        ("Dropping.__call__", 3)
    ]


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


# --- What their states and modules hold beside arrays ---------------------------------------------


def test_a_train_state_of_flax_with_another_optimiser_or_module() -> None:
    @jax.jit
    def train(state: Any, x: Any) -> Any:
        def loss(params: Any) -> Any:
            return state.apply_fn({"params": params}, x).sum()

        return state.apply_gradients(grads=jax.grad(loss)(state.params))

    module, optimiser = Dense(), optax.sgd(0.1)
    params = module.init(jax.random.key(0), SHORT)["params"]

    def state(apply: Any = module.apply, tx: Any = optimiser) -> Any:
        return train_state.TrainState.create(apply_fn=apply, params=params, tx=tx)

    def program() -> None:
        train(state(), SHORT)
        train(state(), SHORT)
        train(state(tx=optax.sgd(0.1)), SHORT)
        train(state(apply=Dense().apply), SHORT)
        train(state(), LONG)

    assert sentences(program) == [
        ["first call of train"],
        ["state.tx is another object"],
        ["state.apply_fn is another object"],
        ["axis 0 of x went from 2 to 5: float32[2,3] became float32[5,3]"],
    ]


class Dropped(nnx.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        rngs = nnx.Rngs(0)
        self.layer = nnx.Linear(3, 2, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.dropout(self.layer(x))


def test_flax_nnx_names_what_eval_changes() -> None:
    @nnx.jit
    def predict(model: Any, x: Any) -> Any:
        return model(x)

    model = Dropped()

    def program() -> None:
        predict(model, SHORT)
        model.eval()
        predict(model, SHORT)
        model.train()
        predict(model, SHORT)

    assert sentences(program) == [
        ["first call of predict"],
        ["model.dropout.deterministic went from False to True"],
    ]


def test_the_state_of_adam_that_begins_weakly_typed() -> None:
    optimiser = optax.adam(1e-3)

    @jax.jit
    def train(params: Any, state: Any) -> Any:
        updates, state = optimiser.update(params, state)
        return optax.apply_updates(params, updates), state

    def program() -> None:
        params: Any = {"w": jnp.float32(1)}
        state = optimiser.init({"w": 1.0})
        for _ in range(3):
            params, state = train(params, state)

    first, second = causes(program)
    assert first == "train: first-call train"
    assert set(second.removeprefix("train: ").split(", ")) == {
        "weak-type state[0].mu['w']",
        "weak-type state[0].nu['w']",
    }


def test_optimisers_from_a_factory_are_new_functions_and_then_shapes() -> None:
    def make(rate: float) -> tuple[Any, Any]:
        optimiser = optax.adam(rate)

        @jax.jit
        def train(params: Any, state: Any, x: Any) -> Any:
            gradients = jax.grad(lambda p: (x @ p["w"]).sum())(params)
            updates, state = optimiser.update(gradients, state)
            return optax.apply_updates(params, updates), state

        return optimiser, train

    def program() -> None:
        for rate in 0.1, 0.2:
            optimiser, train = make(rate)
            params: Any = {"w": jnp.ones(3)}
            state = optimiser.init(params)
            for x in SHORT, SHORT, LONG:
                params, state = train(params, state, x)

    kinds = [found.split()[1] for found in causes(program)]
    assert kinds == ["first-call", "shape", "new-function", "shape"]


class Scaled(equinox.Module):  # type: ignore[misc, name-defined]
    weight: Any
    name: str = equinox.field(static=True)

    def __call__(self, x: Any) -> Any:
        return self.weight * x


def test_equinox_names_the_activation_and_the_static_field() -> None:
    @equinox.filter_jit
    def predict(model: Any, x: Any) -> Any:
        return jax.vmap(model)(x)

    def activated(by: Any) -> Any:
        return equinox.nn.MLP(3, 1, 4, 1, activation=by, key=jax.random.key(0))

    def program() -> None:
        for model in (
            Scaled(jnp.ones(3), "a"),
            Scaled(jnp.ones(3), "b"),
            activated(jnp.tanh),
            activated(jnp.sin),
        ):
            predict(model, SHORT)

    first, named, another, activation = sentences(program)
    assert first == ["first call of predict"]
    assert named == ["model.name went from 'a' to 'b'"]
    assert len(another) == 1
    assert another[0].startswith("model went from a Scaled with .weight to a MLP with .layers")
    assert activation == ["static argument model.activation went from tanh to sin"]


def test_haiku_names_the_arguments_of_the_function() -> None:
    def net(x: Any, train: bool) -> Any:  # noqa: FBT001
        return haiku.Linear(2)(x) * (2 if train else 1)

    def transformed() -> Any:
        return haiku.without_apply_rng(haiku.transform(net))

    params = transformed().init(jax.random.key(0), SHORT, True)  # noqa: FBT003

    def program() -> None:
        apply = jax.jit(transformed().apply, static_argnums=2)
        for x, train in (SHORT, True), (SHORT, True), (LONG, True), (LONG, False):
            apply(params, x, train)
        jax.jit(transformed().apply, static_argnums=2)(params, SHORT, True)  # noqa: FBT003

    *found, last = causes(program)
    assert found == [
        "apply_fn: first-call apply_fn",
        "apply_fn: shape x",
        "apply_fn: static-argument train",
    ]
    assert last.startswith("apply_fn: new-function ")


def test_numpyro_with_its_own_optimisers_is_known() -> None:
    def model(x: Any) -> None:
        mean = numpyro.sample("mean", numpyro.distributions.Normal(0, 1))
        numpyro.sample("x", numpyro.distributions.Normal(mean, 1), obs=x)

    guide = pytest.importorskip("numpyro.infer.autoguide").AutoNormal(model)
    inference = svi.SVI(model, guide, numpyro.optim.Adam(0.1), svi.Trace_ELBO())

    def program() -> None:
        state = inference.init(jax.random.key(0), np.ones(4, np.float32))
        update = jax.jit(inference.update)
        for length in 4, 4, 5:
            state, _ = update(state, np.ones(length, np.float32))

    assert sentences(program) == [
        ["first call of update"],
        ["axis 0 of args[0] went from 4 to 5: float32[4] became float32[5]"],
    ]
