"""Calls behind another library's jit; the libraries themselves are tested in tests/libraries."""

from typing import Any

import jax
import numpy as np
import pytest

from jitcount._observe import wrappers
from tests.helpers import described

X = np.ones(3, np.float32)


@jax.jit
def step(x: Any) -> Any:
    return 2 * x


CALLER = "def {name}(**local_variables):\n    return step(x)\n"


def caller(module: str, name: str) -> Any:
    """A function of that name in a module of that name, which calls the jit."""
    namespace: dict[str, Any] = {"__name__": module, "step": step, "x": X}
    exec(CALLER.format(name=name), namespace)  # noqa: S102
    return namespace[name]


@pytest.mark.parametrize(("module", "name"), wrappers._LIBRARIES)
def test_a_library_that_has_changed_is_read_like_any_other_caller(module: str, name: str) -> None:
    program = described(caller(module, name))
    assert program.function is not None
    assert (program.function.name, program.places) == ("step", ("x",))
