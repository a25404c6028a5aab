"""``jitcount init``: sessions and a workflow that run a project's tests on every backend.

What is written belongs to the project from then on, so it is small, and nothing of it is jitcount's
own but the ledgers. A file that is there is never changed: where there is a noxfile, the sessions
are printed instead.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jitcount._cli.arguments import end_help
from jitcount._cli.streams import UsageError, show
from jitcount._text import one_line

if TYPE_CHECKING:
    import argparse


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What ``jitcount init`` was asked to do: it has no options."""


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``jitcount init``."""
    end_help(
        parser,
        "jitcount init",
        "jitcount init > sessions.py  # where there is a noxfile.py: what to add to it",
        codes="0 good, 2 bad usage: there is no project here",
    )


def options(asked: argparse.Namespace) -> Options:  # noqa: ARG001 (it has none)
    """The options of ``jitcount init``."""
    return Options()


def main(options: Options) -> int:  # noqa: ARG001
    """Write what is not there yet, and say what to do next on stderr."""
    from jitcount._show.stderr import StderrWriter

    folder = Path.cwd()
    project = read_project(folder)
    stderr = StderrWriter()
    try:
        noxfile, workflow = folder / "noxfile.py", folder / ".github/workflows/jitcount.yml"
        if noxfile.exists():
            show(sessions_of(project))
            stderr.write("noxfile.py is there and stays as it is: add to it what is printed above")
        else:
            _write_new(noxfile, f"{_HEAD}{sessions_of(project)}\n")
            stderr.write("wrote noxfile.py")
        if workflow.exists():
            stderr.write(".github/workflows/jitcount.yml is there and stays as it is")
        elif not (folder / ".git").exists():
            stderr.write(
                "wrote no workflow: GitHub reads those of a repository, which begins elsewhere"
            )
        else:
            workflow.parent.mkdir(parents=True, exist_ok=True)
            _write_new(workflow, workflow_of(project))
            stderr.write("wrote .github/workflows/jitcount.yml")
    except OSError as error:
        where = error.filename or folder
        raise UsageError(f"{where}: cannot be written: {error.strerror}") from None
    for line in advice_for(project):
        stderr.write(line)
    return 0


def _write_new(path: Path, text: str) -> None:
    with path.open("x", encoding="utf-8", newline="\n") as file:
        file.write(text)


# --- The project ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Project:
    """What sessions need to know of a project."""

    requirements: tuple[str, ...]
    """What pip is told to install, besides JAX."""

    group: str
    """The dependency group with what tests need; empty without one."""

    tests: str
    """The folder of the tests; empty if pytest is to find them."""

    benchmarks: str
    """The folder of the benchmarks; empty without one."""

    jitcount: str
    """How jitcount is installed: as it is here."""

    branch: str
    """The branch whose pushes are tested."""


# Where projects keep what their tests need, by the names that they most often have.
_FOR_TESTS = ("test", "tests", "testing", "dev", "development")


def read_project(folder: Path) -> Project:
    """Read what a folder says of its project.

    Raises:
        UsageError: it has none, or one that cannot be read.
    """
    about, path = dict[str, Any](), folder / "pyproject.toml"
    try:
        if path.exists():
            about = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {one_line(str(error))}") from None
    is_package = bool({"project", "build-system"} & set(about)) or (folder / "setup.py").exists()
    lists = [
        name
        for name in _lists_of_requirements(folder)
        if name != "requirements.txt" or not is_package
    ]
    if not (is_package or lists or about):
        raise UsageError(
            "there is no project here: no pyproject.toml, setup.py or requirements.txt; "
            "run it in the folder that has one"
        )
    extras = about.get("project", {}).get("optional-dependencies", {})
    extra = next((name for name in _FOR_TESTS if name in extras), "")
    itself = ["-e", f".[{extra}]" if extra else "."] if is_package else []
    return Project(
        requirements=(*itself, *(word for name in lists for word in ("-r", name))),
        group=next((name for name in _FOR_TESTS if name in about.get("dependency-groups", {})), ""),
        tests=next((name for name in ("tests", "test") if (folder / name).is_dir()), ""),
        benchmarks=next((n for n in ("benchmarks", "bench") if (folder / n).is_dir()), ""),
        jitcount=_jitcount(),
        branch=_branch(folder),
    )


def _lists_of_requirements(folder: Path) -> list[str]:
    names = ["requirements.txt"]
    names += [f"requirements{sep}{what}.txt" for what in _FOR_TESTS for sep in "-_"]
    names += [f"requirements/{what}.txt" for what in _FOR_TESTS]
    return [name for name in names if (folder / name).is_file()]


def _jitcount() -> str:
    from importlib import metadata

    from jitcount._releases.requirements import origin_of

    try:
        url = origin_of(metadata.distribution("jitcount")).url
    except metadata.PackageNotFoundError:
        url = ""
    return f"jitcount @ {url}" if url else "jitcount"


def _branch(folder: Path) -> str:
    """The branch that others start from, as git knows it; ``main`` if it does not."""
    try:
        head = (folder / ".git/refs/remotes/origin/HEAD").read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return "main"
    found = re.fullmatch(r"ref: refs/remotes/origin/([\w./-]+)\s*", head)
    return found[1] if found else "main"


# --- What is written ------------------------------------------------------------------------------

_HEAD = '''"""The tests and benchmarks on each backend of JAX; `nox -l` lists the sessions."""

'''

_SESSIONS = '''import shutil
from pathlib import Path

import nox

nox.options.default_venv_backend = "uv|virtualenv"

RESULTS = Path("jax-results")  # ledgers of the tests, figures of the benchmarks
JITCOUNT = @JITCOUNT@

# Of each backend, what brings it and what JAX_PLATFORMS calls it.
BACKENDS = {
    "cpu": ("jax", "cpu"),
    "gpu": ("jax[cuda12]", "cuda"),
    "tpu": ("jax[tpu]", "tpu"),
}


def run_pytest(session: nox.Session, backend: str, *arguments: str) -> None:
    """Run pytest on a backend; without its device fail before any test runs."""
    if backend == "gpu" and not shutil.which("nvidia-smi"):
        session.error("no NVIDIA driver is here: nothing was installed or run")
    RESULTS.mkdir(exist_ok=True)
    jax, platform = BACKENDS[backend]
@INSTALL@    session.install(jax, JITCOUNT, "pytest", "pytest-benchmark")
    env = {"JAX_PLATFORMS": platform}  # nothing else is used, whatever is missing
    session.run("python", "-c", "import jax; print(jax.devices())", env=env)
    session.run("pytest", *arguments, env=env)


def add_sessions(backend: str) -> None:
    """Add the sessions of a backend."""

    @nox.session(name=f"tests-{backend}", default=backend == "cpu")
    def tests(session: nox.Session) -> None:
        """Run the tests, and keep what they compiled."""
        ledger = f"--compile-ledger={RESULTS}/tests-{backend}.json"
        paths = @TESTS@
        run_pytest(session, backend, *paths, ledger, "--benchmark-skip")

    @nox.session(name=f"bench-{backend}", default=False)
    def bench(session: nox.Session) -> None:
        """Run the benchmarks."""
        figures = f"--benchmark-json={RESULTS}/bench-{backend}.json"
        paths = session.posargs or [@BENCHMARKS@]
        run_pytest(session, backend, *paths, "--benchmark-only", figures)


for _backend in BACKENDS:
    add_sessions(_backend)


@nox.session(default=False)
def compare(session: nox.Session) -> None:
    """Compare what the tests compiled on each backend; fail if that differs."""
    session.install(JITCOUNT)
    ledgers = sorted(map(str, RESULTS.glob("tests-*.json")))
    session.run("jitcount", "compare", *ledgers)'''


def sessions_of(project: Project) -> str:
    """The sessions of a project, as Python."""
    lines = []
    if project.group:
        lines += [
            'project = nox.project.load_toml("pyproject.toml")',
            f'session.install(*nox.project.dependency_groups(project, "{project.group}"))',
        ]
    if project.requirements:
        lines.append(f"session.install({', '.join(map(_quoted, project.requirements))})")
    tests = f'session.posargs or ["{project.tests}"]' if project.tests else "session.posargs"
    return (
        _SESSIONS.replace("@JITCOUNT@", _quoted(project.jitcount))
        .replace("@INSTALL@", "".join(f"    {line}\n" for line in lines))
        .replace("@TESTS@", tests)
        .replace("@BENCHMARKS@", f'"{project.benchmarks or "benchmarks"}"')
    )


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


_WORKFLOW = """\
# The tests and benchmarks on each backend, then a comparison of what the tests compiled on them.
# The repository variable JAX_BACKENDS lists the backends, as JSON: ["cpu", "gpu", "tpu"]. A runner
# of your own takes a job if it has the backend's name as its label. Pull requests run on the CPU
# alone: a stranger's code must not run on your own hardware.
name: jitcount

on:
  push:
    branches: [@BRANCH@]
  pull_request:
  workflow_dispatch:

permissions: {}

concurrency:
  group: jitcount-${{ github.ref }}
  cancel-in-progress: false # a run that uses a device must end cleanly

jobs:
  backend:
    name: ${{ matrix.backend }}
    strategy:
      fail-fast: false
      matrix:
        backend: ${{ fromJSON(@OWN@ && vars.JAX_BACKENDS || '["cpu"]') }}
    runs-on: ${{ matrix.backend == 'cpu' && 'ubuntu-24.04' || matrix.backend }}
    permissions:
      contents: read # to check the repository out
    env:
      BACKEND: ${{ matrix.backend }}
    steps:
      - name: Check out
        uses: @CHECKOUT@
        with:
          persist-credentials: false
      - name: Set up Python
        uses: @PYTHON@
        with:
          python-version: "3.12"
      - name: Test@BENCHES@
        run: |
          python -m pip install "nox[uv]"
          python -m nox -s "tests-$BACKEND"@BENCH@
      - name: Keep the results
        if: always()
        uses: @UPLOAD@
        with:
          name: results-${{ matrix.backend }}
          path: jax-results/

  compare:
    name: compare
    needs: backend
    if: ${{ !cancelled() && @OWN@ && vars.JAX_BACKENDS != '' }}
    runs-on: ubuntu-24.04
    permissions:
      contents: read # to check the repository out
    steps:
      - name: Check out
        uses: @CHECKOUT@
        with:
          persist-credentials: false
      - name: Set up Python
        uses: @PYTHON@
        with:
          python-version: "3.12"
      - name: Fetch the results
        uses: @DOWNLOAD@
        with:
          pattern: results-*
          path: jax-results
          merge-multiple: true
      - name: Compare
        run: |
          python -m pip install "nox[uv]"
          python -m nox -s compare
"""

# Each action is one commit: those of this project's own workflows.
_ACTIONS = {
    "@CHECKOUT@": "actions/checkout@08c6903cd8c0fde910a37f88322edcfb5dd907a8 # v5.0.0",
    "@PYTHON@": "actions/setup-python@e797f83bcb11b83ae66e0230d6156d7c80228e7c # v6.0.0",
    "@UPLOAD@": "actions/upload-artifact@b7c566a772e6b6bfb58ed0dc250532a479d7789f # v6.0.0",
    "@DOWNLOAD@": "actions/download-artifact@37930b1c2abaa49bbe596cd826c3c89aef350131 # v7.0.0",
}


def workflow_of(project: Project) -> str:
    """The workflow of a project, as YAML."""
    text = _WORKFLOW.replace("@BRANCH@", project.branch)
    text = text.replace("@OWN@", "github.event_name != 'pull_request'")
    text = text.replace("@BENCHES@", " and benchmark" if project.benchmarks else "")
    text = text.replace("@BENCH@", ' "bench-$BACKEND"' if project.benchmarks else "")
    for mark, action in _ACTIONS.items():
        text = text.replace(mark, action)
    return text


def advice_for(project: Project) -> list[str]:
    """What to do next, and what is not there yet."""
    then = "then tests-gpu or tests-tpu on a machine with that device, and compare"
    lines = [
        f'next: python -m pip install "nox[uv]" && python -m nox -s tests-cpu; {then}',
        "jax-results/ holds what they find: leave it out of the repository (.gitignore)",
    ]
    if not project.benchmarks:
        lines.append(
            "bench-cpu and the like run pytest-benchmark in benchmarks/, which is not there yet"
        )
    if "file:" in project.jitcount:
        lines.append(
            "jitcount is installed from a folder of this machine, and so it says in JITCOUNT: "
            "other machines need another place there"
        )
    return lines
