"""Who asks for a count alone pays for no emulation, no profile, no targets."""

import re
from pathlib import Path

import pytest

from tests.helpers import python

# What a Compile has as fields: plain records, which import nothing else.
RECORDS = {"jitcount._profile.result", "jitcount._targets.result"}
RARE = r"jitcount\.(_what_if|(_emulate|_profile|_targets|_try_calls)\..+)"

PROGRAM = """
import jax, numpy as np
jax.jit(lambda x: x + 1)(np.ones(3, np.float32))
"""
RUN = """
import sys
from jitcount._cli.main import main
main(["run", *sys.argv[1:]])
print(*sys.modules)
"""


def rare_in(modules: str) -> set[str]:
    return {name for name in modules.split() if re.fullmatch(RARE, name)}


def test_a_run_without_options_imports_none_of_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    done = python("-c", RUN, "train.py", cwd=tmp_path)
    assert done.stderr.startswith("1 compile took ")
    assert rare_in(done.stdout) == RECORDS


@pytest.mark.parametrize(
    ("options", "used", "unused"),
    [
        (["--profile"], "jitcount._profile.profiler", "jitcount._emulate"),
        (["--ledger", "out.json"], "jitcount._ledger.ledger", "jitcount._profile.profiler"),
        (["--target", "cpu"], "jitcount._targets.session", "jitcount._emulate"),
    ],
)
def test_an_option_imports_what_it_needs(
    tmp_path: Path, options: list[str], used: str, unused: str
) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    modules = python("-c", RUN, *options, "train.py", cwd=tmp_path).stdout.split()
    assert used in modules
    assert unused not in modules


def test_a_recorder_in_a_program_imports_none_of_it() -> None:
    recorded = PROGRAM.replace("jax.jit(", "with jitcount.record() as log: jax.jit(")
    shown = "assert log.compiles[0].causes; print(*sys.modules)"
    done = python("-c", f"import jitcount, sys{recorded}{shown}")
    assert (done.returncode, done.stderr) == (0, "")
    assert rare_in(done.stdout) == RECORDS
