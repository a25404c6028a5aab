"""Files are written whole or not at all, and nobody else's file is replaced."""

from pathlib import Path

import pytest

from jitcount.ledger import files
from jitcount.ledger.files import FileError, require_replaceable, write_whole
from tests.helpers import running

# Writes ever longer files, over and over, until it is killed.
WRITER = """
import importlib.util, pathlib, sys
spec = importlib.util.spec_from_file_location("files", sys.argv[2])  # alone, without JAX
files = importlib.util.module_from_spec(spec)
spec.loader.exec_module(files)
path = pathlib.Path(sys.argv[1])
number = 0
while True:
    number += 1
    files.write_whole(path, b"[" + b"%d," % number * 200_000 + b"0]")
    print(number, flush=True)
"""


def test_a_file_is_whole_whenever_its_writer_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    for _ in range(3):
        with running("-c", WRITER, str(path), files.__file__) as writer:
            assert writer.stdout is not None
            for _ in range(5):
                writer.stdout.readline()
            writer.kill()
        content = path.read_bytes()
        assert content.startswith(b"[")
        assert content.endswith(b",0]")


def test_a_write_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file.json"
    write_whole(path, b"old")

    def no_space(self: Path, content: bytes) -> int:
        self.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", no_space)
    with pytest.raises(FileError) as raised:
        write_whole(path, b"new")
    assert str(raised.value) == f"{path}: cannot be written: No space left on device"
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file.json"]


def test_a_file_of_somebody_elses_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "package.json"
    require_replaceable(path, "jitcount ledger")  # nothing is there yet
    path.write_text('{"name": "web"}')
    with pytest.raises(FileError) as raised:
        require_replaceable(path, "jitcount ledger")
    assert str(raised.value) == f"{path}: is not a jitcount ledger; it is left as it is"
    with pytest.raises(FileError, match="is a folder"):
        require_replaceable(tmp_path, "jitcount ledger")
    path.write_text('{"kind": "jitcount ledger", "schema": 1}')
    require_replaceable(path, "jitcount ledger")
