"""The table of the suite, with a target's column."""

import numpy as np
from msgspec.structs import replace

from jitcount._ledger.environment import environment
from jitcount._ledger.files import decode, encode
from jitcount._ledger.findings import findings
from jitcount._ledger.ledger import CaseEntry, Ledger, Result
from jitcount._numerics.arrays import encode as array
from jitcount._numerics.expected import REDUCTION, within
from jitcount._numerics.rounding import Rounded
from jitcount._show.suite_table import suite_table
from jitcount._show.terminal import render
from jitcount._targets.result import OnTarget
from tests.helpers import STEP_COMPILED

ON = OnTarget(target="tpu:v5e", fingerprint="c0ffee", compile_s=0.25)
SUM = replace(STEP_COMPILED, function="sum", on={ON.target: ON})
SHOWN = """\
case            compile time   tpu:v5e   numerics   bound used   compiles
─────────────────────────────────────────────────────────────────────────
twice   WRONG         200 ms    250 ms              exact        sum 2

  twice: compiled sum 2, not sum 1
0 cases held, 1 did not, 0 unsupported, in 1.5 s"""


def test_a_program_that_came_twice_took_its_compiler_once_also_when_read_from_a_file() -> None:
    case = CaseEntry(compiles=(SUM, SUM), targets=(ON.target,))
    ledger = Ledger(environment=environment(), cases={"twice": case})
    read = decode(encode(ledger), Ledger)
    wrong = {"twice": ["compiled sum 2, not sum 1"]}
    for one in ledger, read:
        assert render(suite_table(one, wrong, 1.5), 120) == SHOWN


def test_what_is_possible_but_not_expected_is_told_from_what_is_wrong() -> None:
    expected = within(REDUCTION, Rounded.exactly(np.full(1000, 0.1, np.float32)).sum())
    values = {"good": 100, "odd": 100.005, "bad": 101}
    cases = {
        name: CaseEntry(results=(Result(array(np.array(value, np.float32)), expected),))
        for name, value in values.items()
    }
    wrong = {name: lines for name, entry in cases.items() if (lines := findings(entry))}
    table = suite_table(Ledger(environment=environment(), cases=cases), wrong, 1.5)
    rows = [line.split() for line in render(table, 120).splitlines()[2:5]]
    assert [(row[0], row[1]) for row in rows] == [
        ("good", "holds"),
        ("odd", "SUSPICIOUS"),
        ("bad", "WRONG"),
    ]


def test_why_cases_cannot_run_is_said_once_for_each_reason() -> None:
    why = ("one device", "one device", "no float8", "")
    cases = {f"case-{n}": CaseEntry(unsupported=reason) for n, reason in enumerate(why)}
    table = suite_table(Ledger(environment=environment(), cases=cases), {}, 1.5)
    assert render(table, 120).splitlines()[-3:] == [
        "  unsupported, one device: case-0, case-1",
        "  unsupported, no float8: case-2",
        "1 case held, 0 did not, 3 unsupported, in 1.5 s",
    ]
