import os
import subprocess
import sys

import jax
import pytest

from jitcount.ledger.environment import environment
from jitcount.suite.backend import main


def test_says_what_the_backend_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(jax.default_backend()) == 0
    assert capsys.readouterr() == (f"{environment()}\n", "")


def test_refuses_another_backend(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("abacus") == 1
    assert capsys.readouterr() == ("", f"no abacus backend: JAX chose {environment()}\n")


def test_refuses_a_backend_that_cannot_start() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "jitcount.suite.backend", "tpu"],
        env=os.environ | {"JAX_PLATFORMS": "abacus"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("no tpu backend: Unable to initialize backend 'abacus'")
    assert "Traceback" not in done.stderr
