import os
import sys
from pathlib import Path

import pytest

from jitcount._observe.call_site import absolute_path, shown_path


def test_a_file_below_where_the_program_runs_is_shown_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert shown_path(str(tmp_path / "models" / "mlp.py")) == os.path.join("models", "mlp.py")  # noqa: PTH118


def test_the_same_file_is_shown_anew_when_the_program_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = str(tmp_path / "models" / "mlp.py")
    (tmp_path / "models").mkdir()
    monkeypatch.chdir(tmp_path)
    shown_path(file)
    monkeypatch.chdir(tmp_path / "models")
    assert shown_path(file) == "mlp.py"


@pytest.mark.parametrize("folder", ["site-packages", "dist-packages"])
def test_an_installed_file_is_shown_from_its_package_on(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # an environment in the project's own folder
    file = tmp_path / ".venv" / folder / "flax" / "core.py"
    assert Path(shown_path(str(file))) == Path("flax/core.py")


def test_what_is_no_absolute_path_is_shown_as_it_is() -> None:
    assert [shown_path(name) for name in ("train.py", "<stdin>")] == ["train.py", "<stdin>"]


def test_a_file_is_absolute_and_what_was_typed_is_in_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute_path("train.py") == str(tmp_path / "train.py")
    assert absolute_path(str(tmp_path / "train.py")) == str(tmp_path / "train.py")
    assert [absolute_path(name) for name in ("<stdin>", "<string>")] == ["", ""]


@pytest.mark.skipif(sys.platform == "win32", reason="there, it cannot go")
def test_a_working_directory_that_is_gone_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert shown_path(str(gone / "train.py")) == "train.py"
    assert (absolute_path("train.py"), absolute_path("/a/train.py")) == ("", "/a/train.py")
