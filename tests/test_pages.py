"""The examples of the README and of `docs/` run, print what is shown, and what they name exists."""

import re
from pathlib import Path

import jax
import pytest
import yaml

from jitcount._explain.causes import Kind
from jitcount._explain.fix import IMPORTS, OUTSIDE_JIT
from jitcount._ledger.environment import environment
from jitcount._targets.chips import CHIPS
from tests.helpers import ROOT, sessions
from tests.pages import PAGES, Example, examples_in, printed_by, without_figures

DOCS = ROOT / "docs"
TEXTS = {page.name: page.read_text() for page in PAGES}
EXAMPLES = [example for page in PAGES for example in examples_in(page)]


def marked(example: Example) -> object:
    """An example as a test's parameter; one that needs other compilers runs where they are."""
    marks = [pytest.mark.aot(target) for target in example.targets]
    return pytest.param(example, id=str(example), marks=marks)


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="the pages show a CPU's output")
@pytest.mark.parametrize("example", [marked(example) for example in EXAMPLES])
def test_an_example_prints_what_its_page_shows(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    printed = without_figures(printed_by(example, tmp_path))
    assert printed == without_figures(example.shown), "python -m tests.pages puts it there"


def test_every_page_is_in_the_navigation() -> None:
    pages = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    named = [page if isinstance(page, str) else next(iter(page.values())) for page in pages]
    assert len(named) == len(set(named))
    assert set(named) == {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}


def test_the_first_page_leads_to_every_other() -> None:
    others = {page.name for page in DOCS.glob("*.md")} - {"index.md"}
    assert others - set(re.findall(r"\(([\w-]+\.md)\)", TEXTS["index.md"])) == set()


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_in_files_beside_the_pages_lead_somewhere(name: str) -> None:
    links = re.findall(r"\]\((?!https:)([^)#]+)\)", (ROOT / name).read_text())
    assert {link for link in links if not (ROOT / link).exists()} == set()


def test_every_session_that_a_page_names_exists() -> None:
    named = {
        session
        for text in TEXTS.values()
        for names in re.findall(r"nox -s ((?:[a-z][a-z-]* ?)+)", text)
        for session in names.split()
    }
    assert {"tests-cpu", "bench-gpu", "lint"} <= named
    assert named <= set(sessions())


def test_every_place_that_a_page_names_is_there() -> None:
    place = re.compile(r"`((?:src|tests|benchmarks|examples|docs|\.github)/[\w/.]*)`")
    named = {named for text in TEXTS.values() for named in place.findall(text)}
    assert "examples/train.py" in named
    assert {place for place in named if not (ROOT / place).exists()} == set()


# --- What single pages say ------------------------------------------------------------------------


def test_the_first_example_is_the_file_that_it_says() -> None:
    assert examples_in(ROOT / "README.md")[0].code == (ROOT / "examples/train.py").read_text()


def test_the_environment_is_described_as_the_readme_shows() -> None:
    shown = re.search(r"^On (.*)$", TEXTS["README.md"], re.MULTILINE)
    assert shown is not None
    plain = re.sub(r" (?:jax-cuda\d+-plugin|libtpu) [\d.]+,", "", str(environment()))
    pattern = re.sub(r"[\d.]+", "N", plain.partition(")")[2])
    if jax.default_backend() == "cpu":
        assert re.sub(r"[\d.]+", "N", shown[1].partition(")")[2]) == pattern


def test_the_test_command_is_what_ci_runs() -> None:
    commands = re.findall(r"^\$ (.*nox.*)$", TEXTS["README.md"], re.MULTILINE)
    assert len(commands) == 2
    assert f"\n{commands[1]} " in (ROOT / ".ci" / "run").read_text()


def test_every_kind_of_cause_is_in_the_table() -> None:
    table = TEXTS["causes.md"].partition("| code | kind | it was compiled because |")[2]
    rows = re.findall(r"^\| (JC.*?) \| (`.*?) \|", table.partition("\n\n")[0], re.MULTILINE)
    codes = [code for cell, _ in rows for code in cell.split(", ")]
    kinds = [kind for _, cell in rows for kind in re.findall(r"`([\w-]+)`", cell)]
    assert set(kinds) == set(Kind)
    assert codes == [Kind(kind).code for kind in kinds]


def test_every_code_has_a_row() -> None:
    shown = set(re.findall(r"^\| (JC\d+)(?:, )?", TEXTS["causes.md"], re.MULTILINE))
    assert {OUTSIDE_JIT, IMPORTS} <= shown


def test_the_releases_are_those_of_the_sessions() -> None:
    noxfile = (ROOT / "noxfile.py").read_text()
    releases = re.findall(r'^    "([\d.]+)": "3', noxfile, re.MULTILINE)
    assert releases
    scored = re.findall(r"^([\d.]+) +\d+ +\d+ +\d+$", TEXTS["causes.md"], re.MULTILINE)
    compared = re.findall(r"^([\d.]+) +cpu \(cpu\): jax", TEXTS["suite.md"], re.MULTILINE)
    assert (scored, compared) == (releases, releases)


def test_every_chip_is_shown() -> None:
    shown = re.findall(r"^((?:tpu|cuda):\w+) ", TEXTS["targets.md"], re.MULTILINE)
    assert {name.partition(":")[2] for name in shown} == {chip.name for chip in CHIPS}
