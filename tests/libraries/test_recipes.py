"""The recipes of `docs/recipes.md`, each run as it stands with the tool that it is for."""

import re
from pathlib import Path
from typing import Any

import jax
import pytest

from jitcount._registry import registry
from tests.helpers import ROOT, python

PAGE = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^(?:## (.+?)\n\n)?```py\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
RECIPES = dict(BLOCKS[1:])
TOOLS = {
    "pandas": "pandas",
    "Weights & Biases": "wandb",
    "TensorBoard": "tensorboardX",
    "OpenTelemetry": "opentelemetry.sdk",
    "Prometheus": "prometheus_client",
}


def test_each_recipe_is_tried() -> None:
    assert list(RECIPES) == list(TOOLS)


def run(tool: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run a recipe in a folder of its own; gives its names."""
    pytest.importorskip(TOOLS[tool])
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {"__name__": "__main__"}
    jax.clear_caches()
    with registry.own_history():
        exec(BLOCKS[0][1] + RECIPES[tool], names)  # noqa: S102
    return names


def test_pandas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = run("pandas", tmp_path, monkeypatch)["frame"]
    assert list(frame["function"]) == ["step", "step"]
    assert frame["causes"][1][0]["kind"] == "shape"
    assert re.search(r"step +<string>:13 in train +2 ", capsys.readouterr().out)


def test_weights_and_biases(tmp_path: Path) -> None:
    pytest.importorskip("wandb")
    done = python("-c", BLOCKS[0][1] + RECIPES["Weights & Biases"], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (file,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    written = file.read_bytes()
    assert b"compile/seconds" in written
    assert b"step(float32[7]) at <string>:13 in train" in written


@pytest.mark.filterwarnings("default")
def test_tensorboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = run("TensorBoard", tmp_path, monkeypatch)
    assert next(names["number"]) == 3
    (file,) = tmp_path.glob("runs/events*")
    written = file.read_bytes()
    assert written.count(b"compile/seconds") == 2
    assert b"axis 0 of x went from 8 to 7: float32[8] became float32[7]" in written


def test_opentelemetry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry import trace  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: PLC0415
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import (  # noqa: PLC0415
        InMemorySpanExporter,
    )

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    run("OpenTelemetry", tmp_path, monkeypatch)
    spans = exporter.get_finished_spans()
    assert [span.name for span in spans] == ["compile step", "compile step"]
    assert spans[1].attributes["jax.signature"] == ("float32[7]",)
    assert spans[0].start_time < spans[0].end_time <= spans[1].start_time


def test_prometheus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("prometheus_client")
    from prometheus_client import REGISTRY  # noqa: PLC0415

    run("Prometheus", tmp_path, monkeypatch)
    about = {"function": "step"}
    assert REGISTRY.get_sample_value("jax_compiles_total", about) == 2
    assert (REGISTRY.get_sample_value("jax_compile_seconds_total", about) or 0) > 0
