"""Which cases are expected to be wrong where they run."""

import jax
import pytest

from jitcount._suite import running
from jitcount._suite.running import known_here


@pytest.mark.parametrize(
    ("release", "devices", "references"),
    [
        ("0.11.2", 4, ["openxla #49143", "openxla #49005"]),
        ("0.10.1", 2, ["openxla #49143"]),
        ("0.11.2", 1, []),
        ("0.12.0.1", 4, []),
    ],
)
@pytest.mark.parametrize("target", ["tpu:v4", "cuda:h100"])
def test_a_fault_of_sharded_programs_needs_devices(
    target: str,
    release: str,
    devices: int,
    references: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(running, "jaxlib_release", lambda: release)
    monkeypatch.setattr(jax, "device_count", lambda: devices)
    sharded = [each for each in known_here(target) if each.fewest_devices > 1]
    assert [each.reference for each in sharded] == references


def test_the_flag_that_cures_a_target_ends_it_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "jaxlib_release", lambda: "0.10.1")
    monkeypatch.setattr(jax, "device_count", lambda: 4)
    flag = "--xla_disable_hlo_passes=while-loop-all-reduce-code-motion"
    monkeypatch.setenv("XLA_FLAGS", flag)
    assert known_here("tpu:v4") == []
