"""What the suite notices of a faulty backend, in short; ``nox -s faults`` runs all of it."""

import functools

import pytest

from jitcount._show.terminal import render
from jitcount._suite.cases import CASES
from tools.faults import FAULTS
from tools.faults import __main__ as command
from tools.faults.fault import Fault
from tools.faults.score import Score, faults_table, scores
from tools.faults.trying import Outcome, Tried, try_case

BY_NAME = {fault.id: fault for fault in FAULTS}

FIVE = (
    "sum-in-bfloat16",
    "sum-loses-the-end",
    "sum-tile-twice",
    "sum-lane-skipped",
    "sum-off-by-1e-4",
)
SUMS = (
    "sum-whole-1000",
    "sum-whole-10000",
    "sum-whole-100000",
    "sum-whole-1000000",
    "sum-positive-10000",
    "sum-positive-100000",
    "sum-positive-1000000",
)


@functools.cache
def tried(name: str) -> Tried:
    (case,) = (case for case in CASES if case.id == name)
    return try_case(case, [BY_NAME[fault] for fault in (*FIVE, "dot-race")])


@pytest.mark.thorough
@pytest.mark.parametrize("name", FIVE)
def test_long_sums_notice_a_faulty_kernel(name: str) -> None:
    (score,) = scores([BY_NAME[name]], [tried(case) for case in SUMS])
    noticed = [outcome.case for outcome in score.noticed]
    assert len(noticed) >= 6
    assert {"sum-whole-1000000", "sum-positive-1000000"} <= set(noticed)
    assert score.wrong == ""


@pytest.mark.thorough
def test_nothing_is_noticed_where_no_fault_is() -> None:
    assert [tried(case).false_alarm for case in SUMS] == [""] * len(SUMS)


def test_a_fault_is_tried_only_where_it_does_something() -> None:
    (short,) = (case for case in CASES if case.id == "sum-whole-100")
    found = try_case(short, [BY_NAME[name] for name in (*FIVE, "dot-race", "sum-shard-lost")])
    assert [outcome.fault for outcome in found.outcomes] == ["sum-in-bfloat16", "sum-off-by-1e-4"]


def test_a_race_is_noticed_when_it_strikes() -> None:
    # Its ten calls are twenty sums; the clock of this case is at 82 of a hundred.
    (case,) = (case for case in CASES if case.id == "first-example")
    (struck,) = try_case(case, [BY_NAME["sum-race"]]).outcomes
    assert (struck.changed, struck.is_beyond, struck.noticed) == (True, True, True)
    (other,) = (case for case in CASES if case.id == "second-example")
    (spared,) = try_case(other, [BY_NAME["sum-race"]]).outcomes
    assert (spared.changed, spared.noticed) == (False, False)


# --- What is made of the outcomes -----------------------------------------------------------------

FAULT = Fault("f", "about", "precision", ("add",), lambda original, *x: original(*x))


def outcome(case: str, *, changed: bool, beyond: bool, noticed: bool, error: str = "") -> Outcome:
    return Outcome("f", case, changed, beyond, noticed, share=0.25, error=error)


NOTICED = outcome("a", changed=True, beyond=True, noticed=True)
MISSED = outcome("b", changed=True, beyond=True, noticed=False)
WITHIN = outcome("c", changed=True, beyond=False, noticed=False)
SAME = outcome("d", changed=False, beyond=False, noticed=False)
FAILED = outcome("e", changed=False, beyond=False, noticed=False, error="TypeError: no")


@pytest.mark.parametrize(
    ("outcomes", "wrong"),
    [
        ([NOTICED], ""),
        ([NOTICED, WITHIN, SAME], ""),
        ([NOTICED] * 9 + [MISSED], ""),
        ([NOTICED] * 8 + [MISSED], "MISSED"),
        ([MISSED], "UNNOTICED"),
        ([WITHIN], "UNNOTICED"),
        ([SAME], "CHANGES NOTHING"),
        ([], "NO CASE"),
        ([NOTICED, FAILED], "FAILED"),
    ],
)
def test_nine_of_ten_must_notice(outcomes: list[Outcome], wrong: str) -> None:
    assert Score(FAULT, tuple(outcomes)).wrong == wrong


def test_the_table_says_who_noticed_and_who_did_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    ran = [
        Tried("a", (NOTICED,)),
        Tried("b", (MISSED,)),
        Tried("c", (WITHIN,)),
        Tried("e", (FAILED,)),
        Tried("g", unsupported="too few devices"),
        Tried("h", false_alarm="the value is 1, not 2"),
    ]
    table = render(faults_table(scores([FAULT], ran), ran, 12.0))
    first, _, second, *others = (line.rstrip() for line in table.splitlines())
    assert first == "fault   family      cases   changed   beyond bound   noticed"
    assert second == "f       precision       4         3              2         1   FAILED"
    assert others == [
        "",
        "  f raised: e: TypeError: no",
        "  f was missed: b",
        "  f stays within the bound: c (0.25 of it)",
        "  cases that do not hold without a fault, and were not tried: h: the value is 1, not 2",
        "  cases that cannot run here: g: too few devices",
        "1 of 1 faults noticed; of 2 results beyond their bound 1 (50.0%); in 12 s",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--fault", "no-such"], "no fault is called no-such"),
        (["no-case", "nor-this"], "no case is called no-case or nor-this"),
    ],
)
def test_what_is_not_there_is_refused(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1] == f"python -m tools.faults: error: {said}"


@pytest.mark.thorough
def test_the_command_runs_in_processes_and_ends_with_1_where_a_fault_goes_unnoticed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command.main(["--fault", "nan-*", "--workers", "1", "compare-specials"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line.split() for line in printed[2:4]] == [
        ["nan-equals-nan", "logic", "1", "1", "1", "1", "noticed"],
        ["nan-is-larger", "logic", "1", "1", "1", "1", "noticed"],
    ]
    assert command.main(["--fault", "sum-lane-skipped", "--workers", "1", "sum-100"]) == 1
    assert capsys.readouterr().out.splitlines()[2].split()[-2:] == ["NO", "CASE"]
