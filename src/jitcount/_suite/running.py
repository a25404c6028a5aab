"""Runs the cases on whatever backend JAX has, and returns their ledger."""

from __future__ import annotations

import fnmatch
import time
from typing import TYPE_CHECKING

import jax
import msgspec

from jitcount._emulate.as_if import as_if_or_null
from jitcount._ledger.environment import environment
from jitcount._ledger.findings import findings
from jitcount._ledger.ledger import CaseEntry, Ledger
from jitcount._miscompiles.known import jaxlib_release, known_on
from jitcount._suite.case import Case, run_case
from jitcount._suite.cases import CASES
from jitcount._targets.names import parse, seed_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from jitcount._emulate.result import EmulatedProgram
    from jitcount._miscompiles.known import Miscompile


def chosen(patterns: Sequence[str], cases: Iterable[Case] = CASES) -> list[Case]:
    """Return the cases whose ids match one of the patterns; without patterns, all.

    >>> [case.id for case in chosen(["sum-1*0", "matmul"])][:3]
    ['sum-10', 'sum-100', 'sum-1000']
    """
    return [
        case
        for case in cases
        if not patterns or any(fnmatch.fnmatchcase(case.id, pattern) for pattern in patterns)
    ]


def run_suite(
    cases: Iterable[Case],
    *,
    timed: bool = False,
    targets: Sequence[str] = (),
    as_if: str = "",
    after: Callable[[Case, CaseEntry], None],
) -> Ledger:
    """Run cases one by one, and return their ledger; `after` is called with each result.

    With `as_if` they compute as that target would.
    """
    found = {}
    started_at = time.time()
    with as_if_or_null(as_if) as emulation:
        known, perhaps = known_here(as_if), _perhaps_wrong_here(as_if)
        for case in cases:
            before = len(emulation.programs) if emulation else 0
            entry = run_case(case, timed=timed, targets=targets)
            if emulation:
                entry = _with_reasons(entry, emulation.programs[before:])
            reference = "" if case.is_own else _reference(case, known)
            if not reference and not case.is_own and findings(entry):
                reference = _reference(case, perhaps)
            if reference and not entry.unsupported:
                entry = msgspec.structs.replace(entry, known_wrong=reference)
            found[case.id] = entry
            after(case, entry)
        return Ledger(
            environment=environment(),
            started_at=started_at,
            ended_at=time.time(),
            cases=found,
        )


def known_here(as_if: str = "") -> list[Miscompile]:
    """The known miscompiles of the compiler that is used: this machine's, or a target's."""
    if as_if and seed_of(as_if) is not None:  # a program that is moved is another one
        return []
    platform = parse(as_if).platform if as_if else jax.devices()[0].platform
    known = known_on(platform, jaxlib_release())
    enough = [each for each in known if each.fewest_devices <= jax.device_count()]
    return _with_or_without_jit(enough)


def _perhaps_wrong_here(as_if: str) -> list[Miscompile]:
    """The miscompiles of XLA:CPU that may make a case wrong on another platform as well.

    Compilers share passes, and what is emulated is compiled by XLA:CPU in the end. But such a case
    may be right there, too.
    """
    if not as_if and jax.devices()[0].platform == "cpu":
        return []
    known = _with_or_without_jit(known_on("cpu", jaxlib_release()))
    return [each for each in known if as_if or each.in_shared_pass]


def _with_or_without_jit(known: list[Miscompile]) -> list[Miscompile]:
    """The miscompiles that matter: without jit nothing is fused."""
    no_jit = jax.config.values["jax_disable_jit"]
    return [each for each in known if each.without_jit] if no_jit else known


def _reference(case: Case, known: Iterable[Miscompile]) -> str:
    return next((each.reference for each in known if each.makes_wrong(case.id)), "")


def _with_reasons(entry: CaseEntry, programs: Sequence[EmulatedProgram]) -> CaseEntry:
    left = tuple(str(program) for program in programs if not program.faithful)
    return msgspec.structs.replace(entry, as_on_cpu=left)
