"""Expected texts are compared whole, and rewrite themselves when that is asked for."""

from pathlib import Path

import pytest

from tests.expected import literal
from tests.helpers import ROOT, Finished, Project

TESTS = """
from tests.expected import expect, expect_file

FOUND = "größer → 1\\n\\n" + "a long line " * 12 + "\\nit's \\"quoted\\"\\n"

def test_text(): expect(FOUND, "before\\n"
    "and more"); expect("the same", "the same")

def test_lines():
    expect(FOUND.splitlines(),
           ["é", "before"])

def test_file():
    expect_file(FOUND, "found.txt")
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.write("conftest.py", 'pytest_plugins = ["tests.expected"]\n', head="")
    project.write("test_it.py", TESTS, head="")
    (tmp_path / "found.txt").write_text("before\n")
    return project


def run(project: Project, *arguments: str) -> Finished:
    return project.run("-W", "error", *arguments, env={"PYTHONPATH": str(ROOT)})


@pytest.mark.parametrize("options", [(), ("-n2", "--import-mode=importlib")])
def test_what_differs_fails_until_it_is_rewritten(
    project: Project, options: tuple[str, ...]
) -> None:
    failed = run(project)
    assert "3 failed" in failed.stdout
    assert "E     - before" in failed.stdout
    updated = run(project, "--update-expected", *options)
    assert (updated.returncode, updated.stderr) == (0, ""), updated.stdout
    assert updated.stdout.count("rewrote expected texts in ") == 2
    source = (project.root / "test_it.py").read_text()
    assert "before" not in source
    assert '); expect("the same", "the same")\n' in source
    assert run(project).returncode == 0


def test_what_is_no_literal_or_is_two_texts_is_left_to_the_author(project: Project) -> None:
    project.write(
        "test_it.py",
        "import pytest\n"
        "from tests.expected import expect\n"
        "def test_name(): expect('a', f'{1}')\n"
        "@pytest.mark.parametrize('found', 'ab')\n"
        "def test_two(found): expect(found, 'c')\n",
        head="",
    )
    done = run(project, "--update-expected")
    assert "2 failed, 1 passed" in done.stdout
    source = (project.root / "test_it.py").read_text()
    assert "expect('a', f'{1}')" in source
    assert 'expect(found, "a")' in source


@pytest.mark.parametrize(
    "text", ["", "a", "a\n\n", " " * 200, "\x1b\t'\"\u202e\u2028\\", "x" * 300]
)
def test_a_literal_is_what_was_found(text: str) -> None:
    assert eval(f"({literal(text)})") == text  # noqa: S307 (ours)
    assert eval(literal([text, text])) == [text, text]  # noqa: S307
