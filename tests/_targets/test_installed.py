"""What is said where a compiler is missing."""

import os
import types
from pathlib import Path

import pytest

import jitcount
from jitcount._targets import installed, process
from jitcount._targets.chips.nvidia import PTXAS
from jitcount._targets.names import parse

CUDA = 'pip install "jax[cuda12-local]" nvidia-cuda-nvcc-cu12'


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "_is_there", lambda _module: False)


@pytest.mark.usefixtures("nothing_installed")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "tpu:v5e",
            'tpu:v5e needs XLA:TPU, which is not installed: pip install "jax[tpu]"',
        ),
        (
            "cuda:h100:8",
            f"cuda:h100:8 needs XLA:GPU, which is not installed: {CUDA}",
        ),
    ],
)
def test_a_missing_compiler_is_one_line_with_the_command_before_the_block(
    name: str, message: str
) -> None:
    with pytest.raises(ImportError) as caught:
        jitcount.record(targets=["cpu", name])
    assert str(caught.value) == message


def test_an_unknown_target_is_said_before_the_block() -> None:
    with pytest.raises(ValueError, match=r"^unknown target 'tpu:v9'; did you mean tpu:v4, "):
        jitcount.record(targets=["tpu:v9"])


def test_one_name_instead_of_a_list_is_said() -> None:
    with pytest.raises(TypeError) as caught:
        jitcount.record(targets="tpu:v5e")
    assert str(caught.value) == "targets is a sequence of names: ['tpu:v5e']"


def test_a_module_that_is_there_is_found_and_one_that_is_not_is_not() -> None:
    assert installed._is_there("jax.numpy")
    assert not installed._is_there("jax_plugins_that_nobody_has.xla_cuda12")
    assert installed.is_installed(parse("cpu"))


def test_a_gpus_compiler_needs_an_assembler_that_does_not_come_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(installed, "_is_there", lambda _module: True)
    monkeypatch.setattr(installed, "_has_tool", lambda _tool: False)
    assert installed.is_installed(parse("tpu:v5e"))
    assert not installed.is_installed(parse("cuda:h100"))


def test_an_assembler_from_pip_is_found_and_comes_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "nvidia" / "cuda_nvcc" / "bin"
    folder.mkdir(parents=True)
    (folder / "ptxas").touch()
    found = types.SimpleNamespace(submodule_search_locations=[str(tmp_path / "nvidia")])
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: found)
    assert installed.folder_from_pip(PTXAS) == folder
    assert process.environment()["PATH"].split(os.pathsep)[0] == str(folder)
