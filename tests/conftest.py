import os
import sys
from collections.abc import Iterator
from pathlib import Path

# Before JAX is imported: a second CPU device, to see what committing an array does.
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "2")

import jax
import pytest
from jaxlib import xla_client

from jitcount._jax import executables
from jitcount._ledger.environment import environment
from jitcount._targets.installed import is_installed
from jitcount._targets.names import parse

pytest_plugins = ["tests.expected"]  # --update-expected

for _name in ("COLUMNS", "FORCE_COLOR", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
    os.environ.pop(_name, None)  # where the tests run must not change what is tested


# Before, the plugin wants CUDA's own libraries (0.8), or takes no description of a chip (0.9).
CUDA_SINCE = (0, 10, 0)
NOT_YET = "XLA:GPU compiles without a device from JAX 0.10 on"


def pytest_report_header() -> str:
    return f"backend: {environment()}"


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("two_devices") and jax.device_count() < 2:
        pytest.skip("needs two devices")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test marked ``aot(target, ...)`` needs the compilers of these targets."""
    for item in items:
        for marker in item.iter_markers("aot"):
            for target in map(parse, marker.args):
                if not is_installed(target):
                    item.add_marker(pytest.mark.skip(reason=f"no compiler for {target.name}"))
                elif target.platform == "cuda" and jax.__version_info__ < CUDA_SINCE:
                    item.add_marker(pytest.mark.skip(reason=NOT_YET))


@pytest.fixture(autouse=True)
def empty_caches() -> None:
    """No test's counts depend on what an earlier one compiled."""
    jax.clear_caches()


@pytest.fixture
def disk_cache(tmp_path: Path) -> Iterator[None]:
    """A persistent compilation cache of the test's own."""
    from jax.experimental.compilation_cache import compilation_cache  # noqa: PLC0415

    settings = {
        "jax_compilation_cache_dir": str(tmp_path),
        "jax_persistent_cache_min_entry_size_bytes": -1,
        "jax_persistent_cache_min_compile_time_secs": 0.0,
    }
    before = {name: jax.config.values[name] for name in settings}
    for name, value in settings.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()
    yield
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()


@pytest.fixture
def fake_uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a uv into the path that needs no network; returns the file with its calls."""
    tool, calls = tmp_path / "tools" / "uv", tmp_path / "calls"
    tool.parent.mkdir()
    fake = Path(__file__).with_name("fake_uv.py")
    tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{fake}" "$@"\n')
    tool.chmod(0o755)
    calls.touch()
    monkeypatch.setenv("PATH", f"{tool.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("FAKE_UV_CALLS", str(calls))
    return calls


@pytest.fixture(scope="session")
def executables_travel() -> None:
    """What a process has compiled, another one loads without a word: not on every machine."""
    devices = jax.devices("cpu")[:1]
    options = executables.written_options(xla_client.CompileOptions())
    module = jax.jit(lambda x: x + 1).lower(1.0).compiler_ir("stablehlo")
    made = executables.compile_as(str(module).encode(), options, devices)
    if not executables.written_executable(made, options, devices):
        pytest.skip("this JAX, or this machine, does not load what it has compiled")
