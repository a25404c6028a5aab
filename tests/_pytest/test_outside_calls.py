"""What is compiled while pytest collects and in fixtures: all rows together are JAX's own total."""

import json
import os
import re
from pathlib import Path

import pytest

from tests._pytest.reading import whole
from tests.helpers import Finished, Project

# Counts JAX's own lines about compiles, in each process.
COUNTS_JAX = """
import logging, os
from pathlib import Path

os.environ["JAX_LOG_COMPILES"] = "1"

class Lines(logging.Handler):
    def emit(self, record):
        if record.getMessage().startswith("Finished XLA compilation"):
            with Path(__file__).with_name("jax.txt").open("a") as file:
                file.write(f"{record.getMessage()}\\n")

logger = logging.getLogger("jax._src.dispatch")
logger.addHandler(Lines())
logger.propagate = False

import jax, numpy as np, pytest

def compiled(length):
    jax.jit(lambda x: 2 * x)(np.ones(length, np.float32))
"""

CONFTEST = (
    COUNTS_JAX
    + """
compiled(3)

@pytest.fixture(scope="session")
def weights():
    compiled(4); compiled(5)
    yield
    compiled(6)

@pytest.fixture
def late(request):
    compiled(7)
    request.addfinalizer(lambda: compiled(8))
    request.getfixturevalue("inner")
    compiled(9)

@pytest.fixture
def inner(weights):
    compiled(10)
    yield
    compiled(11)

def pytest_runtest_logfinish():
    compiled(12)
"""
)

TESTS = """
from conftest import compiled

CASES = [compiled(20), compiled(21)]

def setup_module():
    compiled(22)

def test_one(late):
    compiled(23)

@pytest.mark.no_compiles
def test_none(weights, inner):
    pass

class TestClass:
    @pytest.fixture(scope="class")
    @classmethod
    def mine(cls):
        compiled(24)
        yield
        compiled(25)

    def test_two(self, mine, request):
        request.getfixturevalue("late")
        compiled(26)

def test_fails(broken):
    pass

@pytest.fixture
def broken():
    compiled(27)
    raise ValueError
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.write("conftest.py", CONFTEST, head="")
    project.write("test_it.py", TESTS, head="import pytest\n")
    return project


def in_ledger(project: Project) -> dict[str, list[int]]:
    """By entry, the lengths of the arrays that it was compiled for."""
    cases = json.loads((project.root / "ledger.json").read_text())["cases"]
    return {
        entry: [int(c["signature"][0][8:-1]) for c in case.get("compiles", [])]
        for entry, case in cases.items()
    }


def of_jax(project: Project) -> int:
    """How many compiles JAX has logged, in all processes."""
    return len((project.root / "jax.txt").read_text().splitlines())


def rows(done: Finished) -> list[str]:
    """The table with a row for each place."""
    table = whole(done.stdout).partition("where   compiles   time\n")[2]
    return re.split(r"\n\d+ ", table)[0].splitlines()[1:]


EXPECTED = {
    "test_it.py::test_one": [23],
    "test_it.py::test_none": [],
    "test_it.py::TestClass::test_two": [7, 10, 9, 26],
    "while collecting conftest files": [3],
    "while collecting test_it.py": [20, 21],
    "in fixture setup_module (module)": [22],
    "in fixture weights (session)": [4, 5, 6],
    "in fixture late (function)": [7, 9, 8, 8],
    "in fixture inner (function)": [10, 11, 10, 11, 11],
    "in hooks": [12, 12, 12, 12],
    "in fixture mine (class)": [24, 25],
    "in fixture broken (function)": [27],
}


def test_each_compile_is_in_one_row_and_their_sum_is_jaxs_own(project: Project) -> None:
    done = project.run("--compiles", "--compile-ledger=ledger.json", "--compile-isolation=none")
    assert "3 passed, 1 error" in done.stdout, done.stdout + done.stderr
    found = in_ledger(project)
    assert found == EXPECTED
    assert sum(map(len, found.values())) == of_jax(project) == 28
    shown = rows(done)
    assert [row for row in shown if not row.startswith("  ")] == [
        "in 3 tests   5   TIME",
        "while collecting   3   TIME",
        "in fixtures   16   TIME",
        "in hooks   4   TIME",
        "all that JAX compiled   28   TIME",
    ]
    # The parts of a sum are ordered by their seconds.
    assert sorted(row for row in shown if row.startswith("  ")) == [
        "  broken (function)   1   TIME",
        "  conftest files   1   TIME",
        "  inner (function)   5   TIME",
        "  late (function)   4   TIME",
        "  mine (class)   2   TIME",
        "  setup_module (module)   1   TIME",
        "  test_it.py   2   TIME",
        "  weights (session)   3   TIME",
    ]


def test_that_caches_are_cleared_changes_no_sum(project: Project) -> None:
    project.run("--compile-ledger=ledger.json")
    assert sum(map(len, in_ledger(project).values())) == of_jax(project)


def test_a_run_that_ends_early_has_the_last_fixtures(project: Project) -> None:
    """pytest then tears them down as the session ends."""
    project.write("test_it.py", TESTS.replace("compiled(23)", "0/0"), head="import pytest\n")
    project.run("-x", "--compile-ledger=ledger.json", "--compile-isolation=none")
    found = in_ledger(project)
    assert found["in fixture weights (session)"] == [4, 5, 6]
    assert sum(map(len, found.values())) == of_jax(project)


def test_a_test_that_is_interrupted_has_what_it_compiled(project: Project) -> None:
    text = "from conftest import compiled\ndef test_it(): compiled(3); raise KeyboardInterrupt\n"
    project.write("conftest.py", COUNTS_JAX, head="")
    project.write("test_it.py", text, head="")
    done = project.run("--compiles", "--compile-ledger=ledger.json")
    assert done.returncode == 2
    assert in_ledger(project) == {"test_it.py::test_it": [3]}
    assert of_jax(project) == 1


@pytest.mark.thorough
def test_workers_each_collect_and_all_of_it_is_counted(project: Project) -> None:
    pytest.importorskip("xdist")
    done = project.run("-n2", "--compiles", "--compile-ledger=ledger.json")
    assert "3 passed, 1 error" in done.stdout, done.stdout + done.stderr
    found = in_ledger(project)
    # The process above the workers reads conftest files, too.
    assert found["while collecting conftest files"] == [3, 3, 3]
    assert sorted(found["while collecting test_it.py"]) == [20, 20, 21, 21]
    assert sum(map(len, found.values())) == of_jax(project)
    assert "while collecting, in 3 processes" in done.stdout
    assert re.search(
        r" compiles took .* in 2 workers, and the run .*; 2 of 3 tests compile$",
        done.stdout,
        re.MULTILINE,
    )


# As pytest-rerunfailures does it: a report of the first time is logged as a rerun, and the one of
# its teardown is not.
RERUNS = """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    for time in 1, 2:
        for report in runtestprotocol(item, log=False, nextitem=nextitem):
            if report.failed and time == 1:
                report.outcome = "rerun"
            item.ihook.pytest_runtest_logreport(report=report)
            if report.outcome == "rerun":
                item._initrequest()
                break
        else:
            break
    return True
"""

RERUN = """
import pytest
from conftest import compiled

@pytest.fixture
def rng():
    compiled(3)

times = []

def test_it(rng):
    times.append(len(times))
    compiled(4 + len(times))
    assert len(times) == 2
"""


@pytest.mark.parametrize("workers", [(), pytest.param(("-n1",), marks=pytest.mark.thorough)])
def test_what_a_test_has_compiled_before_it_was_run_again_is_kept_apart(
    project: Project, workers: tuple[str, ...]
) -> None:
    if workers:
        pytest.importorskip("xdist")
    project.write("conftest.py", COUNTS_JAX + RERUNS, head="")
    project.write("test_it.py", RERUN, head="")
    project.run(*workers, "--compiles", "--compile-ledger=ledger.json")
    found = in_ledger(project)
    assert found == {
        "test_it.py::test_it": [6],
        "in fixture rng (function)": [3, 3],
        "in tests, before a rerun": [5],
    }
    assert of_jax(project) == 4


FORKS = """
import json
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    hook, config = item.config.hook, item.config
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        for report in runtestprotocol(item, log=False, nextitem=nextitem):
            kept = hook.pytest_report_to_serializable(config=config, report=report)
            os.write(writer, json.dumps(kept).encode() + b"\\n")
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as sent:
        for line in sent:
            report = hook.pytest_report_from_serializable(config=config, data=json.loads(line))
            hook.pytest_runtest_logreport(report=report)
    os.waitpid(child, 0)
    return True
"""

FORKED = """
import pytest
from conftest import compiled

@pytest.fixture
def rng():
    compiled(3)
    yield
    compiled(4)

def test_one(rng):
    compiled(5)

def test_two(rng):
    compiled(6)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_what_forks_compile_in_fixtures_comes_with_their_reports(project: Project) -> None:
    project.write("conftest.py", COUNTS_JAX + FORKS, head="")
    project.write("test_it.py", FORKED, head="")
    project.run("--compile-ledger=ledger.json", "-W", "ignore:os.fork")
    assert in_ledger(project) == {
        "test_it.py::test_one": [5],
        "test_it.py::test_two": [6],
        "in fixture rng (function)": [3, 4, 3, 4],
    }
    assert of_jax(project) == 6


def test_values_of_the_user_are_left_out_there_too(project: Project) -> None:
    project.write("conftest.py", "", head="")
    project.write(
        "test_it.py",
        "import jax, numpy as np\n"
        "f = jax.jit(lambda x, secret: 2 * x, static_argnums=1)\n"
        "for secret in 'token one', 'token two': f(np.ones(3), secret)\n"
        "def test_it(): pass\n",
        head="",
    )
    project.run("--compile-ledger=ledger.json", "--compile-redact")
    text = (project.root / "ledger.json").read_text()
    assert "while collecting" in text
    assert "<redacted>" in text
    assert "token" not in text
