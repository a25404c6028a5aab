"""The tables of targets, whole."""

import pytest
from msgspec.structs import replace

from jitcount._explain.compile import Compile
from jitcount._ledger.files import decode, encode
from jitcount._observe.call_site import CallSite
from jitcount._show import html
from jitcount._show.parts import Note, Table
from jitcount._show.target_table import (
    distinct,
    failures_on,
    target_tables,
    targets_summary,
    targets_table,
)
from jitcount._show.terminal import render
from jitcount._targets.installed import PLUGINS
from jitcount._targets.names import parse
from jitcount._targets.protocol import WithoutTriton
from jitcount._targets.result import LeftOut, OnTarget, fallback_sentence, refusal
from tests.expected import expect
from tests.helpers import STEP_COMPILED

STEP = STEP_COMPILED
GOOD = OnTarget(
    target="tpu:v5e",
    fingerprint="c0ffee",
    compile_s=0.25,
    argument_bytes=1024,
    output_bytes=1024,
    aliased_bytes=1024,
    temporary_bytes=0,
    code_bytes=36864,
    estimated_s=1.1e-8,
)
REFUSED = OnTarget(
    target="tpu:v5e",
    error="RESOURCE_EXHAUSTED: Ran out of memory on HBM\nand more",
)


def on(function: str, result: OnTarget) -> Compile:
    return replace(STEP, function=function, on={result.target: result})


def test_each_program_has_its_figures_or_its_refusal() -> None:
    compiles = [on("step", GOOD), on("step", GOOD), on("huge", REFUSED)]
    assert render(target_tables(compiles), 120) == EXPECTED


def test_a_program_is_still_one_when_its_results_come_from_a_file() -> None:
    read = [from_a_file(result) for result in (GOOD, GOOD, REFUSED)]
    assert read[0] is not read[1]
    compiles = [on("step", read[0]), on("step", read[1]), on("huge", read[2])]
    assert render(target_tables(compiles), 120) == EXPECTED


def from_a_file(result: OnTarget) -> OnTarget:
    return decode(encode(result), OnTarget)


EXPECTED = """\
On tpu:v5e: 1 compile in 250 ms, 1 not compiled

function   arguments   compile   memory   estimate   note
────────────────────────────────────────────────────────────────────────────
step       f32[3]       250 ms   37 KiB      11 ns
step       f32[3]       250 ms   37 KiB      11 ns   the same program
huge       f32[3]                                    not compiled, see below

  huge at train.py:42 in main: RESOURCE_EXHAUSTED: Ran out of memory on HBM\
"""


FELL_BACK = replace(
    GOOD,
    target="cuda:h100",
    estimated_s=None,
    fallback=fallback_sentence(WithoutTriton(product=1), [CallSite("a.py:1"), CallSite("b.py:2")]),
)
FAILED = OnTarget(target="cuda:h100", error="INTERNAL: no room for %a = f32[8]{0}\nand more")
DIED = OnTarget(target="cuda:h100", error="the compiler was ended by SIGABRT (Aborted)")


def test_what_a_device_would_compile_otherwise_and_internal_errors_are_no_refusals() -> None:
    refused = replace(REFUSED, target="cuda:h100")
    compiles = [on("step", FELL_BACK), on("f", FAILED), on("g", DIED), on("huge", refused)]
    assert render(target_tables(compiles), 90) == (
        """\
On cuda:h100: 1 compile in 250 ms, 3 not compiled (2 by internal errors of the compiler)

function   arguments   compile   memory   note
───────────────────────────────────────────────────────────────────────────
step       f32[3]       250 ms   37 KiB   without Triton kernels, see below
f          f32[3]                         not compiled, see below
g          f32[3]                         not compiled, see below
huge       f32[3]                         not compiled, see below

  step at train.py:42 in main: compiled without Triton kernels: the one picked for the
    product at b.py:2 fails, and a device would try others
  f at train.py:42 in main: an internal error of the compiler, not a refusal: no room for
    %a = f32[8]{0}
  g at train.py:42 in main: an internal error of the compiler, not a refusal: the compiler
    was ended by SIGABRT (Aborted)
  huge at train.py:42 in main: RESOURCE_EXHAUSTED: Ran out of memory on HBM"""
    )
    assert failures_on("cuda:h100", [FAILED, refused]) == (
        "2 programs not compiled for cuda:h100 (1 by an internal error of the compiler)"
    )
    assert failures_on("tpu:v5e", [REFUSED]) == "1 program not compiled for tpu:v5e"


def test_a_product_whose_line_is_not_known_is_one_of_the_program() -> None:
    assert fallback_sentence(WithoutTriton(), []) == (
        "compiled without Triton kernels: the one picked for a product fails, and a device would "
        "try others"
    )


def test_results_are_of_one_program_where_target_and_fingerprint_are_the_same() -> None:
    other = replace(GOOD, fingerprint="decaf")
    elsewhere = replace(GOOD, target="tpu:v4")
    assert distinct([GOOD, other, GOOD, elsewhere, other]) == [GOOD, other, elsewhere]


def test_a_result_without_a_fingerprint_stands_for_itself() -> None:
    assert distinct([REFUSED, REFUSED]) == [REFUSED, REFUSED]


def test_in_a_summary_a_program_is_one_in_its_test_and_anew_in_another() -> None:
    twice = (on("step", GOOD), on("step", GOOD))
    found = {"test_a": twice, "test_b": (on("step", GOOD), on("huge", REFUSED))}
    assert render(targets_summary(found)) == (
        "On tpu:v5e: 2 compiles in 500 ms, 1 not compiled\n"
        "  tpu:v5e, test_b: huge(float32[3]): RESOURCE_EXHAUSTED: Ran out of memory on HBM"
    )


SITE = CallSite("train.py:42 in step", "/home/me/train.py", 42, "step")
ONE = LeftOut(kind="pure_callback", call_site=SITE)
TWO = LeftOut(kind="debug_print", call_site=CallSite("train.py:50 in step"), count=2)


def test_a_program_with_callbacks_says_whose_part_is_missing() -> None:
    one, three = replace(GOOD, left_out=(ONE,)), replace(GOOD, left_out=(ONE, TWO))
    assert from_a_file(three) == three
    refused = replace(REFUSED, left_out=(ONE,))
    parts = target_tables([on("step", one), on("step", three), on("huge", refused)])
    notes = [line.partition("ns   ")[2] for line in render(parts, 160).splitlines()[4:6]]
    assert notes == [
        "host's part left out: pure_callback at train.py:42 in step",
        "the same program; host's part left out: 3 callbacks, the first at train.py:42 in step",
    ]
    why = "RESOURCE_EXHAUSTED: Ran out of memory on HBM"
    assert render(parts, 160).endswith(f"  huge at train.py:42 in main: {why}")
    assert render(targets_summary({"test_a": (on("step", one),)})) == (
        "On tpu:v5e: 1 compile in 250 ms\n"
        "  tpu:v5e, test_a: step(float32[3]): "
        "host's part left out: pure_callback at train.py:42 in step"
    )


def test_a_summary_of_nothing_says_so() -> None:
    assert targets_summary({"test_a": ()}) == [Note("nothing was compiled")]


HBM = (
    "RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required for HLO temporaries "
    "(37.38G) exceeds available HBM (15.75G)."
)
# As XLA:TPU wrote it: the figures come behind the instruction.
VMEM = (
    "RESOURCE_EXHAUSTED: E1001: CompileTimeScopedVmemOom:\nRan out of memory in memory space vmem "
    "while allocating on stack for %big.1 = f32[4096,4096]{1,0:T(8,128)} custom-call(%x.1), "
    'custom_call_target="tpu_custom_call", operand_layout_constraints={f32[4096,4096]{1,0}}, '
    'frontend_attributes={kernel_metadata={}}, metadata={op_name="jit(big)/pallas_call" '
    "stack_frame_id=2}. Scoped allocation with size 128.00M and limit 16.00M exceeded scoped vmem "
    "limit by 112.00M. It should not be possible to run out of scoped vmem - \nSee https://…"
)


@pytest.mark.parametrize("columns", [80, 120, 200])
def test_a_refusal_is_whole_in_a_terminal_of_any_width(columns: int) -> None:
    refused = replace(REFUSED, error=HBM)
    table = render(target_tables([on("huge", refused), on("huge", refused)]), columns)
    summary = render(targets_summary({"test_a": (on("huge", refused),)}), columns)
    assert HBM in " ".join(table.split())
    assert HBM in " ".join(summary.split())


def test_a_refusal_is_whole_in_a_notebook() -> None:
    assert HBM in html.render(target_tables([on("huge", replace(REFUSED, error=HBM))]))


def test_a_refusal_that_quotes_a_program_keeps_its_figures() -> None:
    expect(
        refusal(VMEM),
        "RESOURCE_EXHAUSTED: E1001: CompileTimeScopedVmemOom: Ran out of memory in memory"
        " space vmem while allocating on stack for %big.1 = f32[4096,4096]{1,0:T(8,128)}…"
        " Scoped allocation with size 128.00M and limit 16.00M exceeded scoped vmem limit"
        " by 112.00M. It should not be possible to run out of scoped vmem -",
    )
    assert refusal("x" * 300) == "x" * 300
    assert refusal("x" * 301) == "x" * 160 + "…"
    assert refusal("many " * 70) == "many " * 31 + "many…"


def test_of_many_programs_operations_outside_of_jit_are_summed_up() -> None:
    eager = [replace(on("add", GOOD), eager=True)] * 20
    table = target_tables([on("step", GOOD), *eager])[1]
    assert isinstance(table, Table)
    assert [row[0] for row in table.rows] == ["step"]
    summed_up = "… and 20 operations outside of jit, 250 ms together, none larger than 37 KiB"
    assert table.left_out == summed_up
    few = target_tables([on("step", GOOD), *eager[1:]])[1]
    assert isinstance(few, Table)
    assert len(few.rows) == 20


def test_without_estimates_there_is_no_column_for_them() -> None:
    plain = OnTarget(target="cuda:h100", compile_s=0.1, argument_bytes=12)
    assert render(target_tables([on("step", plain)]), 80) == (
        "On cuda:h100: 1 compile in 100 ms\n"
        "\n"
        "function   arguments   compile   memory   note\n"
        "──────────────────────────────────────────────\n"
        "step       f32[3]       100 ms     12 B"
    )


def test_without_targets_there_is_nothing_to_show() -> None:
    assert target_tables([STEP]) == []


def test_the_list_of_targets_says_what_is_installed_and_how_to_install_the_rest() -> None:
    rows = [(parse("tpu:v5e"), True), (parse("cuda:h100"), False)]
    command = PLUGINS["cuda"].command
    assert render(targets_table(rows, [f"To install XLA:GPU: {command}"]), 80) == (
        "target      chip                    smallest   installed\n"
        "────────────────────────────────────────────────────────\n"
        "tpu:v5e     TPU v5e                 2x2        yes\n"
        "cuda:h100   NVIDIA H100 80GB HBM3   1          no\n"
        "\n"
        "With a size: tpu:v5e:8 (or 2x4), cuda:h100:8; without, as large as a program\n"
        "  needs.\n"
        'To install XLA:GPU: pip install "jax[cuda12-local]" nvidia-cuda-nvcc-cu12'
    )
