"""``jitcount init``: what it writes is run here as a project would."""

import ast
import importlib.util
import re
import shutil
from pathlib import Path

import pytest
import yaml

from jitcount._cli import init
from jitcount._cli.main import main
from tests.expected import expect
from tests.helpers import ROOT, Finished, python

PYPROJECT = """
[project]
name = "mine"
version = "1"
optional-dependencies.dev = ["numpy"]
[dependency-groups]
test = ["numpy"]
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with tests, in a repository."""
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    (tmp_path / ".git").mkdir()
    (tmp_path / "tests").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(init, "_jitcount", lambda: "jitcount")
    return tmp_path


def test_it_writes_both_files_and_says_what_to_do_next(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init"]) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    expect(
        printed.err.splitlines(),
        [
            "wrote noxfile.py",
            "wrote .github/workflows/jitcount.yml",
            (
                'next: python -m pip install "nox[uv]" && python -m nox -s tests-cpu; then '
                "tests-gpu or tests-tpu on a machine with that device, and compare"
            ),
            "jax-results/ holds what they find: leave it out of the repository (.gitignore)",
            ("bench-cpu and the like run pytest-benchmark in benchmarks/, which is not there yet"),
        ],
    )
    assert (project / "noxfile.py").exists()
    assert (project / ".github/workflows/jitcount.yml").exists()


def test_it_never_overwrites_and_prints_the_sessions_instead(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workflow = project / ".github/workflows/jitcount.yml"
    workflow.parent.mkdir(parents=True)
    for path in project / "noxfile.py", workflow:
        path.write_text("mine\n")
    assert main(["init"]) == 0
    assert [path.read_text() for path in (project / "noxfile.py", workflow)] == ["mine\n"] * 2
    printed = capsys.readouterr()
    names = {n.name for n in ast.walk(ast.parse(printed.out)) if isinstance(n, ast.FunctionDef)}
    assert names == {"run_pytest", "add_sessions", "tests", "bench", "compare"}
    assert printed.err.splitlines()[:2] == [
        "noxfile.py is there and stays as it is: add to it what is printed above",
        ".github/workflows/jitcount.yml is there and stays as it is",
    ]


def installs(text: str) -> list[str]:
    return re.findall(r"session\.install\((.*)\)", text)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {"pyproject.toml": PYPROJECT},
            ['*nox.project.dependency_groups(project, "test")', '"-e", ".[dev]"'],
        ),
        ({"pyproject.toml": '[project]\nname = "x"\n'}, ['"-e", "."']),
        ({"pyproject.toml": "[tool.x]\n"}, []),
        ({"setup.py": "", "requirements.txt": ""}, ['"-e", "."']),
        (
            {"requirements.txt": "", "requirements-dev.txt": ""},
            ['"-r", "requirements.txt", "-r", "requirements-dev.txt"'],
        ),
    ],
)
def test_sessions_install_what_the_project_says(
    tmp_path: Path, files: dict[str, str], expected: list[str]
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    found = installs(init.sessions_of(init.read_project(tmp_path)))
    assert found[:-2] == expected
    assert found[-2:] == ['jax, JITCOUNT, "pytest", "pytest-benchmark"', "JITCOUNT"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            None,
            (
                "jitcount init: error: there is no project here: no pyproject.toml, setup.py or "
                "requirements.txt; run it in the folder that has one"
            ),
        ),
        (
            "[project",
            (
                "jitcount init: error: {}/pyproject.toml: cannot be read: "
                "Expected ']' at the end of a table declaration (at end of document)"
            ),
        ),
    ],
)
def test_without_a_project_it_writes_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str | None,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    if text is not None:
        (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(SystemExit) as raised:
        main(["init"])
    assert raised.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1] == message.format(tmp_path)
    assert not (tmp_path / "noxfile.py").exists()


def test_a_part_of_a_repository_gets_no_workflow(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / ".git").rmdir()
    assert main(["init"]) == 0
    assert not (project / ".github").exists()
    said = "wrote no workflow: GitHub reads those of a repository, which begins elsewhere"
    assert capsys.readouterr().err.splitlines()[1] == said


def test_the_branch_is_the_one_that_git_knows(project: Path) -> None:
    head = project / ".git/refs/remotes/origin/HEAD"
    assert init.read_project(project).branch == "main"
    head.parent.mkdir(parents=True)
    head.write_text("ref: refs/remotes/origin/master\n")
    assert init.read_project(project).branch == "master"


def test_the_workflow_is_sound_and_has_the_actions_of_our_own(project: Path) -> None:
    (project / "benchmarks").mkdir()
    text = init.workflow_of(init.read_project(project))
    loaded = yaml.safe_load(text)
    backend, compare = loaded["jobs"]["backend"], loaded["jobs"]["compare"]
    assert "github.event_name != 'pull_request'" in backend["strategy"]["matrix"]["backend"]
    assert compare["needs"] == "backend"
    runs = [step["run"] for job in (backend, compare) for step in job["steps"] if "run" in step]
    assert [run.splitlines()[-1] for run in runs] == [
        'python -m nox -s "tests-$BACKEND" "bench-$BACKEND"',
        "python -m nox -s compare",
    ]
    ours = "".join(path.read_text() for path in (ROOT / ".github/workflows").glob("*.yml"))
    used = set(re.findall(r"uses: (.*)", text))
    assert len(used) == 4
    assert used <= set(re.findall(r"uses: (.*)", ours))
    assert not re.search("@[A-Z]+@", text)


@pytest.mark.skipif(not importlib.util.find_spec("ruff"), reason="ruff is of the session lint")
def test_what_is_written_is_formatted_and_lint_clean(project: Path) -> None:
    main(["init"])
    for words in ("check",), ("format", "--check"):
        done = python("-m", "ruff", *words, "--isolated", "noxfile.py", cwd=project)
        assert done.returncode == 0, done.stdout


# --- Run ------------------------------------------------------------------------------------------

TEST = """
import jax, numpy as np

def test_double():
    assert jax.jit(lambda x: 2 * x)(np.float32(2)) == 4
"""
BENCHMARK = """
def test_add(benchmark):
    assert benchmark(lambda: 1 + 1) == 2
"""


def nox_in(project: Path, *words: str) -> Finished:
    nox = ("-m", "nox", "--error-on-external-run")
    # pytest-benchmark measures nothing in a worker of pytest-xdist.
    alone = {"PYTEST_XDIST_WORKER": None, "PYTEST_XDIST_WORKER_COUNT": None}
    return python(*nox, *words, cwd=project, env={"NO_COLOR": "1", **alone})


@pytest.fixture
def with_tests(fake_uv: Path, project: Path) -> Path:
    (project / "tests" / "test_it.py").write_text(TEST)
    (project / "benchmarks").mkdir()
    (project / "benchmarks" / "test_add.py").write_text(BENCHMARK)
    main(["init"])
    return project


def test_the_sessions_of_the_cpu_run_and_leave_what_is_compared(with_tests: Path) -> None:
    done = nox_in(with_tests, "-s", "tests-cpu", "bench-cpu")
    assert done.returncode == 0, done.stderr
    results = with_tests / "jax-results"
    assert {path.name for path in results.iterdir()} == {"tests-cpu.json", "bench-cpu.json"}
    assert "[CpuDevice(id=0)" in done.stdout
    shutil.copy(results / "tests-cpu.json", results / "tests-tpu.json")
    compared = nox_in(with_tests, "-s", "compare")
    assert "0 differences; tests-cpu: 2 compiles in " in compared.stdout, compared.stderr


def test_one_ledger_is_nothing_to_compare(with_tests: Path) -> None:
    (with_tests / "jax-results").mkdir()
    (with_tests / "jax-results" / "tests-cpu.json").touch()
    done = nox_in(with_tests, "-s", "compare")
    assert done.returncode == 1
    assert "compare needs two ledgers or more" in done.stderr + done.stdout


def test_a_session_fails_loudly_without_its_device(with_tests: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    if shutil.which("nvidia-smi") is None:
        done = nox_in(with_tests, "-s", "tests-gpu")
        assert done.returncode == 1
        why = "no NVIDIA driver is here: nothing was installed or run"
        assert f"\nnox > Session tests-gpu aborted: {why}" in done.stderr
        assert "pip install" not in done.stderr
    if not any(Path("/dev").glob("accel*")) and not Path("/dev/vfio").exists():
        done = nox_in(with_tests, "-s", "bench-tpu")
        assert done.returncode == 1
        assert "Unable to initialize backend 'tpu'" in done.stderr + done.stdout
        assert "test_add" not in done.stdout
