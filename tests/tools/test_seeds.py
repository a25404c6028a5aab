"""Other data of the same kind, drawn anew for each seed; each false alarm is told and counted."""

import numpy as np
import pytest

from jitcount._suite import data
from tests.helpers import python
from tools import seeds


def test_another_seed_makes_other_numbers_of_the_same_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    before = data.spread(100), data.whole(100), data.weights(1000)
    monkeypatch.setenv(data.SEED, "3")
    after = data.spread(100), data.whole(100), data.weights(1000)
    for one, other in zip(before, after, strict=True):
        assert not np.array_equal(one, other)
    assert np.all(np.abs(after[0]) <= 0.5)
    assert np.all((after[2] >= 1) & (after[2] <= 255))


@pytest.mark.thorough
def test_each_seed_runs_the_named_cases() -> None:
    done = python("-m", "tools.seeds", "2", "sum-10", "prod-whole")
    assert (done.returncode, done.stdout) == (0, "0 false alarms in 2 runs\n"), done.stderr


def test_a_false_alarm_is_told_and_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(data.SEED, "0")
    monkeypatch.setattr(seeds, "_with_fresh_data", lambda names: [(names[0], ["it is 7"])])
    assert seeds.main(["2", "sum-10", "--from", "5", "--alone"]) == 2
    assert capsys.readouterr().out == "seed 5, sum-10: it is 7\nseed 6, sum-10: it is 7\n"
