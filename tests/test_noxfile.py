"""The choice of backends: what is installed where, and what happens without the device."""

import importlib.util
import os
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.helpers import ROOT, nox, sessions


@pytest.fixture(scope="session")
def noxfile() -> ModuleType:
    spec = importlib.util.spec_from_file_location("noxfile", ROOT / "noxfile.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["noxfile"] = module  # dataclasses look themselves up
    spec.loader.exec_module(module)
    return module


def test_every_backend_has_tests_and_benchmarks() -> None:
    backends = ("cpu", "gpu", "tpu")
    assert {f"tests-{backend}" for backend in backends} <= set(sessions())
    assert {f"bench-{backend}" for backend in backends} <= set(sessions())


def test_compilers_without_devices_have_sessions_of_their_own() -> None:
    aot = {name: tags for name, tags in sessions().items() if name.startswith("aot-")}
    assert aot == {"aot-gpu": {"change"}, "aot-tpu": {"change"}}


def test_plain_nox_runs_what_needs_no_device() -> None:
    defaults = [line.split()[1] for line in nox("-l").stdout.splitlines() if line[:2] == "* "]
    assert defaults == ["tests-cpu", "bench-cpu"]


def test_every_session_says_what_it_does() -> None:
    lines = [line for line in nox("-l").stdout.splitlines() if line[:2] in {"* ", "- "}]
    assert lines
    assert all(line.partition(" -> ")[2].endswith(".") for line in lines)


def test_core_is_what_the_page_of_rooms_says(noxfile: ModuleType) -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    tests = noxfile.core_tests(page)
    assert len(tests) == page.count("| core |") > 5
    assert {"tests/_observe", "tests/test_problem.py"} <= set(tests)
    assert [test for test in tests if not (ROOT / test).exists()] == []


@pytest.mark.parametrize(
    ("backend", "release", "cuda", "expected"),
    [
        ("cpu", "", "12", "jax"),
        ("cpu", "0.7.2", "12", "jax==0.7.2"),
        ("gpu", "", "12", "jax[cuda12]"),
        ("gpu", "0.10.2", "13", "jax[cuda13]==0.10.2"),
        ("tpu", "", "13", "jax[tpu]"),
    ],
)
def test_the_install_is_the_backends(
    noxfile: ModuleType, backend: str, release: str, cuda: str, expected: str
) -> None:
    assert noxfile.requirement(noxfile.backends(cuda)[backend], release) == expected


def test_each_backend_is_chosen_by_jax_platforms(noxfile: ModuleType) -> None:
    chosen = {
        name: noxfile.environment(backend)["JAX_PLATFORMS"]
        for name, backend in noxfile.BACKENDS.items()
    }
    assert chosen == {"cpu": "cpu", "gpu": "cuda", "tpu": "tpu"}


def pci_device(directory: Path, vendor: str, device: str) -> Path:
    entry = directory / "0000:00:04.0"
    entry.mkdir()
    (entry / "vendor").write_text(f"{vendor}\n")
    (entry / "device").write_text(f"{device}\n")
    return directory


def test_a_tpu_is_known_by_its_pci_device(noxfile: ModuleType, tmp_path: Path) -> None:
    assert noxfile.has_tpu(pci_device(tmp_path, "0x1ae0", "0x0063"))


def test_a_google_network_card_is_no_tpu(noxfile: ModuleType, tmp_path: Path) -> None:
    assert not noxfile.has_tpu(pci_device(tmp_path, "0x1ae0", "0x0042"))


def test_a_machine_without_a_pci_bus_has_no_tpu(noxfile: ModuleType, tmp_path: Path) -> None:
    assert not noxfile.has_tpu(tmp_path / "nowhere")


def fake_nvidia_smi(directory: Path, script: str) -> None:
    tool = directory / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ('echo "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)"', True),
        ('echo "No devices found."', False),
        ('echo "GPU 0: stale"; exit 9', False),
    ],
)
def test_a_gpu_is_known_by_its_driver(
    noxfile: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    script: str,
    expected: bool,  # noqa: FBT001
) -> None:
    fake_nvidia_smi(tmp_path, script)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert noxfile.has_nvidia_gpu() is expected


def test_a_machine_without_the_driver_has_no_gpu(
    noxfile: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not noxfile.has_nvidia_gpu()


def test_jaxs_own_tests_need_a_checkout_and_say_how_to_make_one() -> None:
    done = nox("-s", "jax-tests", "--no-venv", env={"JITCOUNT_JAX_TESTS": None})
    assert done.returncode == 1
    assert "JITCOUNT_JAX_TESTS is not set: nothing was installed or run." in done.stderr
    assert "git clone --depth 1 --branch jax-v0.10.2 https://" in done.stderr


@pytest.mark.skipif(
    shutil.which("nvidia-smi") is not None, reason="this machine may have the device"
)
@pytest.mark.parametrize("kind", ["tests", "bench"])
def test_a_session_without_its_device_fails_before_it_installs_anything(kind: str) -> None:
    done = nox("-s", f"{kind}-gpu", "--no-venv")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"nox > Session {kind}-gpu aborted: {kind}-gpu needs an NVIDIA GPU, and this machine has "
        f"none: nothing was installed or run. {kind}-cpu needs no device."
    )
    assert "install jax" not in done.stderr


def test_a_wrong_cuda_release_is_refused(tmp_path: Path) -> None:
    fake_nvidia_smi(tmp_path, 'echo "GPU 0: NVIDIA H100"')
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = nox("-s", "tests-gpu", "--no-venv", env={"PATH": path, "JITCOUNT_CUDA": "11"})
    assert done.returncode == 1
    assert "JITCOUNT_CUDA is '11'; it can be 12 or 13" in done.stderr
