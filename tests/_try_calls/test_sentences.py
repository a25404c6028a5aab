"""What came of a call under a jit, in a sentence."""

from __future__ import annotations

import pytest

from jitcount._show.parts import Heading, Note, Tone
from jitcount._try_calls.jitted_call import JittedCall
from jitcount._try_calls.results import Compared
from jitcount._try_calls.sentences import sentence, trial_parts
from jitcount._try_calls.trying import Figures, Trial

CALL = JittedCall("/home/me/train.py", 35, "model.init", site="train.py:35 in main")
WHERE = "jax.jit(model.init)(...) at train.py:35 in main"
SAME = Compared("same bits", is_same=True)
ROUNDED = Compared("the results differ by up to 1.2e-07 of their size", is_same=True)
OTHER = Compared("another result ['w']: up to 0.3 of their size", is_same=False)


def tried(
    compiles: tuple[int, int],
    whole: tuple[float, float],
    call: tuple[float, float],
    results: Compared = SAME,
) -> Trial:
    before, after = (Figures(compiles[i], whole[i], call[i]) for i in (0, 1))
    return Trial(CALL, before, after, results)


@pytest.mark.parametrize(
    ("trial", "said"),
    [
        (
            tried((118, 15), (8.4, 3.1), (5.9, 0.6)),
            f"tried: {WHERE}: 118 → 15 compiles, 8.4 → 3.1 s (the call 5.9 s → 600 ms), same bits",
        ),
        (
            tried((118, 1), (8.4, 3.1), (5.9, 0.6), ROUNDED),
            (
                f"tried: {WHERE}: 118 → 1 compile, 8.4 → 3.1 s (the call 5.9 s → 600 ms), "
                f"{ROUNDED.text}"
            ),
        ),
        (
            tried((699, 15), (4.1, 4.3), (3.0, 3.2)),
            (
                f"tried: {WHERE}: 699 → 15 compiles and no faster, 4.1 → 4.3 s "
                "(the call 3 → 3.2 s): keep the call as it is"
            ),
        ),
        (
            tried((699, 15), (4.1, 6.3), (3.0, 5.2)),
            (
                f"tried: {WHERE}: 699 → 15 compiles and slower, 4.1 → 6.3 s (the call 3 → 5.2 s): "
                "keep the call as it is"
            ),
        ),
        (
            tried((118, 15), (600, 598), (3.0, 0.5)),
            (
                f"tried: {WHERE}: 118 → 15 compiles, the call 3 s → 500 ms "
                "(the whole run 600 → 598 s, no more than chance), same bits"
            ),
        ),
        (
            tried((118, 15), (8.4, 3.1), (5.9, 0.6), OTHER),
            (
                f"tried: {WHERE}: 118 → 15 compiles, but another result ['w']: "
                "up to 0.3 of their size: keep the call as it is"
            ),
        ),
        (
            Trial(CALL, failed="cannot be jitted: TracerBoolConversionError at model.py:31"),
            (
                f"tried: {WHERE}: cannot be jitted: TracerBoolConversionError at model.py:31: "
                "keep the call as it is"
            ),
        ),
        (
            Trial(CALL, not_tried="run again, the program took longer than 60 s"),
            f"not tried: {WHERE}: run again, the program took longer than 60 s",
        ),
    ],
)
def test_a_trial_in_words(trial: Trial, said: str) -> None:
    assert sentence(trial) == said


@pytest.mark.parametrize(
    ("whole", "call", "saves", "whole_saves"),
    [
        ((8.4, 3.1), (5.9, 0.6), 1, 1),
        ((3.1, 8.4), (0.6, 5.9), -1, -1),
        ((5.1, 8.9), (3.2, 2.9), -1, -1),  # others compile what the call had compiled for them
        ((8.4, 3.1), (0.6, 0.7), 0, 0),  # the call does not account for it
        ((22.1, 17.6), (0.3, 0.2), 0, 0),
        ((8.4, 8.0), (5.9, 5.7), 0, 0),
        ((0.5, 0.35), (0.4, 0.25), 0, 0),
        ((600, 603), (3.0, 0.5), 1, 0),
        ((600, 598), (0.5, 3.0), -1, 0),
    ],
)
def test_what_may_be_chance_is_not_called_faster(
    whole: tuple[float, float], call: tuple[float, float], saves: int, whole_saves: int
) -> None:
    trial = tried((9, 1), whole, call)
    assert (trial.saves, trial.whole_saves) == (saves, whole_saves)


def test_a_line_for_each_and_one_for_those_that_were_left_out() -> None:
    faster, slower = tried((9, 1), (8, 3), (5, 1)), tried((9, 1), (3, 8), (1, 5))
    assert trial_parts([faster, slower], not_tried=1) == [
        Heading("Calls under a jit"),
        Note(sentence(faster), depth=1),
        Note(sentence(slower), depth=1, tone=Tone.FAINT),
        Note("1 more call not tried", depth=1),
    ]
    assert trial_parts([], not_tried=0) == [Heading("Calls under a jit"), Note("none is advised")]
