"""What travels to a compiler's process and back: as types, and nothing else."""

import io
import json
import struct
from typing import Any

import pytest

from jitcount._observe.call_site import CallSite
from jitcount._profile.result import Line, Profile
from jitcount._targets.protocol import (
    Answer,
    BuildExecutable,
    CompileModule,
    Figures,
    MeasureModule,
    Request,
    Shardings,
    Stacks,
    receive,
    send,
)
from tests.helpers import python

COMPILE = CompileModule(
    devices=2,
    may_move=((True, False), ()),
    options={"xla_fast": True, "level": 2, "share": 0.5, "kind": "x"},
    settings={"jax_enable_x64": False},
    keep_hlo=True,
    # A name of a file need not be UTF-8.
    profile=Stacks(frames=(("/home/\udcff.py", 3, "main"),), stacks=((0,), ())),
)
SITE = CallSite("net.py:3 in net", file="/home/net.py", line=3, function="net")


@pytest.mark.parametrize(
    "task",
    [
        None,
        COMPILE,
        MeasureModule(may_move=((), ()), settings={}, inputs=(("float32", (2, 3)),)),
        MeasureModule(may_move=((), ()), settings={}, inputs=None, stacked=((0, 1), (2,))),
        BuildExecutable(devices=1, compile_options=b"\x00\xff", settings={}),
    ],
)
def test_a_request_arrives_as_it_was_sent(task: Any) -> None:
    sent = Request(topology={"platform": "cpu", "devices": 2}, task=task, block=b"\x00module")
    stream = io.BytesIO()
    send(stream, sent)
    stream.seek(0)
    assert receive(stream, Request) == sent
    assert receive(stream, Request) is None


def test_an_answer_arrives_as_it_was_sent() -> None:
    sent = Answer(
        compile_s=0.5,
        processor_s=0.25,
        figures=Figures(argument_bytes=12, flops=3.0),
        profile=Profile(lines=(Line(call_site=SITE, compile_s=0.5),)),
        shardings=Shardings(arguments=("{replicated}", "{devices=[2,1]<=[2]}"), results=()),
        block=b"HloModule m",
    )
    stream = io.BytesIO()
    send(stream, sent)
    stream.seek(0)
    found = receive(stream, Answer)
    assert found == sent
    assert found.profile is not None
    assert found.profile.lines[0].call_site.line == 3


def _read(text: str) -> Answer | None:
    data = text.encode()
    return receive(io.BytesIO(struct.pack("<QQ", len(data), 0) + data), Answer)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"compile_s": 1, "seconds": 2}, "Object contains unknown field `seconds`"),
        ({"compile_s": "1"}, "Expected `float`, got `str` - at `$.compile_s`"),
        ({"figures": {"flops": "many"}}, "Expected `float | null`, got `str`"),
        ([], "Expected `object`, got `array`"),
    ],
)
def test_an_answer_that_is_not_as_declared_is_refused(answer: Any, message: str) -> None:
    with pytest.raises(ValueError, match=r"Expected|unknown") as error:
        _read(json.dumps(answer))
    assert str(error.value).startswith(message)


def test_a_task_that_is_not_known_is_refused() -> None:
    stream = io.BytesIO()
    send(stream, Request(topology={}, task=COMPILE))
    text = stream.getvalue().replace(b'"compile"', b'"explode"')
    with pytest.raises(ValueError, match="Invalid value 'explode'"):
        receive(io.BytesIO(text), Request)


def test_what_is_cut_short_is_the_end() -> None:
    stream = io.BytesIO()
    send(stream, Answer(block=b"HloModule m"))
    whole = stream.getvalue()
    assert all(receive(io.BytesIO(whole[:end]), Answer) is None for end in range(len(whole)))


def test_a_compilers_process_loads_no_jax_before_it_reads_requests() -> None:
    done = python("-c", "import sys, jitcount._targets.worker; print('jax' in sys.modules)")
    assert (done.stdout, done.stderr) == ("False\n", "")
