"""What a call returned in two runs is compared to the bit, then within rounding."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
import pytest

from jitcount._try_calls.results import compare

if TYPE_CHECKING:
    from pathlib import Path

ONE = np.linspace(0, 1, 100, dtype=np.float32)


def written(folder: Path, *results: dict[str, Any]) -> list[Any]:
    """What a run writes down of a call's results; a result that is no array is not kept."""
    folder.mkdir()
    leaves: list[Any] = []
    with (folder / "values.bin").open("wb") as file:
        for number, result in enumerate(results, 1):
            for path, array in result.items():
                place = file.tell()
                file.write(array.tobytes())
                digest = hashlib.blake2b(array.tobytes()).hexdigest()
                leaves.append([number, path, str(array.dtype), [*array.shape], digest, place])
    return leaves


def compared(tmp_path: Path, before: list[Any], after: list[Any]) -> tuple[str, bool]:
    one, other = tmp_path / "one", tmp_path / "other"
    found = compare(written(one, *before), written(other, *after), one, other)
    return found.text, found.is_same


@pytest.mark.parametrize(
    ("other", "text", "is_same"),
    [
        (ONE.copy(), "same bits", True),
        (
            np.nextafter(ONE, np.float32(2)),
            "the results differ by up to 1.2e-07 of their size",
            True,
        ),
        (ONE * np.float32(1.01), "another result ['w']: up to 0.01 of their size", False),
        (np.where(ONE > 0.5, np.nan, ONE), "another result ['w']: some are not numbers", False),
        (
            ONE.astype(np.float16),
            "another type of result ['w']: float32[100] → float16[100]",
            False,
        ),
        (ONE[:9], "another type of result ['w']: float32[100] → float32[9]", False),
    ],
)
def test_a_result_of_floating_point(
    tmp_path: Path, other: np.ndarray, text: str, *, is_same: bool
) -> None:
    assert compared(tmp_path, [{"['w']": ONE}], [{"['w']": other}]) == (text, is_same)


def test_whole_numbers_must_be_the_same(tmp_path: Path) -> None:
    whole = np.arange(5)
    said = ("another result: up to 0.25 of their size", False)
    assert compared(tmp_path, [{"": whole}], [{"": whole + 1}]) == said


def test_a_bfloat16_may_differ_by_more(tmp_path: Path) -> None:
    one = np.asarray(ONE, jnp.bfloat16)
    other = np.asarray(ONE * 1.01, jnp.bfloat16)
    text, is_same = compared(tmp_path, [{"": one}], [{"": other}])
    assert text.startswith("the results differ by up to 0.0")
    assert is_same


def test_each_call_is_compared_and_those_that_only_one_run_made_are_not(tmp_path: Path) -> None:
    first, second = {"": ONE}, {"": ONE + 1}
    assert compared(tmp_path / "a", [first, second], [first, second]) == ("same bits", True)
    assert compared(tmp_path / "b", [first, second], [first]) == ("same bits", True)
    assert not compared(tmp_path / "c", [first, second], [first, first])[1]


def test_another_structure(tmp_path: Path) -> None:
    said = ("another structure of results", False)
    assert compared(tmp_path, [{"[0]": ONE, "[1]": ONE}], [{"[0]": ONE}]) == said


def test_results_without_arrays_and_those_that_were_too_large(tmp_path: Path) -> None:
    assert compare([], [], tmp_path, tmp_path).text == "it returns no arrays"
    one, other = ([1, "", "float32", [9], digest, None] for digest in "ab")
    found = compare([one], [other], tmp_path, tmp_path)
    assert (found.text, found.is_same) == ("other results, which are too large to compare", True)


@pytest.fixture(autouse=True)
def folders(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).mkdir()
