"""The calls to try are read from what there is to fix."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest

from jitcount._explain.caller import Caller
from jitcount._explain.fix import OUTSIDE_JIT, Fix
from jitcount._observe.call_site import CallSite
from jitcount._try_calls.advised import jitted_calls
from jitcount._try_calls.jitted_call import JittedCall
from tests.helpers import STEP_COMPILED

SITE = CallSite("train.py:35 in main", "/home/me/train.py", 35, "main")
INNER = CallSite("model.py:7 in net", "/home/me/model.py", 7, "net")


def fix(*callers: Caller, code: str = OUTSIDE_JIT, site: CallSite = SITE) -> Fix:
    return Fix(
        code=code,
        title="operations outside of jit",
        what="24 operations were compiled one by one",
        call_site=site,
        count=24,
        seconds=2.9,
        is_at_most=True,
        changes=(),
        advices=("call it under jax.jit",),
        compiles=(msgspec.structs.replace(STEP_COMPILED, callers=callers),),
    )


@pytest.mark.parametrize(
    ("jitted", "wrapper", "static"),
    [
        ("jax.jit(model.init)(...)", "jax.jit", ()),
        ("nnx.jit(model.init)(...)", "nnx.jit", ()),
        ("eqx.filter_jit(model.init)(...)", "eqx.filter_jit", ()),
        (
            "jax.jit(model.init, static_argnames=('train', 'size'))(...)",
            "jax.jit",
            ("train", "size"),
        ),
        ("jax.jit(model.init, static_argnames=('train',))(...)", "jax.jit", ("train",)),
    ],
)
def test_advice_is_read_back(jitted: str, wrapper: str, static: tuple[str, ...]) -> None:
    advised = Caller(site=SITE, calls="model.init", jitted=jitted)
    (call,) = jitted_calls([fix(Caller(site=INNER, calls="jnp.sin"), advised)])
    assert call == JittedCall(SITE.file, 35, "model.init", wrapper, static, str(SITE))
    assert str(call) == jitted


def test_of_several_calls_at_a_line_the_costliest_is_tried() -> None:
    key = Caller(site=SITE, calls="jax.random.key", jitted="jax.jit(jax.random.key)(...)")
    init = Caller(site=SITE, calls="model.init", jitted="jax.jit(model.init)(...)")
    costs = {key: 0.4, init: 0.3}
    compiles = [
        msgspec.structs.replace(STEP_COMPILED, callers=(caller,), compile_s=cost)
        for caller, cost in [*costs.items(), (init, 0.2)]
    ]
    several = dataclasses.replace(fix(), compiles=tuple(compiles))
    assert [call.calls for call in jitted_calls([several])] == ["model.init"]


def test_what_cannot_be_jitted_or_is_another_fix_or_in_no_file_is_left_out() -> None:
    advised = Caller(site=SITE, calls="f", jitted="jax.jit(f)(...)")
    typed = CallSite("<stdin>:1", "", 1, "<module>")
    others = [
        fix(Caller(site=SITE, calls="f", why_not="it loops")),
        fix(Caller(site=INNER, calls="f", jitted="jax.jit(f)(...)")),
        fix(Caller(site=typed, calls="f", jitted="jax.jit(f)(...)"), site=typed),
        fix(advised, code="JC101"),
    ]
    assert jitted_calls(others) == []
    assert len(jitted_calls([*others, fix(advised), fix(advised)])) == 1


def test_a_jit_that_there_is_not() -> None:
    with pytest.raises(ValueError, match=r"'pmap' is no jit; there are jax.jit, nnx.jit, eqx"):
        JittedCall(SITE.file, 1, "f", "pmap")
    with pytest.raises(ValueError, match=r"eqx.filter_jit takes no static_argnames"):
        JittedCall(SITE.file, 1, "f", "eqx.filter_jit", ("n",))
