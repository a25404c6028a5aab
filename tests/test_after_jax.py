"""What waits for JAX is called back once, and no import is the worse for it.

In processes of their own, with a package called ``jax`` that is loaded at once.
"""

from pathlib import Path

import pytest

from tests.helpers import python

WAITING = """
import importlib.util, inspect, logging, pathlib, sys

finders = list(sys.meta_path)
called = []

from jitcount._after_jax import after_import_of_jax

after_import_of_jax(lambda: called.append("first"))
after_import_of_jax(lambda: called.append("second"))
assert called == []
assert sys.meta_path != finders
"""


@pytest.fixture
def jax_here(tmp_path: Path) -> Path:
    (tmp_path / "jax").mkdir()
    (tmp_path / "jax" / "__init__.py").write_text("here = 1\n")
    return tmp_path


def run(jax_here: Path, code: str) -> None:
    done = python("-W", "error", "-c", WAITING + code, cwd=jax_here)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_all_who_wait_are_called_once_and_the_finders_are_as_before(jax_here: Path) -> None:
    run(
        jax_here,
        """
import jax
assert (jax.here, called) == (1, ["first", "second"])
assert sys.meta_path == finders
importlib.reload(jax)
assert called == ["first", "second"]
""",
    )


def test_who_comes_later_is_called_at_once(jax_here: Path) -> None:
    run(
        jax_here,
        """
import jax
after_import_of_jax(lambda: called.append("third"))
assert called[2:] == ["third"]
assert sys.meta_path == finders
""",
    )


def test_a_question_whether_jax_is_installed_changes_nothing(jax_here: Path) -> None:
    run(
        jax_here,
        """
for _ in range(2):
    spec = importlib.util.find_spec("jax")
    assert spec.origin == str(pathlib.Path("jax/__init__.py").resolve())
    assert spec.loader.get_source("jax") == "here = 1\\n"
assert called == []
import jax
assert called == ["first", "second"]
""",
    )


def test_jax_has_its_own_loader_as_ever(jax_here: Path) -> None:
    run(
        jax_here,
        """
import jax
assert isinstance(jax.__loader__, importlib.machinery.SourceFileLoader)
assert jax.__spec__.loader is jax.__loader__
assert inspect.getsource(jax) == "here = 1\\n"
""",
    )


def test_an_import_that_failed_can_be_tried_again(jax_here: Path) -> None:
    run(
        jax_here,
        """
init = pathlib.Path("jax/__init__.py")
init.write_text("raise RuntimeError('not today')")
try:
    import jax
except RuntimeError as error:
    assert str(error) == "not today"
assert (called, "jax" in sys.modules) == ([], False)
init.write_text("here = 'again'")
import jax
assert (jax.here, called) == ("again", ["first", "second"])
""",
    )


def test_where_jax_is_not_installed_its_import_says_so(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
sys.path = [place for place in sys.path if "site-packages" not in place]
try:
    import jax
except ModuleNotFoundError as error:
    assert str(error) == "No module named 'jax'"
assert called == []
""",
    )


def test_what_goes_wrong_in_a_callback_fails_nothing_and_can_be_logged(jax_here: Path) -> None:
    run(
        jax_here,
        """
class Lines(logging.Handler):
    def emit(self, line):
        called.append((line.getMessage(), line.exc_info[0].__name__))

logging.getLogger("jitcount").addHandler(Lines())
logging.getLogger("jitcount").setLevel("DEBUG")
after_import_of_jax(lambda: 1 / 0)
after_import_of_jax(lambda: called.append("last"))
import jax
assert jax.here == 1
assert called[-2:] == [("could not start with JAX", "ZeroDivisionError"), "last"]
""",
    )


def test_a_module_of_ours_that_imports_jax_is_there_before_anyone_is_called() -> None:
    done = python(
        "-W",
        "error",
        "-c",
        """
from jitcount._after_jax import after_import_of_jax

def use():
    from jitcount._registry import registry
    print("called, and there is", type(registry).__name__)

after_import_of_jax(use)
import jitcount._registry
""",
    )
    assert (done.stdout, done.stderr) == ("called, and there is Registry\n", "")


def test_who_no_longer_waits_is_not_called(jax_here: Path) -> None:
    run(
        jax_here,
        """
from jitcount._after_jax import forget

third = lambda: called.append("third")
after_import_of_jax(third)
forget(third)
import jax
forget(third)
assert called == ["first", "second"]
""",
    )
