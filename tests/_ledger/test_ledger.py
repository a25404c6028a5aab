"""A ledger from Python, and what it holds: another field or cause needs another schema."""

from pathlib import Path
from typing import Any

import jax
import msgspec
import numpy as np
import pytest

import jitcount
from jitcount._ledger.ledger import SCHEMA, Ledger


@jax.jit
def step(x: jax.Array) -> jax.Array:
    return 2 * x


def saved(path: Path, *lengths: int) -> jitcount.CompileLog:
    jax.clear_caches()
    with jitcount.record() as log:
        for length in lengths:
            step(np.ones(length, np.float32))
    log.save(path)
    return log


def test_a_log_that_was_saved_can_be_loaded(tmp_path: Path) -> None:
    log = saved(tmp_path / "run.json", 3, 4)
    ledger = jitcount.load(str(tmp_path / "run.json"))
    assert ledger.compiles == log.compiles
    assert ledger.counts() == log.counts() == {"step": 2}
    assert ledger.environment.jax == jax.__version__
    assert {name: entry.counts() for name, entry in ledger.cases.items()} == {"log": {"step": 2}}


def test_logs_that_were_saved_can_be_compared(tmp_path: Path) -> None:
    saved(tmp_path / "before.json", 3)
    saved(tmp_path / "after.json", 3, 4)
    compared = jitcount.compare(tmp_path / "before.json", str(tmp_path / "after.json"))
    assert [str(difference) for difference in compared.differences] == [
        "log in after: step: 1 → 2 compiles at tests/_ledger/test_ledger.py:24 in saved"
    ]


def test_a_log_replaces_nobody_elses_file(tmp_path: Path) -> None:
    path = tmp_path / "package.json"
    path.write_text('{"name": "web"}')
    with pytest.raises(jitcount.LedgerError) as raised:
        saved(path, 3)
    assert str(raised.value) == f"{path}: is not a jitcount ledger; it is left as it is"
    with pytest.raises(jitcount.LedgerError) as raised:
        jitcount.load(path)
    assert str(raised.value) == f"{path}: is not a jitcount ledger"


# --- What a ledger of this schema holds -----------------------------------------------------------

HERE = Path(__file__).parent


def held(form: type) -> dict[str, list[str]]:
    """What a file of a type holds: by the way to each struct in it, its fields; a cause by its tag.

    Names of classes are in no file.
    """
    found: dict[str, list[str]] = {}
    seen: set[type] = set()
    waiting: list[tuple[str, Any]] = [("ledger", msgspec.inspect.type_info(form))]
    while waiting:
        way, info = waiting.pop(0)
        if isinstance(info, msgspec.inspect.StructType):
            if info.cls in seen:
                continue
            seen.add(info.cls)
            found[str(info.tag or way)] = [field.encode_name for field in info.fields]
            waiting += [(f"{way}.{field.encode_name}", field.type) for field in info.fields]
            continue
        for value in msgspec.structs.asdict(info).values():
            several = value if isinstance(value, tuple) else (value,)
            waiting += [(way, one) for one in several if isinstance(one, msgspec.inspect.Type)]
    return found


def in_lines(fields: dict[str, list[str]]) -> str:
    return "".join(f"{name}: {' '.join(names)}\n" for name, names in sorted(fields.items()))


def test_a_field_that_is_new_or_gone_has_a_schema_of_its_own() -> None:
    record = HERE / f"schema_{SCHEMA}.txt"
    now = in_lines(held(Ledger))
    if not record.exists():
        pytest.fail(f"{record.name} is not there; what it says of schema {SCHEMA}:\n{now}")
    was = record.read_text()
    before = dict(line.split(": ", 1) for line in was.splitlines())
    changed = {
        name: sorted({*fields} ^ {*before.get(name, "").split()})
        for name, fields in held(Ledger).items()
        if before.get(name) != " ".join(fields)
    }
    assert now == was, (
        f"a ledger holds other fields than those of schema {SCHEMA}: {changed}; raise SCHEMA in "
        f"src/jitcount/_ledger/ledger.py, and write tests/_ledger/schema_{SCHEMA + 1}.txt:\n{now}"
    )


def test_a_new_field_and_a_new_cause_are_seen() -> None:
    class Inside(msgspec.Struct, tag="inside"):
        new: int

    class Outside(msgspec.Struct):
        several: dict[str, tuple[Inside, ...]]
        none: Inside | None = None

    assert held(Outside) == {"ledger": ["several", "none"], "inside": ["new"]}
