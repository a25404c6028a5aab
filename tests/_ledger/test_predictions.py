"""A real device's ledger beside its emulation."""

import msgspec
import numpy as np
import pytest

from jitcount._ledger.compare import compare_ledgers, predictions
from jitcount._ledger.ledger import Ledger
from jitcount._show.comparison_table import comparison_tables
from jitcount._show.terminal import render
from tests._ledger.test_compare import with_value


def where(ledger: Ledger, **fields: object) -> Ledger:
    environment = msgspec.structs.replace(ledger.environment, **fields)
    return msgspec.structs.replace(ledger, environment=environment)


@pytest.mark.parametrize(
    ("as_if", "platform", "kind", "times"),
    [
        ("tpu:v5e", "tpu", "TPU v5 lite", 1),
        ("tpu:v5e", "tpu", "TPU v4", 0),
        ("tpu:v5e", "cpu", "cpu", 0),
        ("cuda:h100", "gpu", "NVIDIA H100 80GB HBM3", 1),
        ("cuda:a100", "gpu", "NVIDIA H100 80GB HBM3", 0),
        ("", "tpu", "TPU v5 lite", 0),
    ],
)
def test_an_emulation_is_of_one_kind_of_device(
    as_if: str, platform: str, kind: str, times: int, ledger: Ledger
) -> None:
    device = where(ledger, platform=platform, device_kind=kind)
    found = predictions({"there": device, "here": where(ledger, as_if=as_if)})
    assert [(each.device, each.emulation) for each in found] == [("there", "here")] * times


def test_what_was_foreseen_is_counted_and_what_was_not_is_named(ledger: Ledger) -> None:
    emulation = where(ledger, as_if="tpu:v5e")
    likely, _ = ledger.cases["sum-100"].results[0].expected.bounds()
    device = where(ledger, platform="tpu", device_kind="TPU v5 lite")
    device = with_value(device, "sum-100", lambda v: np.nextafter(v, np.float32(9e9)))
    device = with_value(device, "sum-10000", lambda v: v + 1e4)
    ledgers = {"tpu.json": device, "as-if-tpu.json": emulation}
    (found,) = predictions(ledgers)
    cases = len(ledger.cases)
    assert likely > 0
    assert str(found) == (
        f"tpu.json beside its emulation as-if-tpu.json: of {cases} cases {cases - 2} to the bit, "
        "1 within bounds, 1 beyond: sum-10000"
    )
    assert str(found) in " ".join(render(comparison_tables(compare_ledgers(ledgers))).split())


def test_an_emulation_is_never_taken_for_a_device(ledger: Ledger) -> None:
    emulation = where(ledger, as_if="tpu:v5e")
    assert predictions({"a": emulation, "b": emulation, "c": ledger}) == []
    assert emulation.environment.kind != ledger.environment.kind
    assert str(emulation.environment).startswith("cpu as if tpu:v5e (")
