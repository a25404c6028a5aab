"""That each fault is one: it changes what its primitive returns, and nothing else."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

from tests.tools.faults.examples import EXAMPLES, LIKE
from tools.faults import FAULTS
from tools.faults.fault import Fault
from tools.faults.races import CLOCK, ONCE_IN
from tools.faulty import primitives_replaced


def calls_of(fault: Fault) -> list[Callable[[], Any]]:
    names = dict.fromkeys(LIKE.get(name, name) for name in fault.primitives)
    return [call for name in names for call in EXAMPLES[name]]


def bits(call: Callable[[], Any]) -> list[tuple[Any, ...]]:
    arrays = [np.asarray(leaf) for leaf in jax.tree.leaves(call())]
    return [(array.dtype, array.shape, array.tobytes()) for array in arrays]


@functools.cache
def clean_bits(call: Callable[[], Any]) -> list[tuple[Any, ...]]:
    return bits(call)


def test_there_are_faults_of_every_family() -> None:
    assert len({fault.id for fault in FAULTS}) == len(FAULTS) >= 40
    families = [fault.family for fault in FAULTS]
    assert list(dict.fromkeys(families)) == [
        "precision", "structure", "length", "order", "logic", "sharding", "time",
    ]  # fmt: skip
    assert all(fault.about and fault.primitives for fault in FAULTS)


@pytest.mark.thorough
@pytest.mark.two_devices
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.id)
def test_a_fault_changes_what_its_primitive_gives(fault: Fault) -> None:
    calls = calls_of(fault)
    before = [clean_bits(call) for call in calls]
    with primitives_replaced(dict.fromkeys(fault.primitives, fault.wrongly)):
        for call, clean in zip(calls, before, strict=True):
            CLOCK.start(ONCE_IN - 1)
            found = bits(call)
            assert [kind[:2] for kind in found] == [kind[:2] for kind in clean]
            if found != clean:
                return
    pytest.fail(f"{fault.id} changes nothing")


def test_a_race_strikes_once_in_a_hundred() -> None:
    CLOCK.start(0)
    assert [number for number in range(1, 301) if CLOCK.strikes()] == [100, 200, 300]
