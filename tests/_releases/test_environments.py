"""Environments are made once, of what is installed here; what cannot be made is one line."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

import jitcount
from jitcount._releases import environments
from jitcount._releases.environments import Maker, NoEnvironmentError
from jitcount._releases.requirements import installed
from tests.helpers import python

HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"
THIS_PYTHON = sys.version.partition(" ")[0]


def like(monkeypatch: pytest.MonkeyPatch, **what: object) -> None:
    monkeypatch.setenv("FAKE_UV", json.dumps(what))


def refused(release: str) -> str:
    with pytest.raises(NoEnvironmentError) as raised:
        Maker().environment(release)
    return str(raised.value)


def test_it_is_made_once_and_has_the_jitcount_that_runs(fake_uv: Path, tmp_path: Path) -> None:
    made = Maker().environment("0.9.2")
    asks = "import jitcount, sys; print(jitcount.__version__, sys.prefix)"
    instead = "import os, sys; os.execv(sys.argv[1], sys.argv[1:])"
    printed = python("-c", instead, made.python, "-c", asks).stdout

    folder = tmp_path / "cache" / "jitcount"
    assert printed.split() == [jitcount.__version__, str(Path(made.folder, "venv"))]
    assert Path(made.folder).parent == folder
    assert [path.stat().st_mode & 0o777 for path in (folder, Path(made.folder))] == [0o700] * 2
    calls = fake_uv.read_text()
    assert Maker().environment("0.9.2") == made
    assert fake_uv.read_text() == calls


def test_it_is_made_anew_when_something_else_is_installed(
    fake_uv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Maker().environment("0.9.2")
    calls = fake_uv.read_text()

    def with_one_more() -> object:
        found = installed()
        return replace(found, versions=found.versions | {"more": "1"})

    monkeypatch.setattr(environments, "installed", with_one_more)
    assert not Maker().is_made("0.9.2")
    Maker().environment("0.9.2")
    assert fake_uv.read_text() == calls * 2


def test_one_that_was_interrupted_is_made_anew(fake_uv: Path) -> None:
    made = Maker().environment("0.9.2")
    Path(made.folder, "environment.json").write_text('{"asked"')
    assert not Maker().is_made("0.9.2")
    assert Maker().environment("0.9.2") == made


def test_uv_is_told_the_versions_that_are_here_and_what_moved_is_known(
    fake_uv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    like(monkeypatch, moved={"msgspec": "0.1"})
    made = Maker().environment("0.12.0.1")
    assert made.others == (f"msgspec {msgspec.__version__} → 0.1",)
    assert "jax" in Path(made.folder, "wanted.txt").read_text().splitlines()[-1]
    assert "rich" in Path(made.folder, "wanted.txt").read_text().splitlines()


def test_what_does_not_allow_the_release_is_said_and_it_is_installed_all_the_same(
    fake_uv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    like(monkeypatch, conflict="mine depends on jax<0.9")
    made = Maker().environment("0.9.2")
    assert made.forced == "uv: No solution found: mine depends on jax<0.9"
    assert "--override" in fake_uv.read_text()


@pytest.mark.usefixtures("fake_uv")
def test_a_package_that_no_index_has_is_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    like(monkeypatch, unknown="rich")
    made = Maker().environment("0.9.2")
    assert (made.lacking, made.forced) == (("rich",), "")
    assert "rich" not in Path(made.folder, "wanted.txt").read_text().split()


def test_a_release_that_needs_another_python_gets_one_that_is_here_before_one_to_be_fetched(
    fake_uv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pythons = [
        ["3.40.0", None, "cpython", "default"],
        ["3.41.0rc1", "/rough", "cpython", "default"],
        ["3.42.0", sys.executable, "cpython", "default"],
        ["3.43.0", None, "cpython", "default"],
        ["3.41.0", "/pypy", "pypy", "default"],
        ["3.41.0", "/no-gil", "cpython", "freethreaded"],
    ]
    like(monkeypatch, pythons=pythons, releases={"0.12.0.1": ["3.42", "3.43"]})
    Maker().environment("0.12.0.1")
    tried = [
        line.split("--python-version ")[1].split()[0] for line in calls_of(fake_uv, "pip compile -")
    ]
    assert tried == [HERE, "3.42"]
    (made,) = calls_of(fake_uv, "venv")
    assert f"--python {sys.executable}" in made


def calls_of(calls: Path, what: str) -> list[str]:
    return [line for line in calls.read_text().splitlines() if line.startswith(what)]


@pytest.mark.parametrize(
    ("release", "what", "message"),
    [
        ("0.99.0", {}, "uv: No solution found: there is no version of jax==0.99.0"),
        (
            "0.12.0.1",
            {"releases": {"0.12.0.1": ["3.99"]}},
            (
                "uv: No solution found: jax==0.12.0.1 depends on another Python. "
                "No other Python that is here, or that uv may fetch, has it."
            ),
        ),
        ("0.9.2", {"has_python": False}, "uv: No interpreter found"),
    ],
)
def test_what_uv_cannot_do_is_one_line(
    fake_uv: Path,
    monkeypatch: pytest.MonkeyPatch,
    release: str,
    what: dict[str, object],
    message: str,
) -> None:
    like(monkeypatch, **what)
    assert refused(release) == message
    assert not Maker().is_made(release)
    assert not Maker().folder(release).exists()


def test_without_uv_it_is_said_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    expected = "uv, which makes the environments, is not installed: python -m pip install uv"
    assert refused("0.9.2") == expected


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="Windows has no modes")
def test_a_folder_that_others_can_write_to_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "jitcount"
    folder.mkdir()
    folder.chmod(0o777)
    assert refused("0.9.2") == f"{folder}: others can write there: chmod 700 {folder}"


def test_a_relative_cache_folder_is_not_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    monkeypatch.setenv("HOME", "/home/someone")
    assert environments.kept_in() == Path("/home/someone/.cache/jitcount")
