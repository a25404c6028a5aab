import platform
import sys

import jax
import msgspec
import pytest

import jitcount
from jitcount._jax import backends
from jitcount._ledger.environment import environment, environment_so_far


def test_describes_the_backend_at_hand() -> None:
    found = environment()
    assert found.platform == jax.default_backend()
    assert found.device_kind == jax.devices()[0].device_kind
    assert found.device_count == jax.device_count()
    assert found.jax == jax.__version__
    assert found.jaxlib.split(".")[:2] == found.jax.split(".")[:2]
    assert found.python == platform.python_version()
    assert found.jitcount == jitcount.__version__


def test_without_a_backend_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert environment_so_far() == environment()
    monkeypatch.setattr(backends, "has_started", lambda: False)
    found = environment_so_far()
    assert (found.platform, found.device_count, found.jax) == ("", 0, jax.__version__)
    found = msgspec.structs.replace(
        found, jax="0.10.2", jaxlib="", plugins={}, python="3.11.7", system="Linux x86_64"
    )
    assert str(found) == "no backend: jax 0.10.2, Python 3.11.7, Linux x86_64"


def test_needs_nothing_of_what_a_program_may_take_away(monkeypatch: pytest.MonkeyPatch) -> None:
    before = environment()
    monkeypatch.setattr(sys, "path", [])  # with it, what is installed is not found
    assert msgspec.structs.replace(environment(), plugins=before.plugins) == before


def test_reads_as_one_line() -> None:
    found = msgspec.structs.replace(
        environment(),
        platform="gpu",
        device_kind="NVIDIA H100",
        device_count=8,
        jax="0.10.2",
        jaxlib="0.10.2",
        plugins={"jax-cuda12-plugin": "0.10.2"},
        python="3.11.7",
        system="Linux x86_64",
    )
    assert str(found) == (
        "gpu (8 × NVIDIA H100): jax 0.10.2, jaxlib 0.10.2, jax-cuda12-plugin 0.10.2, "
        "Python 3.11.7, Linux x86_64"
    )
    assert str(msgspec.structs.replace(found, device_count=1)).startswith("gpu (NVIDIA H100): ")
    config = {"jax_enable_x64": "True", "jax_disable_jit": "True"}
    other = msgspec.structs.replace(found, process_count=2, config=config)
    assert str(other).startswith("gpu (8 × NVIDIA H100 in 2 processes, x64, without jit): ")
