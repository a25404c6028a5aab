"""``jitcount suite``: the cases, and the file to take home."""

import contextlib
import re
import sys
import time
from pathlib import Path

import jax
import pytest

from jitcount._cli.main import main
from jitcount._ledger.ledger import read_ledger
from jitcount._suite import case as suite_case
from tests.expected import expect
from tests.helpers import running


def test_it_runs_the_chosen_cases_and_keeps_a_ledger(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    path = tmp_path / "here.json"
    assert main(["suite", "--bench", "--ledger", str(path), "first-example", "sum-1?"]) == 0
    times_out = re.sub(r"[\d.]+ (s|ms|µs)\b", "TIME", capsys.readouterr().out)
    shown = re.sub(r"─+", "─", re.sub(r" {2,}", "  ", times_out))
    expect(
        shown,
        "case  compile time  cached  numerics  bound used  compiles\n"
        "─\n"
        "first-example  holds  TIME  TIME  exact  exact  sum 2, add 1\n"
        "sum-10  holds  TIME  TIME  reduction  0.13  sum 2, add 1\n"
        "\n"
        "2 cases held, 0 did not, 0 unsupported, in TIME\n",
    )
    ledger = read_ledger(path)
    assert sorted(ledger.cases) == ["first-example", "sum-10"]
    assert ledger.environment.platform == jax.default_backend()
    assert ledger.cases["sum-10"].figures.keys() == {"cached_s"}
    assert ledger.cases["sum-10"].counts() == {"sum": 2, "add": 1}


def test_a_case_that_fails_is_shown_and_the_others_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = suite_case._on_host
    monkeypatch.setattr(suite_case, "_on_host", lambda value: real(value) * 2)
    assert main(["suite", "first-example", "max"]) == 1
    apart = "8,388,608 ulps apart; it must be equal to the bit"
    assert capsys.readouterr().out.splitlines()[-3:-1] == [
        f"  first-example: the value is 12, not 6, {apart}",
        f"  max: the value is 0.999993205, not 0.499996603, {apart}",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing-*"], "jitcount suite: error: no case is called nothing-*"),
        (
            ["exp", "sum-1O"],
            (
                "jitcount suite: error: no case is called sum-1O; "
                "did you mean sum-1, sum-10 or sum-100?"
            ),
        ),
        (
            ["--processes", "-5"],
            "jitcount suite: error: argument --processes: '-5' is not a count of 1 or more",
        ),
        (
            ["--processes=0"],
            "jitcount suite: error: argument --processes: '0' is not a count of 1 or more",
        ),
        (
            ["--ledger", "{}/foreign.json", "exp"],
            "jitcount suite: error: {}/foreign.json: is not a jitcount ledger; it is left as it is",
        ),
    ],
)
def test_bad_usage_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    (tmp_path / "foreign.json").write_text("{}")
    with pytest.raises(SystemExit) as raised:
        main(["suite", *(argument.format(tmp_path) for argument in arguments)])
    assert raised.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1] == message.format(tmp_path)


LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F"}
"""127.0.0.1 as Linux writes it, of a socket for IPv4 and of one for IPv6."""


def addresses_listened_at(pids: list[int]) -> set[str]:
    held = set()
    for pid in pids:
        for opened in Path(f"/proc/{pid}/fd").glob("*"):
            with contextlib.suppress(OSError):  # it has been closed
                held.add(opened.readlink().name)
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, address, _, state, *_, inode = line.split()[:10]
            if state == "0A" and f"socket:[{inode}]" in held:
                found.add(address.partition(":")[0])
    return found


def children(pid: int) -> list[int]:
    found = []
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread has ended
            found += [int(child) for child in listed.read_text().split()]
    return found


@pytest.mark.thorough
def test_several_processes_compute_together_over_loopback_and_one_speaks(tmp_path: Path) -> None:
    listened_at = set()
    with running(
        "-m", "jitcount", "suite", "--processes", "2", "--ledger", "both.json",
        "sharded-sum-whole", "sharded-sum",
        cwd=tmp_path, env={"JAX_NUM_CPU_DEVICES": "1", "JAX_PLATFORMS": "cpu"},
    ) as process:  # fmt: skip
        while process.poll() is None:
            if sys.platform == "linux":
                listened_at |= addresses_listened_at(children(process.pid))
            time.sleep(0.02)
        stdout, stderr = process.communicate()
    assert process.returncode == 0, stderr
    assert stdout.count("2 cases held, 0 did not, 0 unsupported") == 1
    assert listened_at <= LOOPBACK
    if sys.platform == "linux":
        assert listened_at  # they do listen
    where = read_ledger(tmp_path / "both.json").environment
    assert (where.process_count, where.device_count) == (2, 2)
