import contextlib
import sys
import sysconfig
import types
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import jitcount
from jitcount._observe import call_site
from tests.helpers import python

SCRIPTS = Path(sysconfig.get_path("scripts")).name
X = np.ones(3, np.float32)
HERE = Path(__file__)


@jax.jit
def step(x: jax.Array) -> jax.Array:
    return 2 * x


def line_of(text: str) -> int:
    """The number of the one line in this file that ends in a comment with that text."""
    lines = HERE.read_text().splitlines()
    (number,) = [n for n, line in enumerate(lines, 1) if line.endswith(f"# {text}")]
    return number


def site_in(directory: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(directory)
    with jitcount.record() as log:
        step(X)  # the line
    return log.compiles[0].call_site


def test_names_the_users_line_relative_to_where_the_program_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = line_of("the line")
    assert site_in(HERE.parent, monkeypatch) == f"test_call_site.py:{line} in site_in"
    jax.clear_caches()
    site = site_in(HERE.parents[1], monkeypatch)
    assert Path(site) == Path(f"_observe/test_call_site.py:{line} in site_in")


def test_names_the_file_alone_when_it_is_elsewhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    line = line_of("the line")
    assert site_in(tmp_path, monkeypatch) == f"test_call_site.py:{line} in site_in"


class Trainer:
    def run(self) -> None:
        def inner() -> None:
            step(X)

        inner()


def test_names_methods_and_inner_functions_by_their_path() -> None:
    with jitcount.record() as log:
        Trainer().run()
    assert log.compiles[0].call_site.endswith(" in Trainer.run.inner")


def test_the_caller_of_cache_independent_count_is_the_user() -> None:
    with jitcount.record() as log:
        jitcount.cache_independent_count(X, X)
    assert {c.call_site.partition(" in ")[2] for c in log.compiles} == {
        "test_the_caller_of_cache_independent_count_is_the_user"
    }


def run(tmp_path: Path, *arguments: str, **files: str) -> str:
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text)
    done = python(*arguments, cwd=tmp_path)
    assert done.stderr == ""
    return done.stdout.strip()


PROGRAM = """
import jax, jitcount, numpy as np
def main():
    with jitcount.record() as log:
        jax.jit(lambda x: 2 * x)(np.ones(3))
    print(log.compiles[0].call_site)
main()
"""


def test_in_a_script(tmp_path: Path) -> None:
    assert run(tmp_path, "train.py", train=PROGRAM) == "train.py:5 in main"


def test_in_a_module_run_with_m(tmp_path: Path) -> None:
    assert run(tmp_path, "-m", "train", train=PROGRAM) == "train.py:5 in main"


def test_in_a_command_line(tmp_path: Path) -> None:
    assert run(tmp_path, "-c", PROGRAM) == "<string>:5 in main"


@pytest.mark.parametrize(
    ("filename", "owner"),
    [
        ("/home/me/train.py", "user"),
        ("<stdin>", "user"),
        ("<python-input-0>", "user"),
        ("/home/me/.venv/lib/python3.11/site-packages/jaxopt/_src/base.py", "library"),
        ("<ipython-input-3-abc>", "user"),
        ("/tmp/ipykernel_1/123.py", "user"),  # noqa: S108
        (f"{sysconfig.get_path('scripts')}/jitcount", "library"),
        (f"{sysconfig.get_path('scripts')}/../{SCRIPTS}/jitcount", "library"),
        ("<frozen runpy>", "passed over"),
        ("<@beartype(f) at 0x1>", "passed over"),
        ("/home/me/.venv/lib/python3.11/site-packages/optax/_src/base.py", "library"),
        ("/home/me/.venv/lib/python3.11/site-packages/jaxtyping/_decorator.py", "passed over"),
        (jax.__file__, "passed over"),
        (contextlib.__file__, "passed over"),
        (call_site.__file__, "passed over"),
    ],
)
def test_whose_code_a_file_is(filename: str, owner: str) -> None:
    assert call_site.owner_of(filename) == owner


def test_a_stack_without_anyone_is_unknown() -> None:
    assert call_site.sites_in(None) == ("unknown", "")


def test_a_cell_of_a_notebook_is_named_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = "/tmp/ipykernel_1/371926069.py"  # noqa: S108
    compiler = types.SimpleNamespace(_filename_map={cell: 2})
    shell = types.SimpleNamespace(compile=compiler)
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    code = (
        "def f():\n    return step(X[:1])\nwith jitcount.record() as log:\n    f()\n    step(X[:2])"
    )
    namespace: dict[str, Any] = {"jitcount": jitcount, "step": step, "X": X}
    exec(compile(code, cell, "exec"), namespace)  # noqa: S102
    sites = [str(compiled.call_site) for compiled in namespace["log"].compiles]
    assert sites == ["In [2], line 2 in f", "In [2], line 5"]
