import jax
import pytest
from jax._src import xla_bridge

from jitcount._jax.backends import has_started
from tests.helpers import python

PROGRAM = """
import jax
from jitcount._jax.backends import has_started
print(has_started())
jax.devices()
print(has_started())
"""


def test_a_backend_has_started_once_devices_were_asked_for() -> None:
    done = python("-c", PROGRAM)
    assert (done.returncode, done.stdout) == (0, "False\nTrue\n")


def test_where_a_release_does_not_say_one_has_started(monkeypatch: pytest.MonkeyPatch) -> None:
    jax.devices()
    assert has_started()
    monkeypatch.delattr(xla_bridge, "backends_are_initialized")
    assert has_started()
