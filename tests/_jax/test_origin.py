"""Whose code something is."""

import functools
import sysconfig
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jaxlib
import pytest

from jitcount._jax.origin import JAX_DIRECTORIES, is_made_by_jax, is_module_of_jax


def users(x: Any) -> Any:
    return x


def test_jaxs_files_are_in_jaxs_directories_and_no_others() -> None:
    for module in jax, jaxlib, jax.numpy.linalg:
        assert str(module.__file__).startswith(JAX_DIRECTORIES)
    beside = Path(jax.__file__).parents[1] / "jaxtyping" / "__init__.py"
    for file in __file__, str(beside), f"{sysconfig.get_path('stdlib')}/functools.py":
        assert not file.startswith(JAX_DIRECTORIES)


@pytest.mark.parametrize(
    ("name", "is_jaxs"),
    [
        ("jax", True),
        ("jaxlib.mlir", True),
        ("jax._src.numpy", True),
        ("jaxtyping", False),
        ("jax_md.space", False),
        ("my.jax", False),
        ("", False),
    ],
)
def test_a_module_is_jaxs_by_its_first_name(name: str, is_jaxs: bool) -> None:  # noqa: FBT001
    assert is_module_of_jax(name) is is_jaxs


@pytest.mark.parametrize(
    "fun",
    [
        users,
        lambda x: x,
        functools.partial(jnp.sum, axis=0),
        jnp.add,
        jnp.linalg.norm,
        jax.vmap(jnp.sum),
        len,
    ],
)
def test_what_a_user_can_get_hold_of_is_not_made_by_jax(fun: Any) -> None:
    assert not is_made_by_jax(fun)


@pytest.mark.parametrize("decorated", [jnp.sin, jnp.linalg.norm])
def test_what_jaxs_own_decorator_replaced_is_made_by_jax(decorated: Any) -> None:
    assert is_made_by_jax(decorated.__wrapped__)
