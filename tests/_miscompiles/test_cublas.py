"""Products of XLA:GPU that are recognised by what cuBLAS is told, in the compiler's words."""

import pytest

from jitcount._miscompiles.cublas import scales_before_epilogue


def _call(alpha: float, epilogue: str, target: str = "__cublas$lt$matmul") -> str:
    return (
        "  %call = (f32[24,16]{1,0}, s8[4194304]{0}) custom-call(%x, %w, %b), "
        f'custom_call_target="{target}", backend_config={{"gemm_backend_config":'
        f'{{"selected_algorithm":"0","alpha_real":{alpha},"beta":0,"alpha_imag":0,'
        f'"epilogue":"{epilogue}","lhs_stride":"384"}}}}'
    )


@pytest.mark.parametrize("epilogue", ["BIAS", "BIAS_RELU", "GELU", "BIAS_GELU_AUX"])
@pytest.mark.parametrize("alpha", [0.0052083334885537624, -1.0])
def test_what_comes_after_a_product_is_not_scaled(alpha: float, epilogue: str) -> None:
    assert scales_before_epilogue(f"ENTRY %main {{\n{_call(alpha, epilogue)}\n}}")


def test_a_relu_of_a_negative_multiple_is_another() -> None:
    assert scales_before_epilogue(_call(-0.25, "RELU"))
    assert not scales_before_epilogue(_call(0.25, "RELU"))


@pytest.mark.parametrize(
    "call",
    [
        _call(1, "BIAS"),
        _call(0.25, "DEFAULT"),
        _call(0.25, "BIAS", "__cudnn$convForward"),
        'custom_call_target="__cublas$triangularSolve"',
        "",
    ],
)
def test_others_are_right(call: str) -> None:
    assert not scales_before_epilogue(call)


def test_each_call_is_looked_at_by_itself() -> None:
    assert not scales_before_epilogue(f"{_call(1, 'BIAS')}\n{_call(0.25, 'DEFAULT')}")
