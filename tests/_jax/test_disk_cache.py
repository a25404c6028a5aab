"""No program reads or writes the persistent cache in a process that keeps it off."""

import pytest

from tests.helpers import python

PROGRAM = """
import sys
import jax, numpy as np
from jitcount._jax import disk_cache
if "off" in sys.argv:
    disk_cache.keep_off()
jax.config.update("jax_compilation_cache_dir", "cache")
jax.config.update("jax_enable_compilation_cache", True)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.jit(lambda x: x + 1)(np.ones(3, np.float32))
"""


@pytest.mark.parametrize(("words", "is_written"), [(["off"], False), ([], True)])
def test_a_program_that_turns_it_on_itself(
    tmp_path_factory: pytest.TempPathFactory, words: list[str], *, is_written: bool
) -> None:
    directory = tmp_path_factory.mktemp("program")
    done = python("-c", PROGRAM, *words, cwd=directory)
    assert (done.returncode, done.stderr) == (0, "")
    assert any(directory.glob("cache/*")) == is_written
