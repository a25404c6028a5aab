import os

# Before JAX is imported: a second CPU device, to see what committing an array does.
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "2")

import jax
import pytest

from jitcount.ledger.environment import environment


def pytest_report_header() -> str:
    return f"backend: {environment()}"


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("two_devices") and jax.device_count() < 2:
        pytest.skip("needs two devices")


@pytest.fixture(autouse=True)
def empty_caches() -> None:
    """No test's counts depend on what an earlier one compiled."""
    jax.clear_caches()
