"""The rooms and their walls: who may import whom, and who may know what is JAX's own.

Which rooms there are, and in which order, is read from the table in `docs/architecture.md`, which
is what a newcomer believes.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import jitcount
from tests.helpers import ROOT

SOURCE = Path(jitcount.__file__).parent
FILES = {file.relative_to(SOURCE).as_posix(): file.read_text() for file in SOURCE.rglob("*.py")}

# What stands beside the package: the doors of pytest and of JITCOUNT=1.
BESIDE = {file.name: file.read_text() for file in SOURCE.parent.glob("*.py")}


def room_of(path: str) -> str:
    return path.partition("/")[0].removesuffix(".py")


# --- The rooms on their page ----------------------------------------------------------------------

PAGE = (ROOT / "docs" / "architecture.md").read_text()


def rooms_in(page: str) -> list[str]:
    """The rooms of the table, from its first row to its last: left to right in the picture."""
    rows = re.findall(r"^\| (`src/jitcount/.*?) \|", page, re.MULTILINE)
    places = [place for row in rows for place in re.findall(r"`src/jitcount/([\w./]+)`", row)]
    return [room_of(place) for place in places]


def rooms_on_a_line(line: str) -> list[str]:
    """The rooms that data goes through in a line of the picture, one after the other."""
    words = re.findall(r"\b\w+\b", line.partition(":")[0])
    return [f"_{word}" for word in words if f"_{word}" in ROOMS]


ROOMS = rooms_in(PAGE)


def test_the_table_has_every_room_once_and_no_other() -> None:
    assert sorted(ROOMS) == sorted({room_of(path) for path in FILES} - {"__init__"})


def test_the_picture_goes_from_left_to_right() -> None:
    (picture,) = re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    first, second = map(rooms_on_a_line, picture.splitlines())
    assert first == ["_observe", "_explain", "_record", "_ledger", "_show"]
    assert first == sorted(first, key=ROOMS.index)
    assert second == ["_targets"]


def files_named_by(package: str, text: str) -> tuple[set[str], set[str]]:
    """The files of a package that its docstring names, and all that it has."""
    inside = (path.removeprefix(f"{package}/") for path in FILES if path.startswith(f"{package}/"))
    files = {room_of(path) for path in inside} - {"__init__"}
    words = set(re.findall(r"`(\w+)`", ast.get_docstring(ast.parse(text)) or ""))
    return files & words, files


def test_a_package_lists_all_of_its_files_or_points_to_one_or_two() -> None:
    docstrings = {
        path.removesuffix("/__init__.py"): files_named_by(path.removesuffix("/__init__.py"), text)
        for path, text in FILES.items()
        if path.endswith("/__init__.py")
    }
    assert "_jax" in docstrings
    assert {
        package: sorted(files - named)
        for package, (named, files) in docstrings.items()
        if len(named) > 2 and named != files
    } == {}


# --- Who may import whom --------------------------------------------------------------------------

DOORS = {
    ("_record/log.py", "_show"): "print(log) needs a table",
    ("_record/log.py", "_ledger"): "log.save(path) writes a ledger",
    ("_explain/compile.py", "_show"): "a notebook shows a compile",
    ("_ledger/comparison.py", "_show"): "a notebook shows a comparison",
    ("_emulate/result.py", "_show"): "print(emulation) needs one too",
    ("_emulate/error.py", "_show"): "the same",
    ("_tolerance/tolerance.py", "_show"): "and print(tolerance)",
    ("_record/record.py", "_show"): "who waits for a target's compiler may want a progress bar",
}


def imported_by(text: str) -> set[str]:
    """The rooms that a source text imports, also inside functions."""
    rooms = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module == "jitcount":
            rooms |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("jitcount."):
            rooms.add((node.module or "").split(".")[1])
        elif isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
            rooms |= {name[1] for name in names if name[0] == "jitcount" and name[1:]}
    return rooms


def to_the_right(path: str, text: str) -> set[tuple[str, str]]:
    """What a file imports from rooms that it must not know."""
    known = ROOMS[: ROOMS.index(room_of(path)) + 1]
    return {(path, other) for other in imported_by(text) if other not in known}


def test_each_room_knows_only_those_to_its_left() -> None:
    files = ((path, text) for path, text in FILES.items() if path != "__init__.py")
    assert set().union(*(to_the_right(path, text) for path, text in files)) == set(DOORS)


@pytest.mark.parametrize(
    "text",
    [
        "from jitcount._show.terminal import render",
        "from jitcount import _show",
        "import jitcount._show.terminal",
        "def f():\n    from jitcount._show import terminal",
    ],
)
def test_an_import_from_the_right_is_found(text: str) -> None:
    assert to_the_right("_observe/program.py", text) == {("_observe/program.py", "_show")}
    assert to_the_right("_suite/case.py", text) == set()


# --- Who may know what is JAX's own ---------------------------------------------------------------

# Modules without a promise.
PRIVATE_MODULES = ("jax._src", "jax.monitoring", "jaxlib")

# Fields of JAX's records and objects, as attributes or as the text of a `getattr`.
PRIVATE_FIELDS = {
    "_value_holders", "debug_info", "eqns", "fun_signature", "func_src_info", "jit_info",
    "trace_context",
}  # fmt: skip

# Public as the options of `jax.jit`; as attributes they are fields of JAX's record of them.
RECORDED_OPTIONS = {"static_argnames", "static_argnums"}

# In texts: names of events and of what comes with them, lines of its log, its own words for things.
PRIVATE_TEXTS = (
    "/jax/core/", "/jax/compilation_cache", "Compiling ", "PERSISTENT COMPILATION CACHE",
    "fun_name", "axis_env_state", "Unspecified", *PRIVATE_MODULES,
)  # fmt: skip

# What stands outside of `_jax/` all the same, and why it may.
EXCEPTIONS = {
    ("_ledger/environment.py", "text jaxlib"): "the name of a distribution, whose version is kept",
    ("_miscompiles/known.py", "text jaxlib"): "the name of a distribution, whose version is read",
    ("_releases/requirements.py", "text jaxlib"): "the same, which goes with JAX's own version",
    ("_observe/arguments.py", ".static_argnames"): "a field of our own UserCall",
    ("_observe/arguments.py", ".static_argnums"): "a field of our own UserCall",
    ("_observe/callers.py", ".f_locals"): "the frames of users' functions and of their libraries",
    ("_observe/wrappers.py", ".static_argnums"): "a field of our own JitCall",
    ("_try_calls/jitted_call.py", ".static_argnames"): "a field of our own JittedCall",
    ("_try_calls/measuring.py", ".static_argnames"): "the same",
    ("_observe/wrappers.py", ".f_locals"): "other libraries' frames, each known by its name",
}


def private_in(text: str) -> set[str]:
    """What of JAX's own a source text touches; comments and docstrings may speak of it."""
    tree = ast.parse(text)
    statements = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    docstrings = {id(value) for value in statements if isinstance(value, ast.Constant)}
    hiding = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("jitcount._jax")
        for alias in node.names
    }
    nodes = (node for node in ast.walk(tree) if id(node) not in docstrings)
    return {what for node in nodes for what in _private_at(node, hiding)}


def _private_at(node: ast.AST, hiding: set[str]) -> Iterator[str]:
    match node:
        case ast.Import(names=aliases):
            yield from (f"import {name}" for alias in aliases for name in _private(alias.name))
        case ast.ImportFrom(module=module, names=aliases):
            names = (name for alias in aliases for name in _private(f"{module}.{alias.name}"))
            yield from (f"import {name}" for name in names)
        case ast.Attribute(value=ast.Name(id=name)) if name in hiding:
            pass  # a function of `_jax`, which stands for the field
        case ast.Attribute(attr=field):
            if field in {*PRIVATE_FIELDS, *RECORDED_OPTIONS, "f_locals"}:
                yield f".{field}"
            if ast.unparse(node) in PRIVATE_MODULES:
                yield f".{field}"
        case ast.Call(func=called, args=[ast.Constant(value=str(name)), *_]):
            if ast.unparse(called).endswith("getLogger") and name.startswith("jax"):
                yield f"logger {name}"
        case ast.Constant(value=str(text)):
            parts = [part for part in PRIVATE_TEXTS if part in text]
            yield from (f"text {part}" for part in (*parts, *(PRIVATE_FIELDS & {text})))


def _private(module: str) -> list[str]:
    return [name for name in PRIVATE_MODULES if f"{module}.".startswith(f"{name}.")]


def test_only_one_room_touches_what_is_jaxs_own() -> None:
    others = {path: text for path, text in FILES.items() if room_of(path) != "_jax"} | BESIDE
    found = {(path, what) for path, text in others.items() for what in private_in(text)}
    assert found == set(EXCEPTIONS)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from jax._src import config", "import jax._src"),
        ("from jax._src.interpreters import pxla", "import jax._src"),
        ("from jax import monitoring", "import jax.monitoring"),
        ("import jax.monitoring", "import jax.monitoring"),
        ("from jaxlib.mlir import ir", "import jaxlib"),
        ("import jax\njax.monitoring.record_event('x')", ".monitoring"),
        ("import jax\njax._src.config", "._src"),
        ("import importlib\nimportlib.import_module('jax._src.config')", "text jax._src"),
        ("EVENT = '/jax/core/compile/backend_compile_duration'", "text /jax/core/"),
        ("f'/jax/compilation_cache/{kind}'", "text /jax/compilation_cache"),
        ("line.startswith('Compiling ')", "text Compiling "),
        ("'PERSISTENT COMPILATION CACHE MISS' in line", "text PERSISTENT COMPILATION CACHE"),
        ("import logging\nlogging.getLogger('jax._src.compiler')", "logger jax._src.compiler"),
        ("from logging import getLogger\ngetLogger('jax')", "logger jax"),
        ("jaxpr.debug_info.func_src_info", ".func_src_info"),
        ("getattr(jaxpr, 'debug_info', None)", "text debug_info"),
        ("for equation in jaxpr.eqns: pass", ".eqns"),
        ("frame.f_locals['jit_info']", "text jit_info"),
        ("frame.f_locals", ".f_locals"),
        ("info.fun_signature", ".fun_signature"),
        ("info.static_argnums", ".static_argnums"),
        ("about['fun_name']", "text fun_name"),
    ],
)
def test_what_is_jaxs_own_is_found(text: str, found: str) -> None:
    assert found in private_in(text)


@pytest.mark.parametrize(
    "text",
    [
        "import jax\njax.jit(f, static_argnums=0)",
        "from jitcount._jax import options\noptions.static_argnums(info)",
        "from jaxtyping import Array",
        "def f():\n    '''What `jax.monitoring` and jaxlib say, as `jax._src` has it.'''",
        "# jax._src, /jax/core/\nx = 1",
        "import logging\nlogging.getLogger('jitcount')",
    ],
)
def test_what_is_public_is_not_found(text: str) -> None:
    assert private_in(text) == set()


def test_each_rule_is_about_something_that_is_there() -> None:
    behind = "\n".join(text for path, text in FILES.items() if room_of(path) == "_jax")
    names = {*PRIVATE_FIELDS, *RECORDED_OPTIONS, *PRIVATE_TEXTS} - {"jax.monitoring"}
    assert {name for name in names if name not in behind} == set()
