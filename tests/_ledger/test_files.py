"""Files are written whole or not at all, and nobody else's file is replaced."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from jitcount._ledger import files
from jitcount._ledger.budget import write_budget
from jitcount._ledger.files import LedgerError, require_replaceable, write_whole
from jitcount._ledger.ledger import KIND as LEDGER
from jitcount._ledger.ledger import Ledger, read_ledger, write_ledger
from tests.helpers import running

# Writes ever longer files, over and over, until it is killed.
WRITER = """
import pathlib, sys
from jitcount._ledger import files
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
        with running("-c", WRITER, str(path)) as writer:
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

    def no_space(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)  # by now, most of it is there
    with pytest.raises(LedgerError) as raised:
        write_whole(path, b"new")
    assert str(raised.value) == f"{path}: cannot be written: No space left on device"
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file.json"]


def test_a_file_of_somebody_elses_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "package.json"
    require_replaceable(path, "jitcount ledger")  # nothing is there yet
    path.write_text('{"name": "web"}')
    with pytest.raises(LedgerError) as raised:
        require_replaceable(path, "jitcount ledger")
    assert str(raised.value) == f"{path}: is not a jitcount ledger; it is left as it is"
    with pytest.raises(LedgerError, match="is a folder"):
        require_replaceable(tmp_path, "jitcount ledger")
    path.write_text('{"kind": "jitcount ledger", "schema": 1}')
    require_replaceable(path, "jitcount ledger")


def refusal(work: Callable[..., object], *arguments: object) -> str:
    """Why it cannot be done."""
    with pytest.raises(LedgerError) as raised:
        work(*arguments)
    return str(raised.value)


# --- Links, modes, names --------------------------------------------------------------------------


def test_a_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    there, not_yet = tmp_path / "real" / "there.json", tmp_path / "real" / "not_yet.json"
    there.write_bytes(b"old")
    for name, leads_to in ("a.json", "real/there.json"), ("b.json", "real/not_yet.json"):
        (tmp_path / name).symlink_to(leads_to)
        write_whole(tmp_path / name, b"new")
        assert (tmp_path / name).is_symlink()
    assert (there.read_bytes(), not_yet.read_bytes()) == (b"new", b"new")
    assert sorted(p.name for p in (tmp_path / "real").iterdir()) == ["not_yet.json", "there.json"]


def test_a_link_that_leads_to_itself_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "loop.json"
    path.symlink_to("loop.json")
    refused = f"{path}: cannot be written: Too many levels of symbolic links"
    assert refusal(write_whole, path, b"new") == refused
    assert refusal(require_replaceable, path, LEDGER) == refused
    assert path.is_symlink()


def test_no_link_can_be_planted_where_the_file_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even one who guesses the name that is made up for it."""
    somebody_elses = tmp_path / "elses"
    somebody_elses.write_bytes(b"kept")
    monkeypatch.setattr("secrets.token_hex", lambda _: "0" * 16)
    (tmp_path / ".jitcount-0000000000000000").symlink_to(somebody_elses)
    with pytest.raises(LedgerError, match="cannot be written: File exists"):
        write_whole(tmp_path / "ledger.json", b"new")
    assert somebody_elses.read_bytes() == b"kept"
    assert not (tmp_path / "ledger.json").exists()


def test_two_names_that_are_made_up_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    real = Path.replace

    def replace(self: Path, target: Path) -> Path:
        made.append(self.name)
        return real(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    for _ in range(2):
        write_whole(tmp_path / "ledger.json", b"new")
    assert len(set(made)) == 2


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
@pytest.mark.parametrize(
    ("before", "is_private", "after"),
    [(0o640, True, 0o640), (0o664, False, 0o664), (0o400, False, 0o400), (None, True, 0o600)],
)
def test_the_mode_of_a_file_is_kept_and_a_private_one_is_its_owners_alone(
    tmp_path: Path, before: int | None, after: int, *, is_private: bool
) -> None:
    path = tmp_path / "ledger.json"
    if before is not None:
        path.touch()
        path.chmod(before)
    write_whole(path, b"new", is_private=is_private)
    assert oct(stat.S_IMODE(path.stat().st_mode)) == oct(after)
    assert path.read_bytes() == b"new"


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
def test_a_new_file_that_is_not_private_is_as_others_that_are_made_here(tmp_path: Path) -> None:
    (tmp_path / "by_hand").touch()
    write_whole(tmp_path / "budget.json", b"new")
    assert (tmp_path / "budget.json").stat().st_mode == (tmp_path / "by_hand").stat().st_mode


def test_a_ledger_is_private_and_a_budget_is_not(tmp_path: Path, ledger: Ledger) -> None:
    write_ledger(tmp_path / "ledger.json", ledger)
    write_budget(tmp_path / "budget.json", {})
    (tmp_path / "by_hand").touch()
    modes = [(tmp_path / name).stat().st_mode for name in ("budget.json", "by_hand")]
    assert modes[0] == modes[1]
    if os.name == "posix":
        assert stat.S_IMODE((tmp_path / "ledger.json").stat().st_mode) == 0o600


def test_a_name_may_be_as_long_as_the_system_allows(tmp_path: Path) -> None:
    longest = tmp_path / ("x" * 255)
    require_replaceable(longest, LEDGER)
    write_whole(longest, b"new")
    assert longest.read_bytes() == b"new"
    too_long = tmp_path / ("x" * 256)
    assert (
        refusal(write_whole, too_long, b"") == f"{too_long}: cannot be written: File name too long"
    )
    assert refusal(require_replaceable, too_long, LEDGER) == refusal(write_whole, too_long, b"")


def test_a_folder_that_cannot_be_entered_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "ledger.json"
    assert refusal(write_whole, path, b"new") == f"{path}: cannot be written: Not a directory"
    assert refusal(require_replaceable, path, LEDGER) == refusal(write_whole, path, b"new")
    assert refusal(read_ledger, path) == f"{path}: cannot be read: Not a directory"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may do all")
@pytest.mark.parametrize("mode", [0o000, 0o500])
def test_a_folder_that_may_not_be_written_to_is_one_line_before_the_run(
    tmp_path: Path, mode: int
) -> None:
    folder = tmp_path / "locked"
    folder.mkdir()
    folder.chmod(mode)
    try:
        with pytest.raises(LedgerError) as raised:
            require_replaceable(folder / "ledger.json", LEDGER)
    finally:
        folder.chmod(0o700)
    assert str(raised.value).startswith(f"{folder / 'ledger.json'}: cannot be written: ")
    assert "\n" not in str(raised.value)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may do all")
def test_a_file_that_is_write_protected_is_left_as_it_is(tmp_path: Path, ledger: Ledger) -> None:
    path = tmp_path / "ledger.json"
    write_ledger(path, ledger)
    path.chmod(0o400)
    for refused in refusal(require_replaceable, path, LEDGER), refusal(write_ledger, path, ledger):
        assert refused == f"{path}: cannot be written: it is write-protected"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are of POSIX")
def test_pipes_and_devices_are_refused_for_reading_and_for_writing(
    tmp_path: Path, ledger: Ledger
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to(pipe)
    read, write = os.pipe()
    try:
        for path in pipe, tmp_path / "link", Path("/dev/null"), Path(f"/dev/fd/{read}"):
            refused = "is a pipe or a device, not a file"
            assert refusal(read_ledger, path) == f"{path}: {refused}"
            refused = f"{path}: cannot be written: it {refused}"
            assert refusal(require_replaceable, path, LEDGER) == refused
            assert refusal(write_whole, path, b"new") == refused
            assert refusal(write_ledger, path, ledger) == refused
    finally:
        os.close(read)
        os.close(write)


def test_a_file_that_is_too_large_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.truncate(10 * 2**30)  # takes no room on the disk
    too_large = f"{path}: is too large to be a jitcount ledger: 10.0 GiB"
    assert refusal(read_ledger, path) == too_large
    assert refusal(require_replaceable, path, LEDGER) == f"{too_large}; it is left as it is"


def test_what_came_to_be_somebody_elses_during_the_run_is_left_alone(
    tmp_path: Path, ledger: Ledger
) -> None:
    path = tmp_path / "out.json"
    require_replaceable(path, LEDGER)
    path.write_text('{"loss": 0.1}')
    with pytest.raises(LedgerError, match="is not a jitcount ledger; it is left as it is"):
        write_ledger(path, ledger)
    assert path.read_text() == '{"loss": 0.1}'


# --- One at a time --------------------------------------------------------------------------------

# Adds a line to a file, many times: reads it, and writes it with one more.
ADDING = """
import sys
from pathlib import Path
from jitcount._ledger.files import one_at_a_time, write_whole
path = Path(sys.argv[1])
for number in range(100):
    with one_at_a_time(path):
        before = path.read_bytes() if path.exists() else b""
        write_whole(path, before + b"%s %d\\n" % (sys.argv[2].encode(), number))
"""


def test_two_that_change_a_file_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "new" / "budget.json"
    with (
        running("-c", ADDING, str(path), "a") as one,
        running("-c", ADDING, str(path), "b") as other,
    ):
        assert [process.communicate(timeout=120)[1] for process in (one, other)] == ["", ""]
    wanted = [f"{name} {number}" for name in "ab" for number in range(100)]
    assert sorted(path.read_text().splitlines()) == sorted(wanted)
    assert [p.name for p in path.parent.iterdir()] == ["budget.json"]


# Takes the lock, and keeps it.
HOLDING = """
import sys, time
from pathlib import Path
from jitcount._ledger.files import one_at_a_time
with one_at_a_time(Path(sys.argv[1])):
    print("has it", flush=True)
    time.sleep(600)
"""


def test_a_lock_ends_with_its_process_and_nobody_waits_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "budget.json"
    monkeypatch.setattr(files, "_PATIENCE_S", 0.1)
    with running("-c", HOLDING, str(path)) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(LedgerError) as raised, files.one_at_a_time(path):
            pass
        assert str(raised.value) == f"{path}: is in use by another process, and was so for 0.1 s"
        holder.kill()
        holder.wait(timeout=60)
        with files.one_at_a_time(path):
            pass
    assert list(tmp_path.iterdir()) == []
