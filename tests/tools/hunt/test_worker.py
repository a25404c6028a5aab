"""A process for programs that may crash or hang."""

import numpy as np
import pytest

from tests.tools.hunt import planted
from tools.hunt.worker import Job, Worker, agree, last_words

JOB = Job("f", ())


def test_a_result_comes_back() -> None:
    with Worker(20, run=planted.answer) as worker:
        outcome = worker.run(JOB)
    assert outcome.results is not None
    assert [int(one) for one in outcome.results] == [1]
    assert (outcome.failure, outcome.died) == ("", False)


def test_an_error_is_told_and_the_process_goes_on() -> None:
    with Worker(20, run=planted.refuse) as worker:
        assert worker.run(JOB).failure == "NotImplementedError: no f"
        assert worker.run(Job("g", ())).failure == "NotImplementedError: no g"


def test_a_crash_is_told_with_the_last_words() -> None:
    with Worker(20, run=planted.crash) as worker:
        outcome = worker.run(JOB)
        assert outcome.died
        assert outcome.failure == (
            "the process ended by SIGABRT: Check failed: rank <= 6 (8 vs. 6)"
        )
        assert worker.run(JOB).died  # in a new process


def test_a_hang_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.hunt.worker._SECONDS_TO_START", 0.1)
    with Worker(0.2, run=planted.hang) as worker:
        outcome = worker.run(JOB)
    assert (outcome.failure, outcome.died) == ("no result after 0.2 s", True)


def test_without_last_words_nothing_is_said() -> None:
    assert last_words("I0000 00:00:17 12 a.cc:2] compiled\n") == ""


def test_results_agree_if_each_element_does() -> None:
    one = [np.asarray([0.0, -0.0, 3.0])]
    assert agree(one, [np.asarray([0, 0, 3])])
    assert not agree(one, [np.asarray([0, 0, 4])])
    assert not agree(one, [np.asarray([[0, 0, 3]])])
    assert not agree([np.asarray([np.nan])], [np.asarray([0])])
    assert not agree(one, [])
