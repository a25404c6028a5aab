"""The table of the suite, with a target's column."""

from msgspec.structs import replace

from jitcount.ledger.environment import environment
from jitcount.ledger.files import decode, encode
from jitcount.ledger.ledger import CaseEntry, Ledger
from jitcount.show.suite_table import suite_table
from jitcount.show.terminal import render
from jitcount.targets.result import OnTarget
from tests.helpers import STEP_COMPILED

ON = OnTarget(target="tpu:v5e", fingerprint="c0ffee", compile_s=0.25)
SUM = replace(STEP_COMPILED, function="sum", on={ON.target: ON})
SHOWN = """\
case    class   bound used   compiles   compile time   tpu:v5e
──────────────────────────────────────────────────────────────────────
twice           exact        sum 2            200 ms    250 ms   WRONG

  twice: compiled sum 2, not sum 1
0 cases held, 1 did not, 0 unsupported, in 1.5 s"""


def test_a_program_that_came_twice_took_its_compiler_once_also_when_read_from_a_file() -> None:
    case = CaseEntry(compiles=(SUM, SUM), targets=(ON.target,))
    ledger = Ledger(environment=environment(), cases={"twice": case})
    read = decode(encode(ledger), Ledger)
    wrong = {"twice": ["compiled sum 2, not sum 1"]}
    for one in ledger, read:
        assert render(suite_table(one, wrong, 1.5), 120) == SHOWN
