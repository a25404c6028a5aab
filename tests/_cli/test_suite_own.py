"""``jitcount suite cases.py``: the user's own cases, as the suite's are run."""

import json
import re
import sys
from pathlib import Path

import jax
import pytest

from jitcount._cli.main import main
from jitcount._ledger.ledger import read_ledger
from jitcount._suite import returned
from tests import stand_in
from tests.expected import expect
from tests.helpers import ROOT, python

CASES = """
import jax, jax.numpy as jnp, jitcount, numpy as np

@jax.jit
def step(w, x):
    return {"w": w - x.mean(), "n": 3}

@jitcount.case(compiles={"step": 1})
def training_step():
    return step(np.ones(4, np.float32), np.ones(3, np.float32))

jitcount.case(step, (np.ones(4, np.float32), np.ones(2, np.float32)), name="step-short")

@jitcount.case(within=1e-4)
def host_loop():
    x = jnp.arange(3.0)
    return x * float(x.sum())

@jitcount.case
def flips():
    return jnp.arange(3.0)
"""


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(returned, "tolerance", stand_in.tolerance)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "cases.py").write_text(CASES)


def test_they_are_run_and_judged_as_ours_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["suite", "cases.py", "--bench", "--ledger", "here.json"]) == 0
    times_out = re.sub(r"[\d.]+ (s|ms|µs)\b", "TIME", capsys.readouterr().out)
    shown = re.sub(r"─+", "─", re.sub(r" {2,}", "  ", times_out))
    expect(
        shown,
        "case  compile time  cached  numerics  bound used  compiles\n"
        "─\n"
        "training_step  holds  TIME  TIME  derived  0 almost nothing  step 1\n"
        "step-short  holds  TIME  TIME  derived  0 almost nothing  step 1\n"
        "host_loop  not judged  TIME  TIME  declared between runs  –  iota 1, _reduce_sum"
        " 1, multiply 1\n"
        "flips  holds  TIME  TIME  no tolerance  0 almost nothing  iota 1\n"
        "\n"
        "  host_loop: within 0.0001 of the largest magnitude between runs, as declared, "
        "not derived: float() of a traced value at cases.py:9\n"
        "  flips: 1 of 3 elements has no tolerance, and is not judged: the branch at "
        "cases.py:9 flips in 3 of 8 draws\n"
        "3 cases held, 0 did not, 1 not judged here, 0 unsupported, in TIME\n",
    )
    ledger = read_ledger(tmp_path / "here.json")
    assert sorted(ledger.cases) == ["flips", "host_loop", "step-short", "training_step"]
    assert ledger.cases["training_step"].expected_compiles == {"step": 1}
    assert ledger.cases["step-short"].expected_compiles is None
    assert ledger.cases["step-short"].figures.keys() == {"cached_s"}


def test_patterns_after_the_file_choose_among_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["suite", "cases.py", "*step*", "flips"]) == 0
    shown = capsys.readouterr().out
    assert re.findall(r"^([\w-]+) +holds", shown, re.MULTILINE) == [
        "training_step", "step-short", "flips",
    ]  # fmt: skip


def test_a_result_that_is_wrong_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cases.py").write_text(CASES.replace("def training_step", "def wrong_step"))
    assert main(["suite", "cases.py", "wrong*"]) == 1
    assert capsys.readouterr().out.splitlines()[-3:-1] == [
        (
            "  wrong_step: result 0 (['n']): the value is 3, not 4, 1 ulp apart; "
            "it must be equal to the bit"
        ),
        (
            "  wrong_step: result 1 (['w']): [0] is 0, not 1, 1,065,353,216 ulps apart; "
            "it must be equal to the bit"
        ),
    ]


def test_a_case_of_the_suite_stays_what_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "softmax").mkdir()
    assert main(["suite", "softmax"]) == 0
    assert "1 case held" in capsys.readouterr().out


def test_a_user_case_with_the_name_of_one_of_ours_is_not_known_to_be_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = CASES.replace("def flips", "def flips_").replace(
        "@jitcount.case\n", "@jitcount.case(name='class-product-rows-squared')\n"
    )
    (tmp_path / "cases.py").write_text(named)
    assert main(["suite", "cases.py", "class-*"]) == 0
    assert "1 case held" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "text", "message"),
    [
        (["none.py"], CASES, "there is no file none.py"),
        (
            ["folder"],
            CASES,
            (
                "folder is a folder: name the file with the cases, or give -m and the name of a "
                "module"
            ),
        ),
        (
            ["cases.py"],
            "x = 1",
            (
                "cases.py has no case: put @jitcount.case above a function without arguments, or "
                "write jitcount.case(f, args)"
            ),
        ),
        (
            ["cases.py"],
            "import nope",
            (
                "cases.py cannot be imported: ModuleNotFoundError: No module named 'nope', at "
                "cases.py:1"
            ),
        ),
        (
            ["cases.py"],
            "import jitcount\nf = jitcount.case(lambda: 1, name='a')\njitcount.case(f, name='a')",
            (
                "two cases are called a, at cases.py:2 and cases.py:3: give one of them another: "
                "jitcount.case(..., name=...)"
            ),
        ),
        (
            ["cases.py"],
            "import jitcount\njitcount.case(lambda: 1, compiles=['step'])",
            (
                "compiles of the case <lambda> at cases.py:2 must be a mapping of functions to "
                "counts, as in {\"step\": 1}; it is ['step']"
            ),
        ),
        (
            ["cases.py", "training-step"],
            CASES,
            "no case is called training-step; did you mean training_step?",
        ),
        (
            ["-m", "no_module"],
            CASES,
            ("no_module cannot be imported: ModuleNotFoundError: No module named 'no_module'"),
        ),
    ],
)
def test_cases_that_cannot_be_had_are_one_sentence_and_nothing_is_run(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    text: str,
    message: str,
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "cases.py").write_text(text)
    with pytest.raises(SystemExit) as raised:
        main(["suite", "--ledger", "out.json", *arguments])
    assert raised.value.code == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err.splitlines()[-1]) == (
        "", f"jitcount suite: error: {message}",
    )  # fmt: skip
    assert not (tmp_path / "out.json").exists()


def test_a_module_is_run_by_its_name_and_ledgers_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = {"one": CASES, "other": CASES.replace("w - x.mean()", "w - 1.0001 * x.mean()")}
    for name, text in texts.items():
        package = tmp_path / f"own_package_{name}"
        package.mkdir()
        (package / "__init__.py").write_text("")
        (package / "cases.py").write_text(text)
        assert main(["suite", "-m", f"{package.name}.cases", "--ledger", f"{name}.json"]) == 0
    capsys.readouterr()
    assert main(["compare", "one.json", "other.json"]) == 1
    shown = capsys.readouterr().out
    assert "training_step in other: result 1 (['w']) differs: [0] is -0.0001" in shown
    assert (
        "host_loop: within 0.0001 of the largest magnitude between runs, as declared, not derived: "
        "float() of a traced value at cases.py:9"
    ) in shown


# --- In other processes ---------------------------------------------------------------------------

START = """
import sys
from tests import stand_in
stand_in.put_in_place()
from jitcount._cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def suite(*words: str, cwd: Path, **env: str) -> tuple[int, str, str]:
    """Run the command with the stand-in, which its own processes do not have."""
    done = python(
        "-c", START, "suite", *words, cwd=cwd, env={"PYTHONPATH": str(ROOT), "COLUMNS": "150"} | env
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.thorough
def test_several_processes_refuse_a_file_with_one_voice(tmp_path: Path) -> None:
    (tmp_path / "cases.py").write_text("import nope")
    code, out, err = suite("--processes", "2", "cases.py", cwd=tmp_path)
    assert (code, out) == (2, "")
    assert err.count("cases.py cannot be imported") == 1


@pytest.mark.thorough
@pytest.mark.usefixtures("fake_uv")
def test_they_are_run_under_other_releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    monkeypatch.setenv("FAKE_UV", json.dumps({"releases": {jax.__version__: [version]}}))
    only_counts = CASES.partition("jitcount.case(step")[0].replace("    return step", "    step")
    (tmp_path / "cases.py").write_text(only_counts)
    code, out, err = suite("--jax", jax.__version__, "cases.py", cwd=tmp_path, JAX_PLATFORMS="cpu")
    assert (code, err.count("error")) == (0, 0), err
    assert "0 differences in 1 case in 2 ledgers" in out
    (tmp_path / "cases.py").write_text("import nope")
    code, out, err = suite("--jax", jax.__version__, "cases.py", cwd=tmp_path)
    assert (code, out) == (2, "")
    assert err.count("cases.py cannot be imported") == 1
    assert "left no ledger" not in err
