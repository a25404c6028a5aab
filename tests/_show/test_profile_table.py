"""Where the time of compiles goes, as people and other tools see it."""

import json

import msgspec

from jitcount._explain.causes.functions import FirstCall
from jitcount._explain.compile import Compile
from jitcount._ledger.compare import growths
from jitcount._ledger.environment import environment
from jitcount._ledger.ledger import CaseEntry, Ledger
from jitcount._loops.result import Loop
from jitcount._observe.call_site import CallSite
from jitcount._profile.result import NOT_ATTRIBUTED, Constant, Line, Phase, Profile
from jitcount._show.chrome_trace import chrome_trace
from jitcount._show.profile_table import profile_tables
from jitcount._show.terminal import render
from jitcount._targets.result import OnTarget


def site(line: int) -> CallSite:
    return CallSite(f"model.py:{line} in net", "/me/model.py", line, "net")


LINES = (
    Line(
        call_site=site(31), calls="softmax", trace_s=0.4, compile_s=2.0, share_s=0.5,
        operations=1152,
        inside=(Line(call_site=site(31), part="backward pass", compile_s=1.5, operations=700),),
    ),
    Line(call_site=site(22), calls="matmul", compile_s=0.5, operations=40),
    Line(call_site=NOT_ATTRIBUTED, trace_s=0.1, compile_s=0.5),
)  # fmt: skip
PROFILE = Profile(
    lines=LINES,
    loops=(Loop(call_site=site(22), copies=48, operations=27, backward=(47, 17)),),
    phases=(
        Phase(name="trace", seconds=0.5),
        Phase(name="lower", seconds=0.2),
        Phase(name="XLA's passes", seconds=0.4, inside=(Phase(name="fusion", seconds=0.3),)),
        Phase(name="code generation", seconds=2.5),
        Phase(name="XLA's rest", seconds=0.1),
    ),
    constants=(Constant(call_site=site(5), type="float32[1000]", bytes=400_000),),
    notes=("something is not known",),
)
STEP = Compile(
    function="step", signature=("float32[3]",), platform="cpu", call_site=site(9), eager=False,
    from_disk=False, started_at=1000.0, trace_s=0.5, lower_s=0.2, compile_s=3.0, operations=1192,
    causes=(FirstCall("step", ""),), profile=PROFILE,
)  # fmt: skip

TABLE = """\
step: 3.7 s (trace 500 ms, lower 200 ms, XLA's passes 400 ms, code generation 2.5 s, \
XLA's rest 100 ms)

where the time goes   calls      trace      XLA   estimated   operations
────────────────────────────────────────────────────────────────────────
model.py:31 in net    softmax   400 ms      2 s      500 ms         1152
  backward pass                           1.5 s                      700
model.py:22 in net    matmul             500 ms                       40
not attributed                  100 ms   500 ms

  an unrolled loop: model.py:22 in net, 48 times the same 27 operations (backward: 47 × 17)
  a constant inside the program: float32[1000], 391 KiB, at model.py:5 in net; \
pass it as an argument
  something is not known
  the longest passes: fusion 300 ms
estimated: lowering, XLA's passes and what else names no line, shared out by operations"""


def test_a_program_by_line() -> None:
    shown = render(profile_tables([STEP]), 120)
    assert "\n".join(line.rstrip() for line in shown.splitlines()) == TABLE


def test_many_programs_end_with_the_whole_run() -> None:
    shown = render(profile_tables([STEP, STEP]), 200)
    assert "What took longest over all 2 compiles" in shown
    (row,) = [line for line in shown.splitlines() if line.startswith("model.py:31")][1:]
    assert row.split()[3:] == ["softmax", "800", "ms", "4", "s", "1", "s", "2304"]


def test_a_program_of_one_line_needs_no_table() -> None:
    profile = Profile(lines=LINES[1:], phases=(Phase(name="XLA", seconds=3.0),))
    eager = msgspec.structs.replace(STEP, function="log", profile=profile)
    assert render(profile_tables([eager]), 120) == (
        "log: 3.7 s (XLA 3 s), all of it at model.py:22 in net"
    )


def test_that_all_of_a_line_is_mapped_is_no_row_of_its_own() -> None:
    parts = [
        Line(call_site=site(31), part="under vmap", compile_s=seconds, operations=700)
        for seconds in (2.35, 1.5)
    ]
    shown = []
    for part in parts:
        lines = (msgspec.structs.replace(LINES[0], inside=(part,)), *LINES[1:])
        profile = msgspec.structs.replace(PROFILE, lines=lines)
        shown.append(render(profile_tables([msgspec.structs.replace(STEP, profile=profile)]), 120))
    assert ["under vmap" in text for text in shown] == [False, True]


def test_what_rounding_leaves_is_no_figure() -> None:
    last = msgspec.structs.replace(LINES[2], trace_s=1e-17)
    profile = msgspec.structs.replace(PROFILE, lines=(*LINES[:2], last))
    shown = render(profile_tables([msgspec.structs.replace(STEP, profile=profile)]), 120)
    (row,) = [line for line in shown.splitlines() if line.startswith("not attributed")]
    assert row.split() == ["not", "attributed", "500", "ms"]


def test_of_a_function_that_is_compiled_again_and_again_the_costliest_is_shown() -> None:
    other = msgspec.structs.replace(STEP, function="other", compile_s=1.0)
    cheaper = msgspec.structs.replace(STEP, compile_s=2.0)
    shown = render(profile_tables([cheaper, STEP, other, cheaper]), 200).splitlines()
    assert [line for line in shown if "(trace" in line] == [
        f"{name} (trace 500 ms, lower 200 ms, XLA's passes 400 ms, code generation 2.5 s, "
        "XLA's rest 100 ms)"
        for name in ("step: 3.7 s", "other: 1.7 s")
    ]
    at = shown.index("  compiled 2 more times from the same lines, 5.4 s together")
    assert shown[at + 1] == "    of 2 of these: something is not known"


def test_without_profiles_there_is_nothing_to_show() -> None:
    assert profile_tables([msgspec.structs.replace(STEP, profile=None)]) == []


def events(*compiles: Compile) -> list[dict[str, object]]:
    return list(json.loads(chrome_trace(compiles))["traceEvents"])


def test_in_a_trace_each_event_is_inside_of_the_one_above() -> None:
    on = {"tpu:v5e": OnTarget(target="tpu:v5e", compile_s=4.0, profile=PROFILE)}
    later = msgspec.structs.replace(STEP, started_at=1001.0, on=on)
    found = events(STEP, later)
    names = {e["tid"]: e["args"] for e in found if e["ph"] == "M"}
    assert [name["name"] for name in names.values()] == [  # type: ignore[index]
        "this machine", "this machine (2)", "tpu:v5e",
    ]  # fmt: skip
    for row in names:
        above: list[tuple[int, int]] = []
        spans = [e for e in found if e["ph"] == "X" and e["tid"] == row]
        assert len(spans) > 5
        for each in spans:
            begin = int(str(each["ts"]))
            end = begin + int(str(each["dur"]))
            while above and above[-1][1] <= begin:
                above.pop()
            assert not above or end <= above[-1][1]
            above.append((begin, end))


def test_in_a_trace_a_line_is_the_same_in_all_programs() -> None:
    """Names and arguments together say what is the same, in speedscope."""
    fewer = tuple(msgspec.structs.replace(line, operations=1) for line in LINES)
    profile = msgspec.structs.replace(PROFILE, lines=fewer)
    later = msgspec.structs.replace(STEP, started_at=1010.0, profile=profile)
    found = [
        {key: each.get(key) for key in ("dur", "args")}
        for each in events(STEP, later)
        if each["name"] == "model.py:31 in net softmax"
    ]
    trace, xla = {"dur": 400_000, "args": None}, {"dur": 2_000_000, "args": None}
    assert found == [trace, xla, trace, xla]


def test_in_a_trace_the_longest_passes_are_below_their_phase() -> None:
    (passes,) = [each for each in events(STEP) if each["name"] == "XLA's passes"]
    (fusion,) = [each for each in events(STEP) if each["name"] == "fusion"]
    assert (fusion["ts"], fusion["dur"]) == (passes["ts"], 300_000)


def ledger(compiled: Compile) -> Ledger:
    return Ledger(environment=environment(), cases={"train.py": CaseEntry(compiles=(compiled,))})


def test_a_program_that_grew_is_named_with_the_line_that_it_grew_at() -> None:
    more = (LINES[0], msgspec.structs.replace(LINES[1], operations=7297), LINES[2])
    profile = msgspec.structs.replace(PROFILE, lines=more)
    grown = msgspec.structs.replace(STEP, operations=8449, profile=profile)
    (found,) = growths({"before": ledger(STEP), "after": ledger(grown)})
    assert str(found) == "after: step 1,192 → 8,449 operations, at model.py:22 in net"
    assert growths({"before": ledger(STEP), "after": ledger(STEP)}) == []
