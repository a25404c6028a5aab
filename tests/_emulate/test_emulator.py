"""What is kept for a while, and what is not run though it was compiled."""

import jax
import numpy as np
import pytest

import jitcount
from jitcount._emulate import emulator
from jitcount._emulate.emulator import BytesCache
from jitcount._targets.protocol import Answer, WithoutTriton
from tests._emulate.cases import module, parameters
from tests._emulate.fake_compilers import fake_compilers


def test_the_oldest_goes_when_there_is_no_room() -> None:
    kept: BytesCache[bytes] = BytesCache(10, len)
    kept.put(b"one", b"12345")
    kept.put(b"two", b"12345")
    assert (kept.get(b"one"), kept.get(b"two")) == (b"12345", b"12345")
    kept.put(b"two", b"123456")
    assert (kept.get(b"one"), kept.get(b"two")) == (None, b"123456")


def test_what_is_too_large_alone_is_not_kept() -> None:
    kept: BytesCache[bytes] = BytesCache(3, len)
    kept.put(b"one", b"1234")
    assert kept.get(b"one") is None


_GIVEN = [np.ones(shape, np.float32) for shape in ((2, 3), (3, 4), (4,))]

# What XLA:GPU of JAX 0.10.2 makes of (x @ w + bias) / 4, shortened: the bias is not divided.
_SCALED = f"""
{parameters(*_GIVEN)}
%both = (f32[2,4]{{1,0}}, s8[64]{{0}}) custom-call(%p0, %p1, %p2), \
custom_call_target="__cublas$lt$matmul", backend_config={{"gemm_backend_config":{{\
"alpha_real":0.25,"beta":0,"dot_dimension_numbers":{{"lhs_contracting_dimensions":["1"],\
"rhs_contracting_dimensions":["0"],"lhs_batch_dimensions":[],"rhs_batch_dimensions":[]}},\
"alpha_imag":0,"precision_config":{{"operand_precision":["DEFAULT","DEFAULT"],\
"algorithm":"ALG_UNSET"}},"epilogue":"BIAS"}}}}
ROOT %made = f32[2,4]{{1,0}} get-tuple-element(%both), index=0
""".replace("\\\n", "")

_REASON = (
    "compiled without Triton kernels: the one picked for a product fails, and a device would try "
    "others; without them, this JAX is known to miscompile: products by cuBLAS with a bias or an "
    "activation, scaled afterwards (openxla #46110): use 0.11.1, or set "
    "XLA_FLAGS=--xla_disable_hlo_passes=cublas-gemm-rewriter"
)


@pytest.mark.parametrize(
    ("without", "jaxlib", "reason", "result"),
    [
        (WithoutTriton(), "0.10.2", _REASON, 1.0),  # a device need not have picked cuBLAS
        (None, "0.10.2", "", 1.75),  # a device has that, too
        (WithoutTriton(), "0.11.1", "", 1.75),  # (x @ w) / 4 + bias is what was asked for
    ],
)
def test_a_fallback_that_is_known_to_be_wrong_is_not_run(
    without: WithoutTriton | None,
    jaxlib: str,
    reason: str,
    result: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    monkeypatch.setattr(emulator, "jaxlib_release", lambda: jaxlib)
    with fake_compilers() as compilers, jitcount.as_if("cuda:h100") as emulation:
        compilers.there = Answer(block=module(_SCALED).encode(), without_triton=without)
        found = jax.jit(lambda x, w, bias: (x @ w + bias) / 4)(*_GIVEN)
    (program,) = emulation.programs
    assert program.reason == reason
    assert program.faithful is not bool(reason)
    np.testing.assert_array_equal(found, np.full((2, 4), result, np.float32))
