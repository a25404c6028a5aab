import os
from typing import Any

import jax
import pytest

from jitcount.targets.host import prefer_cpu


@pytest.mark.parametrize(("before", "after"), [(None, "cpu"), ("", "cpu"), ("cuda", "cuda")])
def test_a_program_runs_on_the_cpu_unless_the_environment_says_otherwise(
    before: str | None, after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if before is None:
        monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    else:
        monkeypatch.setenv("JAX_PLATFORMS", before)
    updates: list[tuple[Any, ...]] = []
    monkeypatch.setattr(jax.config, "update", lambda *update: updates.append(update))
    prefer_cpu()
    assert os.environ["JAX_PLATFORMS"] == after
    assert updates == ([] if before == "cuda" else [("jax_platforms", "cpu")])
