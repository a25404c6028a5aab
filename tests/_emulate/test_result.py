import io
import sys

import pytest

from jitcount._emulate.error import LineError
from jitcount._emulate.result import EmulatedProgram, RoundingAt
from jitcount._observe.call_site import CallSite


def test_what_is_printed_is_one_line_in_letters_that_stdout_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = "f\x1b[2J\r\n→"
    site = CallSite(f"{name}.py:3 in g", file=f"/{name}.py", line=3, function="g")
    program = EmulatedProgram(
        function=name, signature=(), call_site=site, faithful=False, reason=name
    )
    share = LineError(site, name, 1.0, 1.0)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="cp1252"))
    shown = r"f\x1b[2J\r\n->"
    assert str(program) == f"{shown}(): {shown}"
    assert str(RoundingAt(site, name, "TF32", 1)) == f"{shown}.py:3 in g: {shown} in TF32"
    assert str(share).startswith(f"{shown}.py:3 in g: {shown}: 100 % of")
