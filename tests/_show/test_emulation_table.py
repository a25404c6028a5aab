"""What several processes have computed as if on a target, as one table."""

import json
from dataclasses import replace

from jitcount._emulate.result import EmulatedProgram, RoundingAt
from jitcount._observe.call_site import CallSite
from jitcount._show.emulation_table import EmulationSums, sums_table
from jitcount._show.terminal import render

LINE = CallSite("model.py:8 in attention", "/home/me/model.py", 8, "attention")


def _program(function: str, reason: str = "") -> EmulatedProgram:
    rounding = RoundingAt(LINE, "dot_general", "bfloat16", 1)
    return EmulatedProgram(
        function=function,
        signature=("float32[3]",),
        call_site=LINE,
        faithful=not reason,
        reason=reason,
        roundings=() if reason else (rounding,),
    )


def test_sums_of_several_processes_are_joined() -> None:
    all_of_them = EmulationSums()
    why = "a call of Own"
    for programs in (
        [_program("loss"), _program("f", why)],
        [_program("step")],
        [_program("f", why)],
    ):
        sent = json.dumps(EmulationSums.from_programs(programs).plain())
        all_of_them.join(json.loads(sent))
    assert render(sums_table("tpu:v5e", all_of_them)) == (
        "As if on tpu:v5e: 2 of 4 programs computed as there\n\n"
        "line                      operation     inputs rounded to   in function\n"
        "───────────────────────────────────────────────────────────────────────\n"
        "model.py:8 in attention   dot_general   bfloat16            loss, step\n\n"
        "as on the CPU: f(float32[3]): a call of Own"
    )


def test_what_was_compiled_otherwise_is_said() -> None:
    how = (
        "compiled without Triton kernels: the one picked for the product at model.py:8 in "
        "attention fails, and a device would try others"
    )
    sums = EmulationSums()
    program = replace(_program("loss"), roundings=(), fallback=how)
    sums.join(json.loads(json.dumps(EmulationSums.from_programs([program]).plain())))
    assert render(sums_table("cuda:h100", sums)) == (
        "As if on cuda:h100: 1 of 1 programs computed as there\n"
        "loss(float32[3]): compiled without Triton kernels: the one picked for the product at "
        "model.py:8 in attention fails, and a device would try others"
    )


def test_nothing_is_said_so() -> None:
    text = render(sums_table("tpu:v5e", EmulationSums()))
    assert text == "As if on tpu:v5e: nothing was compiled"
