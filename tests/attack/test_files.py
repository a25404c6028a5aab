"""Damaged ledgers and budgets: each is read, or refused in one line, and none is changed."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jitcount._cli.main import main
from jitcount._ledger import files
from jitcount._ledger.budget import Budget, Sizes, read_budget
from jitcount._ledger.environment import environment
from jitcount._ledger.files import LedgerError
from jitcount._ledger.ledger import Ledger
from jitcount._observe.call_site import CallSite
from jitcount._suite.case import run_case
from jitcount._suite.cases import CASES
from jitcount._targets.result import LeftOut, OnTarget
from tests.attack.mutations import called, chance, damaged, numbers

LEDGERS = numbers(full=3500, few=60, chunks=14)
BUDGETS = numbers(full=1500, few=100, chunks=2)

_CHOSEN = {"first-example", "sum-nan", "sum-float16", "compare-specials", "exp"}


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a real run found, with what a target's compiler might have said."""
    entries = {case.id: run_case(case) for case in CASES if case.id in _CHOSEN}
    site = CallSite("train.py:42 in step", "/home/me/train.py", 42, "step")
    left_out = (LeftOut(kind="pure_callback", call_site=site),)
    on = OnTarget(target="tpu:v5e", fingerprint="c0ffee", compile_s=0.25, left_out=left_out)
    first = entries["first-example"]
    compiles = tuple(msgspec.structs.replace(c, on={on.target: on}) for c in first.compiles)
    entries["first-example"] = msgspec.structs.replace(
        first, compiles=compiles, targets=("tpu:v5e",)
    )
    path = tmp_path_factory.mktemp("ledgers") / "good.json"
    path.write_bytes(files.encode(Ledger(environment=environment(), cases=entries)))
    return path


def test_a_ledger_that_is_as_it_was_is_no_difference(ledger: Path) -> None:
    """The attack would see nothing if every file were refused."""
    assert main(["compare", str(ledger), str(ledger)]) == 0


@pytest.mark.parametrize("chunk", LEDGERS, ids=str)
def test_a_damaged_ledger_is_compared_or_refused_in_one_line(
    chunk: range, ledger: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, content = json.loads(ledger.read_bytes()), ledger.read_bytes()
    path = tmp_path / "damaged.json"
    codes = []
    for number in chunk:
        source = chance("ledger", number)
        bad = damaged(good, source)
        path.write_bytes(bad)
        pair = source.choice(([ledger, path], [path, ledger], [path, path], [ledger, path, ledger]))
        try:
            code = main(["compare", *map(str, pair)])
        except BaseException as error:  # noqa: BLE001 (whatever it is, it is named)
            pytest.fail(f"{called('ledger', number)}: {error!r}")
        printed, said = capsys.readouterr()
        codes.append(code)
        if code == 2:
            assert is_one_line_about(path, said), called("ledger", number)
        else:
            assert (code in {0, 1}, bool(printed), said) == (True, True, ""), called(
                "ledger", number
            )
        assert path.read_bytes() == bad, called("ledger", number)
    assert ledger.read_bytes() == content
    if len(chunk) > 1:
        assert {1, 2} <= set(codes)  # both ways were taken


def is_one_line_about(path: Path, said: str) -> bool:
    return said.startswith(str(path)) and said.endswith("\n") and len(said.splitlines()) == 1


TESTS = {
    "test_a.py::test_step": {"step": 2, "add": 1},
    "test_a.py::test_loss[3]": {"loss": 1},
    "test_b.py::TestB::test_grad": {"<lambda>": 7},
}


@pytest.mark.parametrize("chunk", BUDGETS, ids=str)
def test_a_damaged_budget_is_read_or_refused_in_one_line(chunk: range, tmp_path: Path) -> None:
    sizes = Sizes(platform="cpu", tests=TESTS)
    goods = [
        msgspec.to_builtins(Budget(jax="0.10.2", tests=TESTS)),
        msgspec.to_builtins(Budget(jax="0.10.2", tests=TESTS, schema=2, operations=sizes)),
    ]
    path = tmp_path / "budget.json"
    were_read = set()
    for number in chunk:
        bad = damaged(goods[number % 2], chance("budget", number))
        path.write_bytes(bad)
        try:
            were_read.add(is_read(path))
        except BaseException as error:  # noqa: BLE001 (whatever it is, it is named)
            pytest.fail(f"{called('budget', number)}: {error!r}")
        assert path.read_bytes() == bad, called("budget", number)
    if len(chunk) > 1:
        assert were_read == {True, False}  # both ways were taken


def is_read(path: Path) -> bool:
    """Read a budget as the plugin does, and hold tests to it."""
    try:
        budget = read_budget(path)
    except LedgerError as error:
        assert is_one_line_about(path, f"{error}\n"), error  # noqa: PT017 (it need not be raised)
        return False
    for test in (*TESTS, *budget.tests):
        found: Any = {"step": 3, "new": 1}
        assert all(count > 0 for count in budget.surplus(test, found).values())
        assert all(count > 0 for count in budget.unused(test, found).values())
        if budget.sizes is not None:
            changed = budget.sizes.changed(test, found).values()
            assert all(before != now for before, now in changed)
    return True
