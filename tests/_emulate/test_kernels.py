"""Kernels of XLA:TPU's own: a softmax and the product after it."""

import base64
import json

import ml_dtypes
import numpy as np
import pytest

from jitcount._emulate.arithmetic import EXACT, arithmetic_of
from jitcount._emulate.translate import NotKnownError, translate
from jitcount._observe.call_site import CallSite
from jitcount._targets.names import parse
from tests._emulate.cases import module, parameters
from tests._emulate.conftest import Run

TPU = arithmetic_of(parse("tpu:v5e"))
R = np.random.default_rng(0)


def _body(block: int, precision: str = "bf16") -> str:
    return (
        f"window_params = [{{transform_indices = @qk_fn, window_bounds = array<i64: 8, {block}>}}]"
        f" precision = #tpu.contract_precision<{precision}>"
    )


def _text(scores: np.ndarray, values: np.ndarray, body: str, name: str = "online-softmax") -> str:
    extents = ",".join(map(str, (*scores.shape[:-1], values.shape[-1])))
    element = "bf16" if scores.dtype == ml_dtypes.bfloat16 else "f32"
    config = json.dumps({"custom_call_config": {"body": base64.b64encode(body.encode()).decode()}})
    return module(
        f"{parameters(scores, values)}\nROOT %k = {element}[{extents}] custom-call(%p0, %p1), "
        f'custom_call_target="tpu_custom_call", metadata={{op_name="{name}"}}, '
        f"backend_config={config}"
    )


def _softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores.astype(np.float64) - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


@pytest.mark.parametrize("block", [8, 16], ids=["two blocks", "one block"])
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)], ids=str)
def test_attention_is_a_softmax_and_a_product(
    block: int, batch: tuple[int, ...], run_hlo: Run
) -> None:
    scores = R.normal(size=(*batch, 8, 16)).astype(np.float32)
    values = R.normal(size=(*batch, 16, 4)).astype(np.float32)
    text = _text(scores, values, _body(block))
    (made,) = run_hlo(text, scores, values, arithmetic=EXACT)
    np.testing.assert_allclose(made, _softmax(scores) @ values, rtol=1e-5, atol=1e-6)


def test_its_product_is_rounded_as_the_kernel_says(run_hlo: Run) -> None:
    scores = np.zeros((8, 16), np.float32)  # all weights are 1 before they are scaled
    values = np.full((16, 4), 1 + 2**-10, np.float32)
    (once,) = run_hlo(_text(scores, values, _body(16)), scores, values, arithmetic=TPU)
    np.testing.assert_array_equal(once, np.ones((8, 4), np.float32))
    text = _text(scores, values, _body(16, "fp32"))
    (six,) = run_hlo(text, scores, values, arithmetic=TPU)
    np.testing.assert_allclose(six, values[:8], rtol=1e-6)
    assert [site.rounding.text for site in translate(text, TPU).sites] == ["bfloat16, six passes"]


def test_minus_infinity_stays_out(run_hlo: Run) -> None:
    scores = np.zeros((8, 16), np.float32)
    scores[:, :8] = -np.inf  # a whole block is masked
    values = R.normal(size=(16, 4)).astype(np.float32)
    (made,) = run_hlo(_text(scores, values, _body(16)), scores, values)
    np.testing.assert_allclose(made[0], values[8:].mean(0), rtol=1e-5)


def test_16_bits_are_rounded_at_each_step(run_hlo: Run) -> None:
    scores = R.normal(size=(8, 16)).astype(ml_dtypes.bfloat16)
    values = R.normal(size=(16, 4)).astype(ml_dtypes.bfloat16)
    (made,) = run_hlo(_text(scores, values, _body(16)), scores, values, arithmetic=TPU)
    wanted = _softmax(scores.astype(np.float32)) @ values.astype(np.float64)
    assert made.dtype == ml_dtypes.bfloat16
    np.testing.assert_allclose(made.astype(np.float64), wanted, atol=2**-5)


@pytest.mark.parametrize(
    ("body", "name", "reason"),
    [
        (_body(16), "flash", "a kernel of its own for TPUs: flash"),
        (_body(12), "online-softmax", "of another form than is known"),
        ("module {}", "online-softmax", "of another form than is known"),
    ],
)
def test_other_kernels_are_named(body: str, name: str, reason: str) -> None:
    scores, values = np.zeros((8, 16), np.float32), np.zeros((16, 4), np.float32)
    with pytest.raises(NotKnownError, match=reason):
        translate(_text(scores, values, body, name))


_LINES = [CallSite(f"model.py:{n} in f", "/a/model.py", n, "f") for n in (7, 8, 9)]


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        (_LINES[1:2], "model.py:8 in f"),
        (_LINES[:2], "near model.py:4 in f"),
        ([CallSite("model.py:8 in g", "/a/model.py", 8, "g")], "near model.py:4 in f"),
    ],
    ids=["the one that is nowhere else", "which of two is not known", "another function's"],
)
def test_its_line_is_that_of_the_product_in_it(lines: list[CallSite], place: str) -> None:
    scores, values = np.zeros((8, 16), np.float32), np.zeros((16, 4), np.float32)
    tables = """
FileNames
1 "/a/model.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=4 end_line=4 column=1 end_column=2}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
"""
    text = _text(scores, values, _body(16)).replace(
        "parameter(0)", 'parameter(0), metadata={op_name="jit(f)/sub" stack_frame_id=1}', 1
    )
    head, _, rest = text.partition("\n")
    (site,) = translate(f"{head}\n{tables}\n{rest}", TPU, products=lines).sites
    assert str(site.place) == place
