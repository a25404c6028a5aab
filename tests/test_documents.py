"""What the changelog and the guide for contributors say is so."""

import re
import tomllib

from tests.helpers import ROOT, sessions

CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
GUIDE = (ROOT / "CONTRIBUTING.md").read_text()


def test_the_version_has_a_section_in_the_changelog() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    sections = re.findall(r"^## (\S+)", CHANGELOG, re.MULTILINE)
    assert sections[0] == "Unreleased"
    assert version in sections


def test_every_place_in_the_recipes_is_there() -> None:
    places = set(re.findall(r"`((?:src|tests|tools|docs|\.github|\.ci)/[\w/.]*)`", GUIDE))
    assert len(places) > 20
    assert {place for place in places if not (ROOT / place).exists()} == set()


def test_every_session_in_the_recipes_is_there() -> None:
    named = {
        session
        for names in re.findall(r"nox -s ((?:[a-z][a-z-]* ?)+)(?![\w.-])", GUIDE)
        for session in names.split()
    }
    assert {"lint", "types", "tests-cpu", "libraries", "versions", "score"} <= named
    assert named <= set(sessions())
