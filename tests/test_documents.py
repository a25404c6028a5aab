"""What the changelog and the guide for contributors say is so."""

import re
import tomllib

from tests.helpers import ROOT, sessions

CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
GUIDE = (ROOT / "CONTRIBUTING.md").read_text()
RECIPES, _, GLOSSARY = GUIDE.partition("\n## Glossary\n")


def test_the_version_has_a_section_in_the_changelog() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    sections = re.findall(r"^## (\S+)", CHANGELOG, re.MULTILINE)
    assert sections[0] == "Unreleased"
    assert version in sections


def test_every_place_in_the_recipes_is_there() -> None:
    places = set(re.findall(r"`((?:src|tests|\.github|\.ci)/[\w/.]*)`", RECIPES))
    assert len(places) > 20
    assert {place for place in places if not (ROOT / place).exists()} == set()


def test_every_session_in_the_recipes_is_there() -> None:
    named = {
        session
        for names in re.findall(r"nox -s ((?:[a-z][a-z-]* ?)+)(?![\w.-])", RECIPES)
        for session in names.split()
    }
    assert {"lint", "types", "tests-cpu", "libraries", "versions", "score"} <= named
    assert named <= set(sessions())


def test_every_word_of_the_glossary_lives_somewhere() -> None:
    rows = re.findall(r"^\| (.+?) \| (.+?) \|(.*)\|$", GLOSSARY, re.MULTILINE)[2:]
    words = [word for row in rows for word in row[0].split(", ")]
    assert len(words) == len(set(words)) > 40
    homes = {home for row in rows for home in re.findall(r"`(.+?)`", row[2])}
    roots = (ROOT / "src" / "jitcount", ROOT / "src", ROOT)
    assert {home for home in homes if not any((root / home).exists() for root in roots)} == set()
