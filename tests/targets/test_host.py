import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(("before", "after"), [("", "cpu"), ("cpu,", "cpu,")])
def test_a_program_runs_on_the_cpu_unless_the_environment_says_otherwise(
    before: str, after: str
) -> None:
    code = (
        "import os, jax\n"
        "from jitcount.targets.host import prefer_cpu\n"
        "prefer_cpu()\n"
        "print(os.environ['JAX_PLATFORMS'], jax.config.jax_platforms)"
    )
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code],
        env=os.environ | {"JAX_PLATFORMS": before},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [after, after]
