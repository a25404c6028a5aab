from pathlib import Path

import jax
import pytest

from jitcount._ledger.budget import Budget, Sizes, read_budget, update_budget, write_budget
from jitcount._ledger.files import LedgerError


def test_what_is_written_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "budget.json"
    write_budget(path, {"test_b": {"step": 2, "add": 1}, "test_a": {"step": 1}, "test_c": {}})
    read = read_budget(path)
    assert read.jax == jax.__version__
    assert list(read.tests.items()) == [
        ("test_a", {"step": 1}),
        ("test_b", {"add": 1, "step": 2}),
    ]


def test_more_is_surplus_and_fewer_is_unused() -> None:
    budget = Budget(jax="0.10.2", tests={"test": {"step": 2, "add": 1}})
    assert budget.surplus("test", {"step": 3, "new": 1}) == {"step": 1, "new": 1}
    assert budget.unused("test", {"step": 3}) == {"add": 1}
    assert budget.surplus("unknown", {"step": 1}) == {"step": 1}
    assert budget.unused("unknown", {}) == {}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON, or is cut short: "),
        ("[1]", "is not a jitcount budget"),
        ('{"kind": "other"}', "is not a jitcount budget"),
        (
            '{"kind": "jitcount budget", "schema": 99}',
            "has schema 99; this jitcount reads 1 to 2; a newer jitcount wrote it",
        ),
        (
            '{"kind": "jitcount budget", "schema": 1, "jax": "0.10.2"}',
            "is a jitcount budget that has been damaged: Object missing required field `tests`",
        ),
        (
            '{"kind": "jitcount budget", "schema": 1, "jax": "1", "tests": {"a": {"f": -1}}}',
            "is a jitcount budget that has been damaged: Expected `int` >= 0",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_one_line(
    tmp_path: Path, content: str, message: str
) -> None:
    path = tmp_path / "budget.json"
    path.write_text(content)
    with pytest.raises(LedgerError) as raised:
        read_budget(path)
    assert str(raised.value).startswith(f"{path}: {message}")
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "budget.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(LedgerError, match="is not JSON"):
        read_budget(path)


def test_a_run_that_compiles_nothing_leaves_the_operations_and_says_nothing_of_them(
    tmp_path: Path,
) -> None:
    path = tmp_path / "budget.json"
    sizes = Sizes(platform="cpu", tests={"test_step": {"step": 3}})
    write_budget(path, {"test_step": {"step": 1}}, sizes=sizes)
    nothing = Sizes(platform="", tests={"test_other": {}})
    change = update_budget(path, {"test_other": {}}, lambda _: False, sizes=nothing)
    assert (str(change), change.note) == ("+0 −0 ~0", "")
    assert read_budget(path).sizes == sizes
