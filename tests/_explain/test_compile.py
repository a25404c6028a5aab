"""What a compile says of itself: the same in every process, in every form, and in a file."""

import copy
import dataclasses
import importlib
import json
import pickle
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_origin

import jax
import msgspec
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import jitcount
from jitcount import Argument, Compile
from jitcount._explain.caller import Caller
from jitcount._explain.causes import AnyCause
from jitcount._explain.causes.functions import FirstCall
from jitcount._jax import lowering
from jitcount._ledger.files import decode, encode
from jitcount._loops.result import AsScan, Loop, Measured
from jitcount._observe.array_type import ArrayType
from jitcount._observe.call_site import CallSite
from jitcount._profile.result import Constant, Line, Phase, Profile
from jitcount._registry import registry
from jitcount._targets.result import OnTarget
from tests.helpers import ROOT, python

X = np.ones(3, np.float32)


def compiled(work: Callable[[], object]) -> Compile:
    """The one compile that the work needs, with empty caches."""
    jax.clear_caches()
    with jitcount.record() as log:
        work()
    (found,) = log.compiles
    return found


# --- The same program -----------------------------------------------------------------------------

PROGRAM = """
import jax, jax.numpy as jnp, jitcount, numpy as np

def step(x):
    return jnp.tanh(x @ x.T).sum()

with jitcount.record() as log:
    jax.jit(step)(np.ones((3, 3), np.float32))
found = log.compiles[-1].fingerprint, log.compiles[-1].operations
"""


def found_by(text: str, file: str = "<string>") -> tuple[str, int]:
    jax.clear_caches()
    namespace: dict[str, Any] = {}
    exec(compile(text, file, "exec"), namespace)  # noqa: S102
    fingerprint, operations = namespace["found"]
    return fingerprint, operations


def test_a_program_has_one_fingerprint_and_so_many_operations_in_every_process() -> None:
    print_them = "import json; print(json.dumps(found))"
    done = python("-c", f"{PROGRAM}\n{print_them}", env={"PYTHONHASHSEED": "7"}, timeout=120.0)
    assert done.stderr == ""
    assert json.loads(done.stdout) == list(found_by(PROGRAM))


def test_a_program_has_the_same_fingerprint_at_two_lines_of_two_files() -> None:
    found = found_by(PROGRAM)
    assert found == found_by("\n\n\n" + PROGRAM, "train.py")
    assert len(found[0]) == 32


def double(x: jax.Array) -> jax.Array:
    return 2 * x


def another_double() -> Callable[[jax.Array], jax.Array]:
    """Of the same name."""

    def double(x: jax.Array) -> jax.Array:
        return x + x

    return double


@pytest.mark.parametrize(
    "other",
    [
        lambda: jax.jit(another_double())(X),
        lambda: jax.jit(double)(X[:2]),
        lambda: jax.jit(double)(X.astype(np.int32)),
        lambda: jax.jit(double, compiler_options={"xla_embed_ir_in_executable": True})(X),
    ],
    ids=["program", "shape", "dtype", "compiler-option"],
)
def test_another_program_has_another_fingerprint(other: Callable[[], object]) -> None:
    assert compiled(other).fingerprint != compiled(lambda: jax.jit(double)(X)).fingerprint


def test_a_program_for_more_devices_has_another_fingerprint() -> None:
    given: list[Any] = []
    with registry.consuming_programs(given.append):
        jax.jit(double)(X)
    one = given[0].compilation
    two = dataclasses.replace(one, devices=2)
    assert lowering.measure(one) == lowering.measure(one)
    assert lowering.measure(one).fingerprint != lowering.measure(two).fingerprint


@pytest.mark.two_devices
def test_a_program_over_two_devices_has_another_fingerprint() -> None:
    def over(count: int) -> Compile:
        mesh = Mesh(np.array(jax.devices()[:count]), ("i",))
        x = jax.device_put(X, NamedSharding(mesh, PartitionSpec()))
        return compiled(lambda: jax.jit(double)(x))

    assert over(1).fingerprint != over(2).fingerprint
    assert over(2).fingerprint == over(2).fingerprint


def operations(function: Callable[[Any], Any]) -> int:
    return compiled(lambda: jax.jit(function)(X)).operations


def test_more_code_is_more_operations() -> None:
    def unrolled(x: Any) -> Any:
        for _ in range(10):
            x = jax.lax.sin(x)
        return x

    assert operations(jax.lax.sin) == 1
    assert operations(unrolled) == 10


def test_operations_inside_of_a_loop_and_of_another_jit_are_counted_once() -> None:
    def looped(x: Any) -> Any:
        return jax.lax.fori_loop(0, 1000, lambda _, y: jax.lax.sin(y), x)

    inner = jax.jit(lambda x: jax.lax.cos(jax.lax.sin(x)))
    assert 1 < operations(looped) < 20
    assert operations(inner) == 3  # a jit in a jit: two, and the call


# --- When and where -------------------------------------------------------------------------------


def test_a_compile_has_started_when_its_call_had_and_they_are_in_order() -> None:
    jitted = jax.jit(double)
    before = time.time()
    with jitcount.record() as log:
        for length in 1, 2, 3:
            jitted(X[:length])
    moments = [before, *(c.started_at for c in log.compiles), time.time()]
    assert moments == sorted(moments)
    assert len(set(moments[1:-1])) == 3


@pytest.mark.two_devices
def test_a_compile_for_another_device_has_started_too() -> None:
    jax.jit(double).lower(X)  # of the same name and arrays, and never compiled
    jitted = jax.jit(double)
    jitted(jax.device_put(X, jax.devices()[0]))
    before = time.time()
    with jitcount.record() as log:
        jitted(jax.device_put(X, jax.devices()[1]))
    assert before <= log.compiles[0].started_at <= time.time()


def here() -> None:
    jax.jit(double)(X)  # the call


def test_a_call_site_is_a_text_with_parts() -> None:
    site = compiled(here).call_site
    assert isinstance(site, str)
    assert Path(site.file).is_absolute()
    assert Path(site.file).samefile(__file__)
    assert Path(site.file).read_text().splitlines()[site.line - 1].endswith("# the call")
    assert site.function == "here"
    assert site == f"{site.partition(':')[0]}:{site.line} in here"


def test_a_call_site_in_typed_code_is_in_no_file() -> None:
    namespace: dict[str, Any] = {"step": jax.jit(double), "x": X}
    site = compiled(lambda: exec("step(x)", namespace)).call_site  # noqa: S102
    assert (site, site.file, site.line) == ("<string>:1 in <module>", "", 1)


def parts(site: CallSite) -> tuple[str, str, int, str]:
    return str(site), site.file, site.line, site.function


SITE = CallSite("train.py:42 in main", "/home/me/train.py", 42, "main")


@pytest.mark.parametrize(
    "through",
    [
        lambda site: pickle.loads(pickle.dumps(site)),  # noqa: S301
        copy.copy,
        copy.deepcopy,
        lambda site: decode(encode(site), CallSite),
    ],
    ids=["pickle", "copy", "deepcopy", "file"],
)
def test_a_call_site_keeps_its_parts(through: Callable[[CallSite], CallSite]) -> None:
    again = through(SITE)
    assert type(again) is CallSite
    assert parts(again) == parts(SITE)


LIBRARY = """
import jax

def call(f, x):
    return f(x)  # line 5

def outer(f, x):
    return call(f, x)
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A package that is installed like others."""
    packages = tmp_path / "site-packages"
    (packages / "lib").mkdir(parents=True)
    (packages / "lib" / "__init__.py").touch()
    (packages / "lib" / "core.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(packages)
    for name in "lib", "lib.core":
        monkeypatch.delitem(sys.modules, name, raising=False)
    module = importlib.import_module("lib.core")
    for name in "lib", "lib.core":
        monkeypatch.setitem(sys.modules, name, sys.modules[name])
    return module


def test_a_library_that_asks_is_named_beside_the_users_line(library: ModuleType) -> None:
    def train() -> None:
        library.outer(jax.jit(double), X)

    found = compiled(train)
    assert found.via == "lib/core.py:5 in call"
    assert parts(found.via)[1:] == (library.__file__, 5, "call")
    assert found.call_site.function.endswith("train")
    assert Path(found.call_site.file).samefile(__file__)


def test_without_a_library_nobody_else_asked() -> None:
    assert parts(compiled(here).via) == ("", "", 0, "")


# --- In a file, as plain data, in the docs --------------------------------------------------------

FULL = Compile(
    function="step",
    signature=("float32[3]", "weak int32[]"),
    arguments=(
        Argument(name="params", leaves=2),
        Argument(name="x", leaves=1, type="float32[3]"),
        Argument(name="lr", is_static=True),
    ),
    platform="tpu",
    call_site=SITE,
    via=CallSite("lib/core.py:5 in call", "/site-packages/lib/core.py", 5, "call"),
    callers=(
        Caller(site=SITE, calls="train", why_not="it loops"),
        Caller(site=SITE, why_not="it is an import", imports="lib"),
        Caller(site=SITE, calls="model.init", jitted="jax.jit(model.init)(...)"),
    ),
    thread="loader",
    eager=True,
    ahead_of_time=True,
    from_disk=True,
    started_at=1.7e9 + 0.123456,
    trace_s=0.1,
    lower_s=0.2,
    compile_s=1 / 3,
    fingerprint="0f" * 16,
    operations=7,
    causes=(FirstCall("step", "vmap"),),
    on={"tpu:v5e": OnTarget(target="tpu:v5e", compile_s=0.5, flops=1e12, error=None)},
    profile=Profile(
        lines=(
            Line(
                call_site=SITE,
                calls="softmax",
                trace_s=0.1,
                compile_s=0.2,
                share_s=0.3,
                jaxpr_operations=3,
                operations=4,
                optimised_operations=2,
                inside=(Line(call_site=SITE, part="backward pass", operations=1),),
            ),
        ),
        loops=(
            Loop(
                call_site=SITE,
                copies=12,
                operations=3,
                backward=(11, 5),
                as_scan=AsScan(
                    measured=(Measured(compiler="cpu", unrolled_s=2.0, scan_s=1.0),),
                    values="the same bits",
                ),
            ),
        ),
        phases=(Phase(name="trace", seconds=0.1, inside=(Phase(name="dce", seconds=0.05),)),),
        constants=(Constant(call_site=SITE, type="float32[9]", bytes=36),),
        notes=("a note",),
    ),
)


def again(compile_: Compile) -> Compile:
    return decode(encode(compile_), Compile)


def test_every_field_of_a_compile_survives_a_file() -> None:
    read = again(FULL)
    for field in msgspec.structs.fields(Compile):
        value = getattr(FULL, field.name)
        assert value != field.default, f"{field.name} is not tried"
        assert value, f"{field.name} is not tried"
        assert getattr(read, field.name) == value
    assert parts(read.call_site) == parts(FULL.call_site)
    assert parts(read.via) == parts(FULL.via)
    assert hash(read) == hash(FULL)


def test_every_field_of_a_compile_is_in_its_plain_data() -> None:
    plain = FULL.to_dict()
    assert json.loads(json.dumps(plain))["function"] == "step"
    forgotten = [name for name in Compile.__struct_fields__ if name not in plain]
    assert not forgotten, f"Compile.to_dict() lacks {forgotten}"


def test_every_field_of_a_compile_is_in_the_docs() -> None:
    page = (ROOT / "docs" / "recording.md").read_text()
    rows = [row.split("|")[1] for row in page.splitlines() if row.startswith("| `c.")]
    named = set(re.findall(r"`c\.(\w+)", " ".join(rows)))
    forgotten = [name for name in Compile.__struct_fields__ if name not in named]
    assert not forgotten, f"the table of a compile's fields in docs/recording.md lacks {forgotten}"


def test_a_real_compile_survives_a_file() -> None:
    found = compiled(here)
    assert again(found) == found
    assert parts(again(found).call_site) == parts(found.call_site)


EXAMPLES: dict[Any, Any] = {
    str: "params['a']",
    int: 3,
    bool: True,
    ArrayType: ArrayType("float32", (3, "batch"), is_weak=True),
}


def example(form: Any) -> Any:
    """A value of that type."""
    if get_origin(form) is not tuple:
        return EXAMPLES[form]
    items = [item for item in get_args(form) if item is not Ellipsis]
    return tuple(map(example, items))


@pytest.mark.parametrize("form", get_args(AnyCause), ids=lambda form: form.__name__)
def test_every_cause_survives_a_file(form: type[Any]) -> None:
    fields = msgspec.structs.fields(form)
    cause = form(**{field.name: example(field.type) for field in fields})
    (read,) = again(msgspec.structs.replace(FULL, causes=(cause,))).causes
    assert type(read) is form
    assert read == cause
    assert (str(read), read.advice, read.kind) == (str(cause), cause.advice, cause.kind)
