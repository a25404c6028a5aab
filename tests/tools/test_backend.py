import jax
import pytest

from jitcount._ledger.environment import environment
from tests.helpers import python
from tools.backend import main


def test_says_what_the_backend_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(jax.default_backend()) == 0
    assert capsys.readouterr() == (f"{environment()}\n", "")


def test_refuses_another_backend(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("abacus") == 1
    assert capsys.readouterr() == ("", f"no abacus backend: JAX chose {environment()}\n")


def test_refuses_a_backend_that_cannot_start() -> None:
    done = python("-m", "tools.backend", "tpu", env={"JAX_PLATFORMS": "abacus"})
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("no tpu backend: Unable to initialize backend 'abacus'")
    assert "Traceback" not in done.stderr
