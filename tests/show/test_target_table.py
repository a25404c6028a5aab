"""The tables of targets, whole."""

from msgspec.structs import replace

from jitcount.explain.compile import Compile
from jitcount.observe.call_site import CallSite
from jitcount.show.target_table import shortened, target_tables, targets_table
from jitcount.targets.installed import PLUGINS
from jitcount.targets.names import parse
from jitcount.targets.result import OnTarget

STEP = Compile(
    function="step",
    signature=("float32[3]",),
    platform="cpu",
    call_site=CallSite("train.py:1 in main"),
    eager=False,
    from_disk=False,
    trace_s=0.0,
    lower_s=0.0,
    compile_s=0.1,
    causes=(),
)
GOOD = OnTarget(
    target="tpu:v5e",
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
    shown = target_tables([on("step", GOOD), on("step", GOOD), on("huge", REFUSED)], columns=120)
    assert shown == EXPECTED


EXPECTED = """\
On tpu:v5e: 1 compile in 250 ms, 1 not compiled

function   signature    compile   memory   estimate   note
──────────────────────────────────────────────────────────────────────────────────────────────────
step       float32[3]    250 ms   37 KiB      11 ns
step       float32[3]    250 ms   37 KiB      11 ns   the same program
huge       float32[3]                                 RESOURCE_EXHAUSTED: Ran out of memory on HBM\
"""


def test_a_long_refusal_is_cut() -> None:
    assert shortened("x" * 60) == "x" * 60
    assert shortened("x" * 61) == "x" * 59 + "…"


def test_without_estimates_there_is_no_column_for_them() -> None:
    plain = OnTarget(target="cuda:h100", compile_s=0.1, argument_bytes=12)
    assert target_tables([on("step", plain)], columns=80) == (
        "On cuda:h100: 1 compile in 100 ms\n"
        "\n"
        "function   signature    compile   memory   note\n"
        "───────────────────────────────────────────────\n"
        "step       float32[3]    100 ms     12 B"
    )


def test_without_targets_there_is_nothing_to_show() -> None:
    assert target_tables([STEP]) == ""


def test_the_list_of_targets_says_what_is_installed_and_how_to_install_the_rest() -> None:
    rows = [(parse("tpu:v5e"), True), (parse("cuda:h100"), False)]
    command = PLUGINS["cuda"].command
    assert targets_table(rows, [f"To install XLA:GPU: {command}"], columns=80) == (
        "target      chip                    smallest   installed\n"
        "────────────────────────────────────────────────────────\n"
        "tpu:v5e     TPU v5e                 2x2        yes\n"
        "cuda:h100   NVIDIA H100 80GB HBM3   1          no\n"
        "\n"
        "With a size: tpu:v5e:16x16, cuda:h100:8; without, as large as a program needs.\n"
        'To install XLA:GPU: pip install "jax[cuda12-local]" nvidia-cuda-nvcc-cu12'
    )
