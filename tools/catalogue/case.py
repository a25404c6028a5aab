"""The catalogue's tools: arrays that are made without a compile, and how a case is put in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from tools.cause_case import CauseCase

if TYPE_CHECKING:
    from collections.abc import Callable

    Program = Callable[[], None]

CATALOGUE: list[CauseCase] = []


def case(function: str, *causes: list[str], devices: int = 1) -> Callable[[Program], Program]:
    """Put the program below into the catalogue, under its own name."""

    def add(program: Program) -> Program:
        name = program.__name__.strip("_").replace("_", "-")
        CATALOGUE.append(CauseCase(name, program, function, causes, devices))
        return program

    return add


def arr(*shape: int, dtype: str = "float32") -> np.ndarray:
    """An array that is made without a compile."""
    return np.ones(shape, dtype)


def on(device: int, *shape: int) -> jax.Array:
    """An array that is committed to a device."""
    return jax.device_put(arr(*shape), jax.devices()[device])


def sharded(*spec: str | None) -> jax.Array:
    """An array over two devices."""
    mesh = Mesh(np.array(jax.devices()[:2]), ("i",))
    return jax.device_put(arr(4, 4), NamedSharding(mesh, PartitionSpec(*spec)))
