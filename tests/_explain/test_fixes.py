import itertools
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from jitcount._explain.caller import Caller
from jitcount._explain.causes import AnyCause
from jitcount._explain.causes.arguments import StaticField, StaticFunction, StaticValue
from jitcount._explain.causes.arrays import Dtype, Shape, WeakType
from jitcount._explain.causes.cause import Kind
from jitcount._explain.causes.functions import FirstCall, NewFunction, Transform, Unknown
from jitcount._explain.clock import clock_of_phases, clock_seconds
from jitcount._explain.compile import Compile
from jitcount._explain.fixes import fixes, worst
from jitcount._observe.array_type import ArrayType
from jitcount._observe.call_site import CallSite
from tests.helpers import STEP_COMPILED

BASE = replace(STEP_COMPILED, compile_s=1.0)


def compiled(*causes: AnyCause, **changes: object) -> Compile:
    return replace(BASE, causes=causes, **changes)


def shape(before: tuple[int, ...], after: tuple[int, ...]) -> Shape:
    return Shape("x", ArrayType("float32", before), ArrayType("float32", after))


FIRST = FirstCall("step")


def test_lengths_of_one_axis_are_summed_up() -> None:
    lengths = [20, 934, 31, 57]
    shapes = [(length, 4) for length in lengths]
    log = [compiled(shape(a, b)) for a, b in itertools.pairwise(shapes)]
    (found,) = fixes([compiled(FIRST), *log])
    assert (found.what, found.call_site) == ("step", "train.py:42 in main")
    assert (found.count, found.seconds) == (3, 3.0)
    assert found.changes == ("axis 0 of x: 20, 31, 57, 934",)
    assert (
        found.advice
        == "pad axis 0 of x to a few lengths with jitcount.bucketed, and mask the padding"
    )


def test_shapes_that_change_in_two_axes_are_summed_up() -> None:
    again = compiled(shape((2, 3), (4, 5)))
    (found,) = fixes([again, again])
    assert found.changes == ("x: float32[2,3], float32[4,5]",)


def static(before: object, after: object, *, is_number: bool = True) -> StaticValue:
    return StaticValue("n", repr(before), repr(after), is_number)


def test_values_of_a_static_argument_are_summed_up() -> None:
    (found,) = fixes([compiled(static(0.1, 0.2)), compiled(static(0.2, 0.3))])
    assert found.changes == ("static argument n: 0.1, 0.2, 0.3",)


@pytest.mark.parametrize("values", [range(9), [f"mode {n}" for n in range(9)]])
def test_a_few_values_that_choose_a_program_are_as_they_should_be(values: Sequence[object]) -> None:
    is_number = isinstance(values, range)
    causes = [static(*pair, is_number=is_number) for pair in itertools.pairwise(values)]
    few, many = ([compiled(FIRST), *map(compiled, causes[:count])] for count in (3, 4))
    assert fixes(few) == []
    (found,) = fixes(many)
    assert (found.code, found.count) == ("JC201", 4)


WANTED: list[AnyCause] = [
    StaticFunction("activation", "sin", "cos"),
    StaticField("state.algorithm", "'sgd'", "'adam'", "State"),
    StaticField("model.training", "True", "False", "Model"),
    Transform("step", "under grad by x", "under grad by y"),
    NewFunction("lib/net.py:3", "object 1", "object 2", "apply", "closure", is_librarys=True),
]


@pytest.mark.parametrize("cause", WANTED, ids=lambda cause: str(cause.kind))
def test_another_program_that_is_wanted_is_no_fix(cause: AnyCause) -> None:
    assert fixes([compiled(FIRST), compiled(cause, shape((3,), (3, 3)))]) == []


def test_what_is_made_anew_each_time_is_a_fix() -> None:
    alike = StaticFunction("activation", "<lambda> at a.py:3", "<lambda> at a.py:3")
    assert [fix.count for fix in fixes([compiled(FIRST), compiled(alike)])] == [1]


def test_what_another_line_calls_with_something_else_is_no_recompile() -> None:
    other = {"call_site": CallSite("test.py:9 in main", "/test.py", 9, "main")}
    elsewhere = [compiled(shape((3,), (3, 3)), **other), compiled(shape((3, 3), (4, 3)), **other)]
    (found,) = fixes([compiled(FIRST), *elsewhere])
    assert (found.count, found.changes) == (1, ("axis 0 of x: 3 → 4",))
    assert len(fixes(elsewhere[:1])) == 1  # the other line is not known: it may be the same data


def test_changes_with_one_advice_are_one_fix() -> None:
    weak = [
        WeakType(place, "float32", is_weak=True, is_scalar=True)
        for place in ("state.loss", "state.rate")
    ]
    log = [
        compiled(FIRST),
        *(compiled(cause, compile_s=s) for cause, s in zip(weak, (1, 2), strict=True)),
    ]
    (found,) = fixes(log)
    assert (found.count, len(found.changes), len(found.advices)) == (2, 2, 1)


def test_the_line_of_a_library_that_calls_is_named() -> None:
    via = CallSite("lib/core.py:5 in run", "/lib/core.py", 5, "run")
    (found,) = fixes([compiled(FIRST, via=via), compiled(shape((3,), (4,)), via=via)])
    assert found.changes[1:] == ("a library calls it at lib/core.py:5 in run",)
    scipy = CallSite("scipy/optimize.py:5 in run", "/scipy/optimize.py", 5, "run")
    (found,) = fixes([compiled(FIRST, via=scipy), compiled(shape((3,), (4,)), via=scipy)])
    assert found.changes == ("axis 0 of x: 3 → 4",)


def test_a_small_recompile_that_happens_once_does_not_matter() -> None:
    small = compiled(shape((3,), (4,)), compile_s=0.01)
    assert worst(fixes([compiled(FIRST), small]), 1.0) == []
    assert len(worst(fixes([compiled(FIRST), small, small]), 1.0)) == 1


def test_the_costliest_comes_first() -> None:
    cause = shape((3,), (4,))
    found = fixes(
        [compiled(cause), compiled(cause, function="other", compile_s=9.0), compiled(cause)]
    )
    assert [(h.what, h.count, h.seconds) for h in found] == [
        ("other", 1, 9.0),
        ("step", 2, 2.0),
    ]


def test_first_calls_and_disk_hits_are_no_recompiles() -> None:
    cause = shape((3,), (4,))
    assert fixes([compiled(FIRST), compiled(cause, from_disk=True)]) == []


def test_each_change_has_a_fix_of_its_own_counted_after_the_others() -> None:
    dtype = Dtype("y", "float32", "int32")
    shapes = shape((3,), (4,))
    found = fixes([compiled(shapes, dtype), compiled(dtype)])
    assert [(fix.count, fix.changes, fix.advice) for fix in found] == [
        (1, ("y: float32 → int32",), dtype.advice),
        (1, ("axis 0 of x: 3 → 4",), shapes.advice),
    ]


def test_changes_that_only_come_together_are_one_fix_with_two_arrows() -> None:
    shapes, dtype = shape((3,), (4,)), Dtype("y", "float32", "int32")
    (found,) = fixes([compiled(FIRST), compiled(shapes, dtype)])
    assert found.count == 1
    assert set(found.advices) == {shapes.advice, dtype.advice}


def test_lengths_and_values_that_multiply_are_two_fixes() -> None:
    def rate(before: str, after: str) -> StaticValue:
        return StaticValue("lr", before, after, is_number=True)

    lengths = [shape((length,), (length + 1,)) for length in range(3, 7)]
    slow = [compiled(FIRST), *(compiled(cause) for cause in lengths)]
    fast = [compiled(rate("0.1", "0.2")), *(compiled(cause) for cause in lengths)]
    found = fixes([*slow, *fast])
    assert [(fix.code, fix.count) for fix in found] == [("JC101", 8), ("JC201", 1)]


def test_two_arrays_that_change_length_together_are_one_fix_whatever_else_changes() -> None:
    def rate(before: str, after: str) -> StaticValue:
        return StaticValue("lr", before, after, is_number=True)

    def with_lengths(x: int, *causes: AnyCause) -> Compile:
        return compiled(*causes, signature=(f"float32[{x},4]", f"float32[{x - 1}]"))

    def lengths(before: int, after: int) -> tuple[AnyCause, ...]:
        y = [ArrayType("float32", (length - 1,)) for length in (before, after)]
        return shape((before, 4), (after, 4)), Shape("y", *y)

    slow = [with_lengths(6, FIRST), with_lengths(10, *lengths(6, 10))]
    slow.append(with_lengths(8, *lengths(10, 8)))
    fast = [with_lengths(6, rate("0.1", "0.2")), with_lengths(10, *lengths(6, 10))]
    fast.append(with_lengths(8, *lengths(10, 8)))
    found = fixes([*slow, *fast])
    assert [(fix.code, fix.count, len(fix.advices)) for fix in found] == [
        ("JC201", 3, 1),
        ("JC101", 2, 2),
    ]


def test_what_was_compiled_ahead_of_time_was_meant() -> None:
    assert fixes([compiled(FIRST), compiled(shape((3,), (4,)), ahead_of_time=True)]) == []


def test_savings_are_seconds_of_the_clock_and_add_up() -> None:
    log = [
        compiled(shape((3,), (4,)), function="step", started_at=100.0, compile_s=4.0),
        compiled(shape((3,), (4,)), function="load", started_at=101.0, compile_s=2.0),
        compiled(shape((3,), (4,)), function="eval", started_at=200.0, compile_s=1.0),
    ]
    assert [(fix.what, fix.seconds) for fix in fixes(log)] == [
        ("step", 2.0),
        ("load", 2.0),
        ("eval", 1.0),
    ]


def test_what_saves_more_than_one_that_is_listed_is_listed_before_it() -> None:
    cheap = operations("abcdef", MODEL_INIT, compile_s=0.001)
    again = [compiled(shape((3,), (n,)), compile_s=0.003) for n in (4, 5)]
    recompiles = [compiled(FIRST), *again]
    found = fixes([*cheap, *recompiles])
    assert [fix.what for fix in worst(found, 100.0)] == ["model.init", "step"]
    assert worst(fixes(cheap), 100.0) == []


def test_the_phases_of_the_clock_add_up_to_its_seconds() -> None:
    log = [
        compiled(started_at=100.0, trace_s=1.0, lower_s=1.0, compile_s=4.0),
        compiled(started_at=102.0, trace_s=1.0, lower_s=0.0, compile_s=2.0),  # in a thread
        compiled(started_at=200.0, trace_s=5.0, lower_s=1.0, compile_s=1.0),
        compiled(started_at=201.0, trace_s=1.0, lower_s=0.5, compile_s=0.5),  # in that trace
        compiled(trace_s=0.25, lower_s=0.5, compile_s=1.0),
    ]
    phases = clock_of_phases(log)
    assert phases == {"trace_s": 6.25, "lower_s": 3.0, "compile_s": 5.5}
    assert sum(phases.values()) == clock_seconds(log)


# --- Operations outside of jit --------------------------------------------------------------------

SCRIPT = CallSite("train.py:35 in main", "/train.py", 35, "main")
INSIDE = CallSite("model.py:8 in __call__", "/model.py", 8, "__call__")
MODEL_INIT = Caller(site=SCRIPT, calls="model.init", jitted="jax.jit(model.init)(...)")
DENSE = Caller(site=INSIDE, calls="dense", jitted="jax.jit(dense)(...)")


def operations(names: str, *callers: Caller, **changes: object) -> list[Compile]:
    site = callers[-1].site if callers else SCRIPT
    return [
        compiled(
            FirstCall(name),
            **{"function": name, "eager": True, "callers": callers, "call_site": site} | changes,
        )
        for name in names
    ]


def test_operations_belong_to_the_call_that_explains_most() -> None:
    log = operations("abcde", MODEL_INIT, DENSE) + operations("fgh", MODEL_INIT)
    (found,) = fixes(log)
    assert found.in_words == "model.init at train.py:35 in main: 8 operations outside of jit"
    assert (found.code, found.seconds, found.is_at_most) == ("JC501", 8.0, True)
    assert found.advices == ("jax.jit(model.init)(...)",)


def test_a_call_that_cannot_be_jitted_is_not_named() -> None:
    loop = Caller(site=SCRIPT, calls="train", why_not="it loops")
    (found,) = fixes(operations("abcde", loop, DENSE))
    assert found.in_words == "dense at model.py:8 in __call__: 5 operations outside of jit"


def test_a_call_that_runs_a_jitted_function_is_a_driver() -> None:
    step = compiled(FIRST, callers=(MODEL_INIT,))
    (found,) = fixes([step, *operations("abcde", MODEL_INIT)])
    assert found.in_words == "train.py:35 in main: 5 operations outside of jit"
    assert found.advices == ("compute what line 35 computes in a jitted function, or with NumPy",)


def test_the_lines_of_a_library_that_cannot_be_jitted_are_named() -> None:
    train = Caller(site=SCRIPT, calls="lib.train", why_not="it loops", library="lib")
    via = CallSite("lib/core.py:5 in train", "/lib/core.py", 5, "train")
    (found,) = fixes(operations("abcde", train, via=via))
    assert found.changes == ("a library compiles them at lib/core.py:5 in train",)
    assert found.advices == (
        (
            "nothing to jit here; to keep them for the next run: JAX_COMPILATION_CACHE_DIR=FOLDER "
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0"
        ),
    )


def test_what_a_library_does_in_a_function_that_it_calls_is_of_its_call() -> None:
    run = Caller(site=SCRIPT, calls="lib.run", why_not="it loops", library="lib")
    sample = Caller(site=INSIDE, calls="lib.sample", library="lib")
    via = CallSite("lib/core.py:5 in run", "/lib/core.py", 5, "run")
    log = operations("abc", run, via=via) + operations("defg", run, sample, via=via)
    (found,) = fixes(log)
    assert found.in_words == "train.py:35 in main: 7 operations outside of jit"
    assert found.advices[0].startswith("nothing to jit here")


def test_there_is_nothing_to_jit_where_a_library_makes_an_object() -> None:
    make = Caller(site=SCRIPT, calls="lib.Model", why_not="it makes an object", library="lib")
    via = CallSite("lib/core.py:5 in __init__", "/lib/core.py", 5, "__init__")
    (found,) = log = fixes(operations("abcde", make, via=via))
    assert found.advices[0].startswith("nothing to jit here")
    assert worst(log, 51.0) == []
    assert worst(log, 50.0) == log


DRAW = Caller(site=SCRIPT, calls="plt.plot", why_not="plt is no array", library="matplotlib")


def test_a_library_that_knows_numpy_only_is_given_what_numpy_makes() -> None:
    via = CallSite("matplotlib/units.py:64 in f", "/matplotlib/units.py", 64, "f")
    (found,) = fixes(operations("ab", DRAW, via=via))
    assert found.advices == (
        "matplotlib calls JAX for an array of JAX's at line 35: pass it np.asarray(...) of that",
    )
    assert (found.count, found.seconds, found.is_at_most) == (2, 2.0, False)


def test_a_call_in_which_numpy_needs_values_cannot_be_jitted() -> None:
    solve = replace(MODEL_INIT, library="lib")
    scipy = Caller(site=INSIDE, calls="scipy.integrate", library="scipy")
    update = Caller(site=INSIDE, calls="lib.update", jitted="jax.jit(update)", library="lib")
    via = CallSite("lib/core.py:5 in solve", "/lib/core.py", 5, "solve")
    log = operations("abcde", solve, via=via) + operations("f", solve, scipy)
    log += operations("ghijk", update, via=via)
    found = fixes(log)
    assert [fix.is_only_kept for fix in found] == [True, True, False]
    assert found[2].advice.startswith("SciPy calls JAX")


def test_a_loop_is_a_program_by_itself_which_a_jit_compiles_as_well() -> None:
    scan = {"function": "scan"}
    longer = [replace(each, causes=(shape((3,), (4,)),)) for each in operations("ab", **scan)]
    assert fixes(longer) == []
    anew = NewFunction("train.py:9", "object 1", "object 2", "body", "closure", operation="scan")
    made_anew = [replace(each, causes=(anew,)) for each in longer]
    assert [fix.count for fix in fixes(made_anew)] == [2]
    run = Caller(site=SCRIPT, calls="solver.run", why_not="it loops", library="lib")
    via = CallSite("lib/core.py:5 in run", "/lib/core.py", 5, "run")
    (found,) = fixes([replace(each, callers=(run,), via=via) for each in made_anew])
    assert found.advice == (
        "the library makes its loops anew at each call: make the object that has them once, "
        "or call it inside of a jitted function"
    )


def test_an_import_that_compiles_names_the_module_and_its_line() -> None:
    statement = Caller(site=SCRIPT, why_not="it is an import", imports="lib.tables")
    via = CallSite("lib/tables.py:3 in <module>", "/lib/tables.py", 3, "<module>")
    (found,) = fixes(operations("ab", statement, via=via))
    assert (found.code, found.in_words) == (
        "JC502",
        "import lib.tables at train.py:35 in main: 2 operations",
    )
    assert found.advices == ("make constants with NumPy at lib/tables.py:3 in <module>",)


def test_few_operations_are_not_worth_a_jit() -> None:
    assert fixes(operations("abcd", MODEL_INIT)) == []


def test_an_operation_that_is_compiled_again_and_again_is_worth_a_look() -> None:
    first, *again = operations("aaa")
    again = [replace(each, causes=(shape((n,), (n + 1,)),)) for n, each in enumerate(again)]
    (found,) = fixes([first, *again])
    assert found.in_words == "train.py:35 in main: 3 operations outside of jit"
    assert found.advices == ("compute what line 35 computes in a jitted function, or with NumPy",)


def test_what_happened_is_counted_and_not_the_last_of_it() -> None:
    to_scalar, to_table = shape((3,), ()), shape((3,), (3, 3))
    (found,) = fixes([compiled(to_scalar), compiled(to_table), compiled(to_table)])
    assert found.changes == (
        "x: float32[3] → float32[3,3]",
        "x: float32[3] → float32[]",
    )


def test_a_fix_has_the_code_of_its_kind() -> None:
    (found,) = fixes([compiled(shape((3,), (4,)))])
    assert (found.code, found.title, found.compiles) == ("JC101", "shape", (found.compiles[0],))


def test_without_advice_there_is_no_fix() -> None:
    assert fixes([compiled(Unknown("", "nothing that can be seen of the call differs"))]) == []


def test_each_kind_has_a_code_of_its_own() -> None:
    assert len({kind.code for kind in Kind}) == len(Kind)
    static = Kind.STATIC_ARGUMENT
    assert (static.code, static.in_words) == ("JC201", "static argument")


def test_the_dtype_to_cast_to_holds_all_that_were_seen() -> None:
    dtypes = "int32", "float32", "bool", "complex64"
    log = [compiled(FIRST)]
    log += [
        compiled(Dtype("n", before, after, is_scalar=True))
        for before, after in itertools.pairwise(dtypes)
    ]
    (found,) = fixes(log)
    assert found.advices == ("give it that dtype in every call: jnp.complex64(n)",)
    assert Dtype("n", "int32", "float32", is_scalar=True).advice == (
        "give it that dtype in every call: jnp.float32(n)"
    )
    assert Dtype("n", "float32", "bool").advice == "cast it before the call: n.astype('float32')"
    assert Dtype("n", "key<fry>", "uint32").advice == (
        "cast it before the call: n.astype('key<fry>')"
    )
