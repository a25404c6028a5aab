"""Programs over two devices, from the text of one of them; no compiler of a target is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from jitcount._emulate.shardings import part_of
from jitcount._emulate.translate import NotKnownError, translate
from jitcount._jax.replacing import Shards
from jitcount._jax.substituting import substituted
from tests._emulate.cases import module

if TYPE_CHECKING:
    from jitcount._jax.substituting import Compilable

pytestmark = pytest.mark.two_devices

ROWS, WHOLE = "{devices=[2,1]<=[2]}", "{replicated}"
X = np.arange(24, dtype=np.float32).reshape(4, 6)
UPPER, LOWER = X[:2], X[2:]
_CHANNEL = "channel_id=1, replica_groups={{0,1}}"
_GLOBAL = f"{_CHANNEL}, use_global_device_ids=true"
_numbers = iter(range(1_000_100, 1_000_200))


def _region(opcode: str, element: str = "f32") -> str:
    return (
        f"by (a: {element}[], b: {element}[]) -> {element}[]\n%a = {element}[] parameter(0)\n"
        f"%b = {element}[] parameter(1)\nROOT %z = {element}[] {opcode}(%a, %b)"
    )


def _of_packed(opcode: str) -> str:
    """As XLA:TPU combines booleans, four in each word: each by itself."""
    lines = []
    for at in range(4):
        for name in "ab":
            lines += [
                f"%{name}s{at} = u32[] shift-right-logical(%{name}, %c{at})",
                f"%{name}o{at} = u8[] convert(%{name}s{at})",
                f"%{name}p{at} = pred[] convert(%{name}o{at})",
            ]
        lines += [
            f"%p{at} = pred[] {opcode}(%ap{at}, %bp{at})",
            f"%o{at} = u8[] convert(%p{at})",
            f"%w{at} = u32[] convert(%o{at})",
            f"%s{at} = u32[] shift-left(%w{at}, %c{at})",
        ]
    constants = [f"%c{at} = u32[] constant({8 * at})" for at in range(4)]
    first = "by (a: u32[], b: u32[]) -> u32[]\n%a = u32[] parameter(0)\n%b = u32[] parameter(1)"
    last = "%i = u32[] or(%s0, %s1)\n%j = u32[] or(%i, %s2)\nROOT %z = u32[] or(%j, %s3)"
    return "\n".join([first, *constants, *lines, last])


def _packed(opcode: str) -> str:
    """Which of the first eight numbers of each device are less than 3 modulo 5: in two words."""
    return module(
        "%p0 = f32[2,6]{1,0} parameter(0)\n%flat = f32[1,12]{1,0} reshape(%p0)\n"
        "%eight = f32[1,8]{1,0} slice(%flat), slice={[0:1], [0:8]}\n"
        "%five = f32[] constant(5)\n%fives = f32[1,8]{1,0} broadcast(%five), dimensions={}\n"
        "%rest = f32[1,8]{1,0} remainder(%eight, %fives)\n"
        "%three = f32[] constant(3)\n%threes = f32[1,8]{1,0} broadcast(%three), dimensions={}\n"
        "%less = pred[1,8]{1,0} compare(%rest, %threes), direction=LT\n"
        "%words = u32[2]{0} bitcast(%less)\n"
        f"%all = u32[2]{{0}} all-reduce(%words), {_GLOBAL}, to_apply=%by\n"
        "%b = pred[1,8]{1,0} bitcast(%all)\nROOT %r = f32[1,8]{1,0} convert(%b)",
        _of_packed(opcode),
    )


def _run(text: str, result: np.ndarray, sharding: str) -> Any:
    """Each of two devices has two rows, and runs the text."""
    mesh = Mesh(np.array(jax.devices()[:2]), ("x",))
    x = jax.device_put(X, NamedSharding(mesh, P("x")))
    out = NamedSharding(mesh, P("x") if sharding == ROWS else P())

    def substitute(compilable: Compilable) -> Any:
        (given,), (made,) = compilable.signature()
        shards = Shards((ROWS,), (sharding,), (part_of(given, ROWS),), (part_of(made, sharding),))
        translated = translate(text, devices=compilable.devices)
        return compilable.compile(compilable.with_body(translated.text, shards))

    with substituted(substitute, next(_numbers)):
        f = jax.jit(lambda _: jax.numpy.zeros(result.shape, result.dtype), out_shardings=out,
                    keep_unused=True)  # fmt: skip
        made = f(x)
    assert made.sharding.is_equivalent_to(out, made.ndim)
    return np.asarray(made)


def _of(operation: str, *computations: str) -> str:
    return module(f"%p0 = f32[2,6]{{1,0}} parameter(0)\nROOT %r = {operation}", *computations)


TURNED = "channel_id=1, source_target_pairs={{0,1},{1,0}}"
ONE_WAY = "channel_id=1, source_target_pairs={{0,1}}"
EXCHANGED = np.concatenate([UPPER[:1], LOWER[:1], UPPER[1:], LOWER[1:]])
SIDE = np.concatenate([UPPER[:, :3] + LOWER[:, :3], UPPER[:, 3:] + LOWER[:, 3:]])

CASES = {
    "sum": (
        _of(f"f32[2,6]{{1,0}} all-reduce(%p0), {_GLOBAL}, to_apply=%by", _region("add")),
        (UPPER + LOWER, WHOLE),
    ),
    "maximum": (
        _of(f"f32[2,6]{{1,0}} all-reduce(%p0), {_GLOBAL}, to_apply=%by", _region("maximum")),
        (LOWER, WHOLE),
    ),
    "started sum": (
        module(
            "%p0 = f32[2,6]{1,0} parameter(0)\n"
            f"%s = f32[2,6]{{1,0}} all-reduce-start(%p0), {_GLOBAL}, to_apply=%by\n"
            "ROOT %r = f32[2,6]{1,0} all-reduce-done(%s)",
            _region("add"),
        ),
        (UPPER + LOWER, WHOLE),
    ),
    "started sum, with its operand": (
        module(
            "%p0 = f32[2,6]{1,0} parameter(0)\n"
            f"%s = ((f32[2,6]{{1,0}}), f32[2,6]{{1,0}}) all-reduce-start(%p0), {_GLOBAL}, "
            "to_apply=%by\nROOT %r = f32[2,6]{1,0} all-reduce-done(%s)",
            _region("add"),
        ),
        (UPPER + LOWER, WHOLE),
    ),
    "gather": (
        _of(f"f32[4,6]{{1,0}} all-gather(%p0), {_GLOBAL}, dimensions={{0}}"),
        (X, WHOLE),
    ),
    "scatter": (
        _of(
            f"f32[2,3]{{1,0}} reduce-scatter(%p0), {_GLOBAL}, dimensions={{1}}, to_apply=%by",
            _region("add"),
        ),
        (SIDE, ROWS),
    ),
    "permute": (
        _of(f"f32[2,6]{{1,0}} collective-permute(%p0), {TURNED}"),
        (np.concatenate([LOWER, UPPER]), ROWS),
    ),
    "permute to one": (
        _of(f"f32[2,6]{{1,0}} collective-permute(%p0), {ONE_WAY}"),
        (np.concatenate([0 * UPPER, UPPER]), ROWS),
    ),
    "started permute": (
        module(
            "%p0 = f32[2,6]{1,0} parameter(0)\n"
            "%s = (f32[2,6]{1,0}, f32[2,6]{1,0}, u32[], u32[]) collective-permute-start(%p0), "
            f"{TURNED}\nROOT %r = f32[2,6]{{1,0}} collective-permute-done(%s)"
        ),
        (np.concatenate([LOWER, UPPER]), ROWS),
    ),
    "exchange": (
        _of(f"f32[2,6]{{1,0}} all-to-all(%p0), {_CHANNEL}, dimensions={{0}}"),
        (EXCHANGED, ROWS),
    ),
    "exchange of a tuple": (
        module(
            "%p0 = f32[2,6]{1,0} parameter(0)\n"
            "%one = f32[1,6]{1,0} slice(%p0), slice={[0:1], [0:6]}\n"
            "%two = f32[1,6]{1,0} slice(%p0), slice={[1:2], [0:6]}\n"
            f"%t = (f32[1,6]{{1,0}}, f32[1,6]{{1,0}}) all-to-all(%one, %two), {_CHANNEL}\n"
            "%a = f32[1,6]{1,0} get-tuple-element(%t), index=0\n"
            "%b = f32[1,6]{1,0} get-tuple-element(%t), index=1\n"
            "ROOT %r = f32[2,6]{1,0} concatenate(%a, %b), dimensions={0}"
        ),
        (EXCHANGED, ROWS),
    ),
    "which": (
        module(
            "%p0 = f32[2,6]{1,0} parameter(0)\n%i = u32[] partition-id()\n"
            "%f = f32[] convert(%i)\n%b = f32[2,6]{1,0} broadcast(%f), dimensions={}\n"
            "%o = u32[] replica-id()\n%g = f32[] convert(%o)\n"
            "%c = f32[2,6]{1,0} broadcast(%g), dimensions={}\n"
            "%m = f32[2,6]{1,0} multiply(%p0, %b)\nROOT %r = f32[2,6]{1,0} add(%m, %c)"
        ),
        (np.concatenate([0 * UPPER, LOWER]), ROWS),
    ),
    "beside a fusion": (
        module(
            "%p0 = f32[2,6]{1,0} parameter(0)\n"
            "%s = (f32[2,6]{1,0}, f32[4,6]{1,0}, s32[2], u32[]) fusion(%p0), kind=kCustom, "
            "calls=%begun\n%a = f32[2,6]{1,0} get-tuple-element(%s), index=0\n"
            "%b = f32[4,6]{1,0} get-tuple-element(%s), index=1\n"
            "ROOT %r = f32[4,6]{1,0} fusion(%a, %b), kind=kCustom, calls=%ended",
            "begun (p: f32[2,6]) -> (f32[2,6], f32[4,6], s32[2], u32[])\n"
            "  %p = f32[2,6]{1,0} parameter(0)\n"
            f"  %g = f32[4,6]{{1,0}} all-gather(%p), {_GLOBAL}, dimensions={{0}}\n"
            "  ROOT %c = (f32[2,6]{1,0}, f32[4,6]{1,0}, s32[2], u32[]) custom-call(%g), "
            'custom_call_target="AsyncCollectiveStart"',
            "ended (q: f32[2,6], h: f32[4,6]) -> f32[4,6]\n"
            "  %q = f32[2,6]{1,0} parameter(0)\n  %h = f32[4,6]{1,0} parameter(1)\n"
            f"  %again = f32[4,6]{{1,0}} all-gather(%q), {_GLOBAL}, dimensions={{0}}\n"
            "  ROOT %d = f32[4,6]{1,0} custom-call(%q, %h, %again), "
            'custom_call_target="AsyncCollectiveDone"',
        ),
        (X, WHOLE),
    ),
    "several sums": (
        module(
            "%p0 = f32[2,6]{1,0} parameter(0)\n%n = f32[2,6]{1,0} negate(%p0)\n"
            "%t = (f32[2,6]{1,0}, f32[2,6]{1,0}) all-reduce(%p0, %n), "
            f"{_GLOBAL}, to_apply=%by\n%a = f32[2,6]{{1,0}} get-tuple-element(%t), index=0\n"
            "%b = f32[2,6]{1,0} get-tuple-element(%t), index=1\n"
            "ROOT %r = f32[2,6]{1,0} subtract(%a, %b)",
            _region("add"),
        ),
        (2 * (UPPER + LOWER), WHOLE),
    ),
    "sum of 16 bits": (
        module(
            "%p0 = f32[2,6]{1,0} parameter(0)\n%h = bf16[2,6]{1,0} convert(%p0)\n"
            f"%s = bf16[2,6]{{1,0}} all-reduce(%h), {_GLOBAL}, to_apply=%by\n"
            "ROOT %r = f32[2,6]{1,0} convert(%s)",
            _region("add", "bf16"),
        ),
        (UPPER + LOWER, WHOLE),
    ),
}


IS_LESS = [(each.ravel()[:8] % 5 < 3).astype(np.float32) for each in (UPPER, LOWER)]
CASES |= {
    "all of booleans in words": (_packed("and"), (np.minimum(*IS_LESS)[None], WHOLE)),
    "any of booleans in words": (_packed("or"), (np.maximum(*IS_LESS)[None], WHOLE)),
}


@pytest.mark.parametrize("name", CASES)
def test_devices_speak_with_each_other(name: str) -> None:
    text, (wanted, sharding) = CASES[name]
    np.testing.assert_array_equal(_run(text, wanted, sharding), wanted)


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        (
            f"f32[2,6]{{1,0}} collective-broadcast(%p0), {_CHANNEL}",
            "collective-broadcast between 2 devices",
        ),
        (
            f"f32[2,6]{{1,0}} all-reduce(%p0), {_GLOBAL}, to_apply=%by",
            "all-reduce by subtract",
        ),
    ],
)
def test_what_devices_cannot_do_here_is_named(operation: str, why: str) -> None:
    with pytest.raises(NotKnownError) as error:
        translate(_of(operation, _region("subtract")), devices=2)
    assert str(error.value) == why


def test_a_reducer_of_several_steps_is_not_taken_for_its_last() -> None:
    text = module(
        "%p0 = u32[2]{0} parameter(0)\n"
        f"ROOT %r = u32[2]{{0}} all-reduce(%p0), {_GLOBAL}, to_apply=%by",
        _of_packed("xor"),
    )
    with pytest.raises(NotKnownError) as error:
        translate(text, devices=2)
    assert str(error.value) == "all-reduce by or"


def test_sums_between_devices_are_perturbed_too() -> None:
    text, _ = CASES["sum"]
    assert translate(text, devices=2, perturbation_seed=1).text.count("all_reduce") == 2
