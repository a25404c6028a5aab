from collections.abc import Iterator
from pathlib import Path

import jax
import pytest


@pytest.fixture
def disk_cache(tmp_path: Path) -> Iterator[None]:
    """A persistent compilation cache of the test's own."""
    from jax.experimental.compilation_cache import compilation_cache  # noqa: PLC0415

    settings = {
        "jax_compilation_cache_dir": str(tmp_path),
        "jax_persistent_cache_min_entry_size_bytes": -1,
        "jax_persistent_cache_min_compile_time_secs": 0.0,
    }
    before = {name: jax.config.values[name] for name in settings}
    for name, value in settings.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()
    yield
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()
