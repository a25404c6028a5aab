"""A training step of a small transformer in plain JAX: the suite's program of a real shape.

Attention, layer norm, cross-entropy, gradients and Adam, all in float32. Matrix products have their
precision pinned: the default is another one on each backend. The weights are made of integers with
NumPy, so that every machine starts from the same bits, and compiles nothing to do so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Parameters = dict[str, Any]

_PRECISION = jax.lax.Precision.HIGHEST
_LEARNING_RATE = 1e-3
_DECAYS = 0.9, 0.999
_EPSILON = 1e-8


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the model and its batch are."""

    vocabulary: int = 64
    width: int = 32
    heads: int = 4
    hidden: int = 64
    layers: int = 2
    length: int = 16
    batch: int = 8


class State(NamedTuple):
    """What a training step changes: the weights, and the state of Adam."""

    parameters: Parameters
    mean: Parameters
    """Adam's running mean of the gradients."""

    square: Parameters
    """Adam's running mean of their squares."""

    steps: Any
    """How many steps have been made: int32[]."""


def init(sizes: Sizes = Sizes()) -> State:  # noqa: B008 (frozen)
    """The state before the first step, in NumPy arrays."""
    parameters = _parameters(sizes)
    zeros = jax.tree.map(np.zeros_like, parameters)
    return State(parameters, zeros, jax.tree.map(np.copy, zeros), np.zeros((), np.int32))


def tokens(sizes: Sizes = Sizes(), seed: int = 0) -> np.ndarray:  # noqa: B008 (frozen)
    """A batch of token numbers: int32[batch, length]."""
    count = sizes.batch * sizes.length
    numbers = _integers(count, seed) % sizes.vocabulary
    return numbers.astype(np.int32).reshape(sizes.batch, sizes.length)


@jax.jit
def step(state: State, batch: Any) -> tuple[State, jax.Array]:
    """Make one step of Adam on a batch of tokens; returns the new state and the loss before it."""
    return _step(state, batch)


def sharded_step(
    mesh: Mesh,
    sizes: Sizes = Sizes(),  # noqa: B008 (frozen)
) -> tuple[Callable[[State, Any], tuple[State, jax.Array]], State, Callable[[Any], jax.Array]]:
    """The training step over a mesh: batch along "data", heads and hidden units along "model".

    A mesh without an axis "model" holds the whole model on every device.

    Returns:
        the jitted step, the first state on the devices, and what puts a batch there.
    """
    state = init(sizes)
    layout = _layout(mesh, state)
    along_batch = NamedSharding(mesh, PartitionSpec("data"))
    alone = NamedSharding(mesh, PartitionSpec())
    jitted = jax.jit(_step, in_shardings=(layout, along_batch), out_shardings=(layout, alone))
    return (
        jitted,
        jax.tree.map(_placed, state, layout),
        lambda batch: _placed(batch, along_batch),
    )


def _placed(values: np.ndarray, layout: NamedSharding) -> jax.Array:
    """Put an array on its devices; `jax.device_put` would compile for those of other processes."""
    return jax.make_array_from_callback(values.shape, layout, lambda index: values[index])


def mesh_of(devices: Sequence[Any], model: int = 1) -> Mesh:
    """A mesh of all devices, `model` of them along "model" where that is more than one."""
    if model == 1:
        return Mesh(np.array(devices), ("data",))
    return Mesh(np.array(devices).reshape(-1, model), ("data", "model"))


def _step(state: State, batch: Any) -> tuple[State, jax.Array]:
    loss, slope = jax.value_and_grad(_loss)(state.parameters, batch)
    return _adam(state, slope), loss


def _adam(state: State, slope: Parameters) -> State:
    steps = state.steps + jnp.int32(1)
    past = steps.astype(jnp.float32)
    first, second = _DECAYS
    mean = jax.tree.map(lambda m, g: first * m + (1 - first) * g, state.mean, slope)
    square = jax.tree.map(lambda s, g: second * s + (1 - second) * g * g, state.square, slope)

    def moved(weight: jax.Array, m: jax.Array, s: jax.Array) -> jax.Array:
        unbiased = m / (1 - first**past)
        scale = jnp.sqrt(s / (1 - second**past)) + _EPSILON
        return weight - _LEARNING_RATE * unbiased / scale

    return State(jax.tree.map(moved, state.parameters, mean, square), mean, square, steps)


def _loss(parameters: Parameters, batch: jax.Array) -> jax.Array:
    """The mean cross-entropy of each next token."""
    scores = _scores(parameters, batch[:, :-1])
    log_odds = jax.nn.log_softmax(scores)
    hit = jax.nn.one_hot(batch[:, 1:], scores.shape[-1], dtype=scores.dtype)
    return -jnp.mean(jnp.sum(hit * log_odds, axis=-1))


def _scores(parameters: Parameters, batch: jax.Array) -> jax.Array:
    x = parameters["tokens"][batch] + parameters["places"][: batch.shape[1]]
    for layer in parameters["layers"]:
        x = x + _attention(layer, _normal(layer["before_attention"], x))
        x = x + _dense(layer, _normal(layer["before_dense"], x))
    return _product("btw,vw->btv", _normal(parameters["last"], x), parameters["tokens"])


def _attention(layer: Parameters, x: jax.Array) -> jax.Array:
    query, key, value = _product("btw,kwhs->kbhts", x, layer["into_heads"])
    scores = _product("bhts,bhus->bhtu", query, key) / np.float32(np.sqrt(query.shape[-1]))
    is_past = np.tri(x.shape[1], dtype=bool)
    weights = jax.nn.softmax(jnp.where(is_past, scores, np.float32(-1e9)))
    seen = _product("bhtu,bhus->bhts", weights, value)
    return _product("bhts,hsw->btw", seen, layer["out_of_heads"])


def _dense(layer: Parameters, x: jax.Array) -> jax.Array:
    hidden = jax.nn.gelu(_product("btw,wh->bth", x, layer["into_hidden"]))
    return _product("bth,hw->btw", hidden, layer["out_of_hidden"])


def _normal(weights: Parameters, x: jax.Array) -> jax.Array:
    """Layer norm over the last axis."""
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean(centred * centred, axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt(variance + 1e-5) * weights["scale"] + weights["shift"]


def _product(form: str, *factors: jax.Array) -> jax.Array:
    return jnp.einsum(form, *factors, precision=_PRECISION)


def _parameters(sizes: Sizes) -> Parameters:
    seeds = iter(range(1, 1000))

    def weights(*shape: int) -> np.ndarray:
        """Return weights between -1 and 1, scaled by the width of the model."""
        numbers = _integers(int(np.prod(shape)), next(seeds)).astype(np.float32)
        scale = np.float32(2.0**-23 / sizes.width**0.5)
        return ((numbers - np.float32(2.0**23)) * scale).reshape(shape)

    def normal() -> Parameters:
        ones, zeros = np.ones(sizes.width, np.float32), np.zeros(sizes.width, np.float32)
        return {"scale": ones, "shift": zeros}

    width, head = sizes.width, sizes.width // sizes.heads
    return {
        "tokens": weights(sizes.vocabulary, width),
        "places": weights(sizes.length, width),
        "last": normal(),
        "layers": [
            {
                "before_attention": normal(),
                "into_heads": weights(3, width, sizes.heads, head),
                "out_of_heads": weights(sizes.heads, head, width),
                "before_dense": normal(),
                "into_hidden": weights(width, sizes.hidden),
                "out_of_hidden": weights(sizes.hidden, width),
            }
            for _ in range(sizes.layers)
        ],
    }


def _integers(count: int, seed: int) -> np.ndarray:
    """Integers below 2**24, which float32 can hold exactly: a hash of each place."""
    mixed = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed += np.uint64(seed * 0xD1B54A32D192ED03 % 2**64)
    mixed ^= mixed >> np.uint64(31)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return (mixed >> np.uint64(40)).astype(np.int64)


# The axis of each weight that holds the heads or the hidden units.
_MODEL_AXES = {"into_heads": 2, "out_of_heads": 0, "into_hidden": 1, "out_of_hidden": 0}


def _layout(mesh: Mesh, state: State) -> State:
    """How the state is laid out on the mesh."""

    def place(path: tuple[Any, ...], leaf: Any) -> NamedSharding:
        axis = _MODEL_AXES.get(getattr(path[-1], "key", ""))
        if axis is None or "model" not in mesh.axis_names:
            return NamedSharding(mesh, PartitionSpec())
        names: list[str | None] = [None] * leaf.ndim
        names[axis] = "model"
        return NamedSharding(mesh, PartitionSpec(*names))

    return State(*jax.tree_util.tree_map_with_path(place, state))
