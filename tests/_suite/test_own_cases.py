"""Cases of one's own: how they are declared, how they are found, and what is refused."""

import functools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import jitcount
from jitcount._suite.own_cases import CaseError, cases_in_file, cases_in_module, name_of


@pytest.fixture(autouse=True)
def modules_as_before(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    for name, module in [*sys.modules.items()]:
        if str(getattr(module, "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


HEAD = "import jitcount\n"


def cases_of(text: str, name: str = "cases.py") -> list[Any]:
    Path(name).write_text(HEAD + text)
    return cases_in_file(Path(name))


def refused(text: str) -> str:
    with pytest.raises(CaseError) as raised:
        cases_of(text)
    return str(raised.value)


# --- Declared -------------------------------------------------------------------------------------


def test_a_function_stays_what_it_is() -> None:
    def f(x: float = 1.0) -> float:
        return x

    assert jitcount.case(f) is f
    assert jitcount.case(compiles={"f": 1})(f) is f
    assert jitcount.case(f, (2.0,), name="two") is f


def test_all_forms_are_found_with_what_they_say() -> None:
    first, second, third = cases_of(
        "@jitcount.case\n"
        "def plain(): pass\n"
        "@jitcount.case(compiles={'step': 1}, within=1e-3)\n"
        "def counted(): pass\n"
        "def step(x, *, y): return x + y\n"
        "jitcount.case(step, (1,), kwargs={'y': 2}, name='step 3')\n"
    )
    assert (first.name, first.compiles, first.within, first.place) == (
        "plain", None, None, "cases.py:2",
    )  # fmt: skip
    assert (second.name, second.compiles, second.within) == ("counted", {"step": 1}, 1e-3)
    assert (third.name, third.call(third.args), str(third)) == ("step 3", 3, "step 3 at cases.py:7")


def test_a_call_comes_from_the_line_that_declares_the_case() -> None:
    (own,) = cases_of(
        "import jax, numpy as np\n"
        "step = jax.jit(lambda x: x + 1)\n\n"
        "jitcount.case(step, (np.ones(3, np.float32),))\n"
    )
    with jitcount.record() as log:
        own.call(own.args)
    assert [str(compiled.call_site) for compiled in log.compiles] == ["cases.py:5 in <module>"]


def test_what_has_no_name_has_that_of_what_it_calls_or_is() -> None:
    class Model:
        def __call__(self) -> None: ...

    def loss(x: float) -> float:
        return x

    assert name_of(functools.partial(functools.partial(loss), 1)) == "loss"
    assert name_of(jax.jit(loss)) == "loss"
    assert name_of(Model()) == "Model"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "@jitcount.case(compiles=['step'])\ndef f(): pass",
            (
                "compiles of the case f at cases.py:2 must be a mapping of functions to counts, as "
                "in {\"step\": 1}; it is ['step']"
            ),
        ),
        (
            "@jitcount.case(compiles={'step': -1})\ndef f(): pass",
            (
                "compiles of the case f at cases.py:2 must be a mapping of functions to counts, as "
                "in {\"step\": 1}; it is {'step': -1}"
            ),
        ),
        (
            "@jitcount.case\ndef f(w, x): pass",
            (
                "the case f at cases.py:2 cannot be called: missing a required argument: 'w'; "
                "give what it takes, as in jitcount.case(f, (x,))"
            ),
        ),
        (
            "jitcount.case(len, 3)",
            (
                "the case len at cases.py:2 takes its arguments as a tuple, as in "
                "jitcount.case(len, (x,)); not 3"
            ),
        ),
        ("jitcount.case(3, (3,))", "the case at cases.py:2 must be a function; it is 3"),
        (
            "jitcount.case(len, ([],), kwargs=3)",
            "the case len at cases.py:2 takes kwargs as a dict; it was given 3",
        ),
        (
            "jitcount.case(len, ([],), name=3)",
            "the name of the case at cases.py:2 must be a text; it is 3",
        ),
        (
            "jitcount.case(len, ([],), within=-1)",
            (
                "within of the case len at cases.py:2 must be 0 or a positive number, as in "
                "within=1e-5; it is -1"
            ),
        ),
        (
            "jitcount.case(len, ([],), within=float('nan'))",
            (
                "within of the case len at cases.py:2 must be 0 or a positive number, as in "
                "within=1e-5; it is nan"
            ),
        ),
    ],
)
def test_a_case_that_makes_no_sense_is_refused_where_it_is_declared(
    text: str, message: str
) -> None:
    assert refused(text) == message


# --- Found ----------------------------------------------------------------------------------------


def test_a_file_without_a_case_is_refused() -> None:
    assert refused("x = 1") == (
        "cases.py has no case: put @jitcount.case above a function without arguments, or write "
        "jitcount.case(f, args)"
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("import nope", "ModuleNotFoundError: No module named 'nope', at cases.py:2"),
        ("def f():\n  1 / 0\nf()", "ZeroDivisionError: division by zero, at cases.py:3"),
        ("raise SystemExit(3)", "SystemExit: 3, at cases.py:2"),
        ("raise ValueError('a\\nb')", "ValueError: a b, at cases.py:2"),
    ],
)  # fmt: skip
def test_an_import_that_fails_is_a_sentence_with_its_line(text: str, why: str) -> None:
    assert refused(text) == f"cases.py cannot be imported: {why}"


def test_a_file_that_is_no_python_is_a_sentence() -> None:
    assert refused("def").startswith("cases.py cannot be imported: SyntaxError: invalid syntax")


def test_two_cases_of_one_name_are_refused_with_both_lines() -> None:
    text = "@jitcount.case\ndef f(): pass\njitcount.case(f)\n"
    assert refused(text) == (
        "two cases are called f, at cases.py:2 and cases.py:4: give one of them another: "
        "jitcount.case(..., name=...)"
    )


def test_a_folder_and_no_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "cases").mkdir()
    with pytest.raises(CaseError) as raised:
        cases_in_file(Path("cases"))
    assert str(raised.value) == (
        "cases is a folder: name the file with the cases, or give -m and the name of a module"
    )
    with pytest.raises(CaseError, match=r"^there is no file none\.py$"):
        cases_in_file(Path("none.py"))


def test_a_file_sees_what_is_beside_it_and_may_have_any_name(tmp_path: Path) -> None:
    (tmp_path / "models_beside.py").write_text(f"{HEAD}@jitcount.case\ndef beside(): pass\n")
    Path("my-cases.txt").write_text(
        f"{HEAD}import models_beside\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass A: x: int = 1\n@jitcount.case\ndef own(): pass\n"
    )
    found = cases_in_file(Path("my-cases.txt"))
    assert [own.name for own in found] == ["beside", "own"]


def test_a_file_that_is_called_as_a_module_replaces_none() -> None:
    before = sys.modules["re"]
    assert [own.name for own in cases_of("@jitcount.case\ndef f(): pass", "re.py")] == ["f"]
    assert sys.modules["re"] is before


def test_a_module_is_found_from_where_the_command_is(tmp_path: Path) -> None:
    package = tmp_path / "own_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "cases.py").write_text(f"{HEAD}from . import other\n@jitcount.case\ndef f(): pass\n")
    (package / "other.py").write_text(f"{HEAD}@jitcount.case\ndef g(): pass\n")
    assert [own.name for own in cases_in_module("own_package.cases")] == ["g", "f"]
    # What has been imported before declares nothing again.
    assert [own.name for own in cases_in_module("own_package.cases")] == ["f"]
    assert [own.name for own in cases_in_module("own_package")] == ["g", "f"]
    with pytest.raises(CaseError) as raised:
        cases_in_module("own_package.none")
    assert str(raised.value) == (
        "own_package.none cannot be imported: ModuleNotFoundError: No module named "
        "'own_package.none'"
    )


def test_what_few_can_be_asked_for_their_arguments_is_a_case_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unknown(_: Callable[..., object]) -> None:
        raise ValueError("no signature found")

    monkeypatch.setattr("inspect.signature", unknown)
    assert jitcount.case(np.ones, (3,)) is np.ones
