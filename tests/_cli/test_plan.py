"""``jitcount plan``: the ragged axes in a ledger, sizes for them, and the line to paste."""

import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jitcount as package
from jitcount._buckets.ragged import ragged_axes
from jitcount._cli.main import main
from jitcount._registry import registry
from tests.expected import expect
from tests.helpers import python


@jax.jit
def step(batch: Any, y: Any, table: Any) -> Any:
    return jax.tree.map(jnp.cos, batch), y, table


def calls(*sizes: tuple[int, int]) -> package.CompileLog:
    """A log of calls with some lengths of a batch, and some of a table."""
    with registry.own_history(), package.record() as log:
        for n, m in sizes:
            batch = {"x": np.ones(n), "deep": [np.ones((2, n))]}
            step(batch, np.ones(n), np.ones(m))
    return log


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    calls((20, 4), (31, 4), (57, 4), (934, 4)).save(tmp_path / "run.json")
    return tmp_path / "run.json"


def without_times(text: str) -> str:
    text = re.sub(r"\S+ at .*?: ", "FUNCTION: ", text)
    return re.sub(r"[\d.]+ (ms|s|µs)\b", "TIME", text)


def test_axes_that_change_together_have_one_plan(
    ledger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", str(ledger)]) == 0
    expect(
        without_times(capsys.readouterr().out),
        "FUNCTION: axis 1 of batch['deep'][0], axis 0 of batch['x'], axis 0 of y had 4 "
        "lengths; its recompiles took TIME\n"
        "\n"
        "3 sizes for 4 lengths from 20 to 934: 1 % of what is computed is padding\n"
        "\n"
        "size   lengths   of them   padding\n"
        "──────────────────────────────────\n"
        "  31   20 … 31         2      18 %\n"
        "  57        57         1       0 %\n"
        " 934       934         1       0 %\n"
        "\n"
        "                compiles   padding\n"
        "──────────────────────────────────\n"
        "this plan              3       1 %\n"
        "powers of two          3     9.5 %\n"
        "one size               1      72 %\n"
        "no padding             4       0 %\n"
        "\n"
        "Paste where the function is defined; n is how much is no padding\n"
        "step = jitcount.bucketed(step, [31, 57, 934], axes={\"batch['deep'][0]\": 1, "
        '"batch[\'x\']": 0, "y": 0}, length="n")\n'
        "each length counts once; jitcount.plan_buckets takes how often each comes\n",
    )


def test_what_is_printed_can_be_pasted(ledger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["plan", "--sizes", "2", "--multiple-of", "8", str(ledger)])
    (line,) = re.findall(r"^step = (.*)$", capsys.readouterr().out, re.MULTILINE)

    @jax.jit
    def masked(batch: Any, y: Any, table: Any, n: Any) -> Any:
        del n
        return jax.tree.map(jnp.cos, batch), y, table

    f = eval(line, {"step": masked, "jitcount": package})  # noqa: S307 (a user would, too)
    with package.record() as log:
        for n in 20, 31, 57, 934:
            batch = {"x": np.ones(n), "deep": [np.ones((2, n))]}
            assert f(batch, np.ones(n), np.ones(4))[1].shape == (n,)
    assert log.counts() == {"masked": 2}


def test_axes_that_change_alone_have_sizes_each() -> None:
    found = ragged_axes(calls((20, 4), (20, 9), (31, 9)).compiles)
    assert {ragged.axes: ragged.lengths for ragged in found} == {
        (("batch['deep'][0]", 1), ("batch['x']", 0), ("y", 0)): (20, 31),
        (("table", 0),): (4, 9),
    }


def test_seconds_of_a_call_are_weighed_against_compiles(
    ledger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["plan", "--step-s", "0.000001", "--steps", "1", str(ledger)])
    assert "[934]" in capsys.readouterr().out
    main(["plan", "--step-s", "10", "--steps", "1000", str(ledger)])
    assert "[20, 31, 57, 934]" in capsys.readouterr().out


def test_nothing_ragged_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    calls((20, 4)).save(tmp_path / "run.json")
    assert main(["plan", str(tmp_path / "run.json")]) == 1
    assert capsys.readouterr().out == (
        f"no axis is ragged in {tmp_path / 'run.json'}: no function was compiled for several "
        "lengths\n"
    )


def test_a_file_that_is_no_ledger_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", str(tmp_path / "no.json")]) == 2
    assert capsys.readouterr().err == (
        f"{tmp_path / 'no.json'}: cannot be read: No such file or directory\n"
    )


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (["--sizes", "0"], "argument --sizes: '0' is not a count of 1 or more"),
        (["--step-s", "-1"], "argument --step-s: '-1' is not a number of seconds, such as 0.02"),
        (
            ["--step-s", "soon"],
            "argument --step-s: 'soon' is not a number of seconds, such as 0.02",
        ),
    ],
)
def test_bad_options_are_refused(
    option: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["plan", *option, "run.json"])
    assert capsys.readouterr().err == f"jitcount plan: error: {message}\n"


def test_to_plan_needs_no_jax(ledger: Path) -> None:
    code = f"""if True:
        import sys
        from jitcount._cli.main import main
        main(["plan", {str(ledger)!r}])
        print("jax" in sys.modules)"""
    assert python("-c", code).stdout.splitlines()[-1] == "False"
