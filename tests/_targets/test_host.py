import pytest

from tests.helpers import python

PROGRAM = """
import os
from jitcount._targets.host import prefer_cpu
prefer_cpu()
if {given!r}:
    os.environ.setdefault("JAX_PLATFORMS", {given!r})
before = dict(os.environ)
import jax
print(jax.config.jax_platforms, os.environ == before)
"""


@pytest.mark.parametrize(("given", "platforms"), [("", "cpu"), ("cpu,abacus", "cpu,abacus")])
def test_a_program_runs_on_the_cpu_unless_it_says_otherwise(given: str, platforms: str) -> None:
    done = python("-c", PROGRAM.format(given=given), env={"JAX_PLATFORMS": None})
    assert (done.stdout, done.stderr) == (f"{platforms} True\n", "")
