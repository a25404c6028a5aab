"""What to do about a cause: one piece of advice for each case, with the user's own names in it."""

from __future__ import annotations

import os


def first_call(function: str) -> str:
    """Every program is compiled once."""
    return f"nothing to mend: {function} must be compiled once"


def cleared(function: str) -> str:
    """The caches lost a program."""
    return f"do not call jax.clear_caches() between calls of {function}"


def shape(place: str, axes: list[int]) -> str:
    """An axis has another length."""
    if len(axes) == 1:
        return f"pad axis {axes[0]} of {place} to one length, or to a few (buckets)"
    return f"pad axes {', '.join(map(str, axes))} of {place} to one shape, or to a few (buckets)"


def rank(place: str, dimensions: int) -> str:
    """An array has another number of axes."""
    return f"pass {place} with rank {dimensions} in every call"


def dtype(place: str, old: str) -> str:
    """An array has another dtype."""
    return f"cast it before the call: {place}.astype('{old}')"


def weak_type(place: str, name: str, *, is_scalar: bool) -> str:
    """A Python scalar in the place of an array, or the other way round."""
    if is_scalar:
        return f"pass jnp.{name}(...) for {place} in every call, or mark {place} as static"
    return f"make it strongly typed before the first call: {place}.astype('{name}')"


def static(place: str) -> str:
    """A static argument has another value."""
    return f"pass {place} as an array if the program can do with one for all values of {place}"


def no_equality(place: str, type_name: str) -> str:
    """Static objects that compare by identity."""
    return (
        f"give {type_name} __eq__ and __hash__ (a frozen dataclass has both), "
        f"or pass the same object as {place}"
    )


def static_function(place: str) -> str:
    """A function that is passed as a static argument."""
    return f"make the function that is passed as {place} once, outside of the loop"


def parameter(place: str) -> str:
    """An operation outside of jit has something else compiled in."""
    return f"put the operation into a jitted function, or keep its {place} the same"


def convention(place: str, was: str) -> str:
    """By position, then by keyword."""
    return f"pass {place} {was} in every call"


def optional(place: str) -> str:
    """An argument that is not always given."""
    return f"give {place} in every call, or in none"


def none_or_array(place: str) -> str:
    """None against an array."""
    return f"pass an array for {place} in every call: zeros, say, where there is nothing to pass"


def container(place: str, old: str) -> str:
    """Another type of container."""
    return f"pass {place} as {old} in every call"


def static_field(place: str, type_name: str) -> str:
    """What a pytree node keeps beside its arrays."""
    return (
        f"keep what changes in {place} in an array field of {type_name}; "
        "its static fields are compiled in"
    )


def length(place: str) -> str:
    """A list of another length."""
    return f"stack {place} into one array, or pad it to one length"


def keys(place: str, changed: list[str]) -> str:
    """A dict with other keys."""
    return f"pass {', '.join(changed)} of {place} in every call, or in none"


def new_function(kind: str, name: str) -> str:
    """A function object that is made again and again."""
    if kind == "lambda":
        return "hoist the lambda out of the loop: make it once, and its jax.jit once"
    if kind == "partial":
        return f"make the partial of {name} once, or pass what it binds as arguments"
    if kind == "method":
        return f"keep one object, and one jax.jit of its {name}"
    return f"make {name} once; what it closes over can be passed as an argument"


def device(place: str, texts: list[str]) -> str:
    """An array that is bound to a device, or to another one."""
    target = texts[1] if texts[0].startswith("no device") else texts[0]
    return f"put {place} on {target} once, with jax.device_put, before the first call"


def sharding(place: str) -> str:
    """An array that is laid out another way."""
    return f"give {place} its sharding once, with jax.device_put, before the first call"


def jit_options(name: str, old: str) -> str:
    """Another `jax.jit` of the same function."""
    return f"keep one jax.jit of the function, with {name}={old}, and call that"


def config(name: str, *, for_a_block: bool) -> str:
    """A setting that is part of the key; says where it comes from, as far as it can be told."""
    if for_a_block:
        origin = "a context manager"
    elif name.upper() in os.environ:
        origin = f"jax.config.update or {name.upper()} in the environment"
    else:
        origin = "jax.config.update"
    return f"{origin} has set it; set it once, before the first call"
