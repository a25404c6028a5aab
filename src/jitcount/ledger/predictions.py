"""A real device's ledger beside the emulation of that device: was it foreseen?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount.ledger.compared import Prediction
from jitcount.numerics.judging import judge_pair

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jitcount.ledger.environment import Environment
    from jitcount.ledger.ledger import CaseEntry, Ledger

# What JAX calls the devices of a target; a GPU has its target's name in its own.
_TPU_KINDS = {
    "v4": ("TPU v4",),
    "v5e": ("TPU v5 lite", "TPU v5e"),
    "v5p": ("TPU v5", "TPU v5p"),
    "v6e": ("TPU v6 lite", "TPU v6e"),
    "7x": ("TPU7x", "TPU 7x", "TPU v7x"),
}


def predictions(ledgers: Mapping[str, Ledger]) -> list[Prediction]:
    """Each ledger of a real device, with each one that emulates it."""
    return [
        _prediction(name, ledger, other_name, other)
        for name, ledger in ledgers.items()
        for other_name, other in ledgers.items()
        if emulates(other.environment, ledger.environment)
    ]


def emulates(one: Environment, other: Environment) -> bool:
    """Whether what one ran as if on is what another ran on."""
    platform, _, chip = one.as_if.partition(":")
    if not one.as_if or other.as_if:
        return False
    if platform == "tpu":
        return other.platform == "tpu" and other.device_kind in _TPU_KINDS.get(chip, ())
    return other.platform in {"gpu", "cuda"} and chip.lower() in other.device_kind.lower().split()


def _prediction(name: str, ledger: Ledger, other_name: str, other: Ledger) -> Prediction:
    same, near, missed = 0, 0, []
    for case, entry in ledger.cases.items():
        foreseen = other.cases.get(case)
        if foreseen is None or entry.unsupported or foreseen.unsupported or entry.error:
            continue
        share = _share(foreseen, entry)
        if share is None:
            missed.append(case)
        else:
            same, near = (same + 1, near) if share == 0 else (same, near + 1)
    return Prediction(name, other_name, same, near, tuple(missed))


def _share(foreseen: CaseEntry, entry: CaseEntry) -> float | None:
    """How much of what both may be off together is used; None where it is more than all."""
    if len(foreseen.results) != len(entry.results):
        return None
    pairs = [
        judge_pair(one.value, two.value, one.expected)
        for one, two in zip(foreseen.results, entry.results, strict=True)
    ]
    return max((pair.share for pair in pairs), default=0.0) if all(p.holds for p in pairs) else None
