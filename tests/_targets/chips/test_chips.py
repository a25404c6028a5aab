"""What holds for every chip, also for a kind that nothing else in the project has heard of."""

from dataclasses import dataclass
from typing import ClassVar

import msgspec
import pytest

from jitcount._ledger.compare import _emulates
from jitcount._ledger.environment import Environment, environment
from jitcount._show.target_table import targets_table
from jitcount._show.terminal import render
from jitcount._targets.chips import CHIPS
from jitcount._targets.chips.chip import Chip, Machine, Plugin, Tool, sides
from jitcount._targets.chips.tpu import TPUS
from jitcount._targets.installed import PLUGINS, is_installed, require_installed
from jitcount._targets.names import Target, topology

each = pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: f"{chip.platform}:{chip.name}")


@each
def test_the_smallest_size_is_one(chip: Chip) -> None:
    size = chip.size_of(chip.smallest, "as written")
    assert chip.smallest == "x".join(map(str, size))
    machine = chip.machine(size, 1)
    assert chip.machine((), machine.devices) == machine


@each
def test_without_a_size_a_machine_is_large_enough(chip: Chip) -> None:
    for devices in range(1, 300):
        machine = chip.machine((), devices)
        assert machine.devices >= devices
        assert machine.topology["platform"] == chip.platform


@each
def test_a_platform_has_one_plugin(chip: Chip) -> None:
    assert PLUGINS[chip.platform] is chip.plugin
    assert chip.plugin.modules
    assert chip.plugin.command.startswith("pip install ")


def test_a_real_tpu_is_known_by_what_jax_calls_it() -> None:
    kinds = [kind for tpu in TPUS for kind in tpu.device_kinds]
    assert all(tpu.device_kinds for tpu in TPUS)
    assert len(kinds) == len(set(kinds))
    for tpu in TPUS:
        for kind in tpu.device_kinds:
            assert _emulates(ran(as_if=f"tpu:{tpu.name}"), ran(platform="tpu", device_kind=kind))


def ran(**changed: str) -> Environment:
    return msgspec.structs.replace(environment(), **changed)


@dataclass(frozen=True, slots=True)
class Abacus:
    """All that a new kind of chip is."""

    name: str
    platform: ClassVar[str] = "beads"
    plugin: ClassVar[Plugin] = Plugin(
        compiler="XLA:Beads",
        modules=("json",),
        command="pip install beads",
        tools=(Tool("a_tool_that_is_not_there", package="nowhere", folders=("/nowhere",)),),
    )
    description: ClassVar[str] = "An abacus"
    smallest: ClassVar[str] = "1"

    def size_of(self, text: str, target: str) -> tuple[int, ...]:
        raise ValueError(f"target {target!r} has no size {text!r}")

    def machine(self, size: tuple[int, ...], devices: int) -> Machine:
        return Machine(10, {"platform": self.platform, "topology_name": f"{size}{devices}"})


ABACUS = Target("beads:ten", Abacus("ten"))


def test_a_new_kind_of_chip_is_one_class() -> None:
    assert ABACUS.platform == "beads"
    assert topology(ABACUS, 10) == {"platform": "beads", "topology_name": "()10"}
    with pytest.raises(ValueError, match=r"and beads:ten has 10$"):
        topology(ABACUS, 11)
    assert "beads:ten   An abacus   1          no" in render(targets_table([(ABACUS, False)]), 80)


def test_a_compiler_without_its_tool_is_not_installed() -> None:
    assert not is_installed(ABACUS)
    with pytest.raises(ImportError) as caught:
        require_installed(ABACUS)
    assert str(caught.value) == (
        "beads:ten needs XLA:Beads, which is not installed: pip install beads"
    )


def test_numbers_of_a_size() -> None:
    assert sides("2x4x1") == (2, 4, 1)
    assert [sides(text) for text in ("", "x", "2x", "-2", "0", "2.5", "²")] == 7 * [()]
