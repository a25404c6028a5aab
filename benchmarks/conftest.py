"""What all benchmarks share: three ways to write the sum, and the environment of the figures."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from jitcount._ledger.environment import environment
from variants import VARIANTS

if TYPE_CHECKING:
    from variants import Variant


def pytest_configure() -> None:
    if os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        raise pytest.UsageError(
            "JAX_COMPILATION_CACHE_DIR is set: compiles would be read from disk, not measured; "
            "unset it for benchmarks"
        )


def pytest_benchmark_update_machine_info(machine_info: dict[str, Any]) -> None:
    # pytest-benchmark's own description has no device in it: runs of two backends would mix.
    machine_info["jax"] = msgspec.to_builtins(environment()) | {"text": str(environment())}


@pytest.fixture(params=VARIANTS)
def variant(request: pytest.FixtureRequest) -> Variant:
    return VARIANTS[request.param]
