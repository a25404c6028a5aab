"""Runs a target's program here, from its text: without the target's compiler, in this process."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest

from jitcount._emulate.arithmetic import EXACT, Arithmetic
from jitcount._emulate.translate import translate
from jitcount._emulate.writer import numpy_type
from jitcount._hlo import parser
from jitcount._hlo.parser import flat
from jitcount._jax.substituting import substituted
from tests._emulate.cases import QUICKLY

Run = Callable[..., list[np.ndarray]]

_NUMBER = 77


@pytest.fixture
def x64() -> Iterator[None]:
    """With 64 bits: HLO has them, whatever JAX's default is."""
    before = jax.config.values["jax_enable_x64"]
    jax.config.update("jax_enable_x64", val=True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.fixture
def run_text() -> Run:
    """Compile a translated text in place of a function with the same signature, and run it."""

    def run(text: str, results: list[jax.ShapeDtypeStruct], *arguments: Any) -> list[np.ndarray]:
        def stand_in(*_: Any) -> list[Any]:
            return [jax.numpy.zeros(each.shape, each.dtype) for each in results]

        with substituted(lambda c: c.compile(c.with_body(text)), _NUMBER):
            made = jax.jit(stand_in, keep_unused=True, compiler_options=QUICKLY)(*arguments)
        return [np.asarray(each) for each in made]

    return run


@pytest.fixture
def run_hlo(x64: None, run_text: Run) -> Run:
    """Translate the text of an HLO module, and run it: gives its results, flat."""

    def run(
        text: str, *arguments: Any, arithmetic: Arithmetic = EXACT, **how: Any
    ) -> list[np.ndarray]:
        translated = translate(text, arithmetic, **how)
        results = [
            jax.ShapeDtypeStruct(shape.extents, numpy_type(shape.element))
            for shape in flat(parser.parse(text).entry.root.shapes)
        ]
        return run_text(translated.text, results, *arguments)

    return run
