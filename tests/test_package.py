"""What holds for the package as a whole."""

import ast
import doctest
import importlib
import pickle
import pkgutil
import re
import shlex
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import jitcount
from jitcount._targets.installed import PLUGINS
from tests.helpers import ROOT, Finished, python

SOURCE = Path(jitcount.__file__).parent
MODULES = sorted(
    module.name for module in pkgutil.walk_packages(jitcount.__path__, prefix="jitcount.")
)


def run(code: str) -> Finished:
    return python("-W", "error", "-c", code)


def test_importing_initialises_no_backend_and_prints_nothing() -> None:
    done = run(
        "import jitcount\n"
        "from jax._src import xla_bridge\n"
        "assert not xla_bridge.backends_are_initialized()"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_importing_loads_no_library_that_only_printing_needs() -> None:
    done = run("import sys, jitcount; assert 'rich' not in sys.modules")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "module",
    [
        "jitcount",
        "jitcount_pytest",
        "jitcount_autostart",
        "jitcount._observe.call_site",
        "jitcount._ledger.environment",
    ],
)
def test_importing_does_not_import_jax(module: str) -> None:
    done = run(f"import sys, {module}; assert 'jax' not in sys.modules")
    assert (done.returncode, done.stderr) == (0, "")


def test_what_runs_before_the_users_program_does_not_import_numpy_either() -> None:
    done = run(
        "import sys, jitcount_autostart, jitcount_pytest\n"
        "import jitcount._cli.run, jitcount._pytest.run, jitcount._pytest.isolation\n"
        "print(sorted({'jax', 'ml_dtypes', 'numpy', 'rich'} & set(sys.modules)))"
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_what_few_want_is_not_imported_by_those_who_do_not() -> None:
    done = run(
        "import sys, numpy, jax, jitcount\n"
        "with jitcount.record() as log: jax.jit(lambda x: x + 1)(numpy.ones(3))\n"
        "assert log.compiles[0].causes\n"
        "rare = ('jitcount._profile.profiler', 'jitcount._targets.session', 'jitcount._show')\n"
        "print([name for name in sys.modules if name.startswith(rare)])"
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_recording_imports_nothing_of_jax_that_the_program_does_not() -> None:
    done = run(
        "import sys, numpy, jax, jitcount\n"
        "jax.jit(lambda x: x - 1)(numpy.ones(3))\n"
        "before = set(sys.modules)\n"
        "with jitcount.record() as log: jax.jit(lambda x: x + 1)(numpy.ones(3))\n"
        "assert log.compiles[0].causes\n"
        "print([name for name in set(sys.modules) - before if name.startswith('jax.')])"
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


# --- The public names, which are looked up when they are used


@pytest.mark.parametrize(
    "use",
    ["import jitcount; jitcount.record", "from jitcount import *"],
)
def test_a_name_is_there_however_it_is_asked_for(use: str) -> None:
    done = run(f"{use}\nimport sys, jitcount\nassert 'record' in vars(jitcount)")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_name_that_is_not_there_is_said_as_ever() -> None:
    with pytest.raises(AttributeError) as raised:
        jitcount.recrod  # type: ignore[attr-defined]  # noqa: B018
    assert str(raised.value) == "module 'jitcount' has no attribute 'recrod'"
    done = run("from jitcount import recrod")
    assert "ImportError: cannot import name 'recrod' from 'jitcount'" in done.stderr


def test_an_editor_is_shown_the_public_names_before_any_is_used() -> None:
    done = run("import jitcount; print(*dir(jitcount))")
    assert {*jitcount.__all__, "__version__"} <= set(done.stdout.split())


def test_type_checkers_read_the_names_where_they_are() -> None:
    (block,) = [
        node
        for node in ast.parse((SOURCE / "__init__.py").read_text()).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    read = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert read == {name: f"jitcount.{home}" for name, home in jitcount._HOMES.items()}
    assert sorted(read) == sorted(jitcount.__all__)


def test_a_class_can_be_pickled() -> None:
    names = [getattr(jitcount, name) for name in jitcount.__all__]
    classes = [each for each in names if isinstance(each, type)]
    assert {jitcount.Cause, jitcount.Compile, jitcount.RecompileError} < set(classes)
    for kind in classes:
        assert pickle.loads(pickle.dumps(kind)) is kind  # noqa: S301


def test_the_version_is_the_one_that_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert jitcount.__version__ == metadata.version("jitcount")

    def not_installed(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.delattr(jitcount, "__version__")
    monkeypatch.setattr(metadata, "version", not_installed)
    assert jitcount.__version__ == "0+unknown"
    monkeypatch.delattr(jitcount, "__version__")


# --- The history, which starts at the import

WARM_UP = """
import numpy as np
step = jax.jit(lambda x: 2 * x)
step(np.ones(3))
try:
    with jitcount.freeze():
        step(np.ones(5))
except jitcount.RecompileError as error:
    print(error.causes[0].kind)
"""


@pytest.mark.parametrize(
    "imports",
    [
        "import jitcount; import jax.numpy; import jax",
        "import jitcount, importlib.util; importlib.util.find_spec('jax'); import jax",
        "from jitcount import freeze; import jax, jitcount",
        "import jitcount._observe.values, jax; jitcount.record",
    ],
)
def test_what_is_compiled_after_the_import_is_known_later(imports: str) -> None:
    done = run(imports + WARM_UP)
    assert (done.stdout, done.stderr) == ("shape\n", "")


# --- What pip is told


@pytest.mark.parametrize(("platform", "extra"), [("tpu", "tpu"), ("cuda", "cuda12")])
def test_an_extra_installs_what_the_command_for_a_missing_compiler_does(
    platform: str, extra: str
) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pip, install, *requirements = shlex.split(PLUGINS[platform].command)
    assert (pip, install) == ("pip", "install")
    assert requirements == project["optional-dependencies"][extra]


# --- What holds in every module


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("name", jitcount.__all__)
def test_every_public_name_has_an_example(name: str) -> None:
    assert ">>>" in (getattr(jitcount, name).__doc__ or "")


def test_every_file_that_a_comment_or_docstring_names_is_there() -> None:
    place = re.compile(r"\b(?:benchmarks|tests|src)/[\w./-]*\w")
    files = (file for file in (ROOT / "src").rglob("*.py"))
    named = {named: file for file in files for named in place.findall(file.read_text())}
    assert "benchmarks/variants.py" in named
    assert {name: file for name, file in named.items() if not (ROOT / name).exists()} == {}
