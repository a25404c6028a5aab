"""The texts of programs are read for where their operations come from."""

from collections import Counter

from jitcount._hlo.locations import DeepStacks, Frame, Places
from jitcount._hlo.mlir import read_lowered
from jitcount._observe.call_site import UNKNOWN_SITE
from jitcount._profile.optimised import read_optimised

LOWERED = """\
#loc = loc(unknown)
#loc1 = loc("/me/train.py":4:8 to :25)
#loc2 = loc("/me/train.py":9:4 to :30)
#loc3 = loc("f"(#loc1))
#loc4 = loc("main"(#loc2))
#loc5 = loc(callsite(#loc3 at #loc4))
#loc6 = loc("jit(f)/transpose(jvp())/mul"(#loc5))
#loc7 = loc("sort")
"builtin.module"() <{sym_name = "jit_f"}> ({
  "func.func"() <{function_type = () -> (), sym_name = "main"}> ({
  ^bb0(%arg0: tensor<4xf32> loc("x")):
    %0 = "stablehlo.constant"() <{value = dense_resource<__elided__> : tensor<300000xf32>}> : () \
-> tensor<300000xf32> loc(#loc)
    %1 = "stablehlo.reduce"(%0, %arg0) <{dimensions = array<i64: 1>}> ({
    ^bb0(%arg1: tensor<f32> loc("max"), %arg2: tensor<f32> loc("max")):
      %3 = "stablehlo.maximum"(%arg1, %arg2) : (tensor<f32>) -> tensor<f32> loc(#loc6)
      "stablehlo.return"(%3) : (tensor<f32>) -> () loc(#loc6)
    }) : (tensor<4xf32>) -> tensor<f32> loc(#loc6)
    %2 = "func.call"(%1) <{callee = @sort}> : (tensor<f32>) -> tensor<f32> loc(#loc6)
    "func.return"(%2) : (tensor<f32>) -> () loc(#loc)
  }) : () -> () loc(#loc)
  "func.func"() <{function_type = () -> (), sym_name = "sort"}> ({
  ^bb0(%arg0: tensor<4xf32> loc("x")):
    %0 = "stablehlo.sort"(%arg0) : (tensor<f32>) -> tensor<f32> loc(#loc7)
    "func.return"(%0) : (tensor<f32>) -> () loc(#loc)
  }) : () -> () loc(#loc)
}) : () -> () loc(#loc)
"""

HERE = (("/me/train.py", 4, "f"), ("/me/train.py", 9, "main"))


def test_each_operation_has_its_stack_and_a_called_function_that_of_its_call() -> None:
    found = read_lowered(LOWERED).operations
    assert [operation.stack for operation in found] == [HERE] * 5
    assert found[1].name_stack == "jit(f)/transpose(jvp())/mul"
    assert found[-1].name_stack == "jit(f)/transpose(jvp())/mul/sort"


def test_a_constant_belongs_to_where_it_is_used() -> None:
    assert read_lowered(LOWERED).operations[0].stack == HERE
    assert read_lowered(LOWERED).constants == [("tensor<300000xf32>", HERE)]


OPTIMISED = """\
HloModule jit_f, is_scheduled=true

FileNames
1 "/me/train.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=4 end_line=4 column=8 end_column=25}
2 {file_name_id=1 function_name_id=1 line=5 end_line=5 column=8 end_column=25}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=1}


%region_0.1 (a: f32[], b: f32[]) -> pred[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %lt = pred[] compare(%a, %b), direction=LT, metadata={op_name="sort"}
}

%fused_computation (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  %exp.1 = f32[4]{0} exponential(%p), metadata={op_name="jit(f)/jvp()/exp" stack_frame_id=1}
  ROOT %mul.1 = f32[4]{0} multiply(%exp.1, %p), \
metadata={op_name="jit(f)/transpose(jvp())/mul" stack_frame_id=2}
}

ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  %sort.5 = f32[4]{0} sort(%x), dimensions={0}, to_apply=%region_0.1, \
metadata={op_name="jit(f)/jit(sort)/sort" stack_frame_id=1}
  %copy.3 = f32[4]{0} copy(%sort.5)
  ROOT %fusion = f32[4]{0} fusion(%copy.3), kind=kLoop, calls=%fused_computation
}
"""


def lines_of(unit: str) -> dict[tuple[int, str], int]:
    found = read_optimised(OPTIMISED).origins_of(unit)
    return {(origin.sites.user.line, origin.copy): weight for origin, weight in found.items()}


def test_a_fusion_is_shared_among_its_lines() -> None:
    assert lines_of("fusion") == {(4, ""): 1, (5, "backward pass"): 1}


def test_a_comparison_belongs_to_its_sort() -> None:
    assert lines_of("region_0.1") == lines_of("sort.5") == {(4, ""): 1}


def test_what_xla_has_added_belongs_to_what_takes_it() -> None:
    assert lines_of("copy.3") == lines_of("fusion")


def test_a_unit_that_is_not_in_the_program_has_no_line() -> None:
    assert lines_of("fusion.99") == {}


def test_instructions_are_counted_by_line() -> None:
    counts = Counter[tuple[int, str]]()
    for origin, number in read_optimised(OPTIMISED).counts().items():
        counts[origin.sites.user.line, origin.copy] += number
    assert counts == {(4, ""): 3, (5, "backward pass"): 1, (0, ""): 2}


def frame(line: int) -> Frame:
    return "/me/train.py", line, "f"


def test_frames_that_did_not_call_each_other_come_from_another_program() -> None:
    deep = DeepStacks()
    deep.add((frame(4), frame(9)))
    deep.add((frame(7), frame(9)))
    called, calls = frame(99), frame(1)  # inside of JAX's own function; and what called the program
    assert deep.whole((called, frame(4), frame(9), calls)) == (frame(4), frame(9), calls)
    assert deep.whole((frame(7), frame(4), frame(9), calls)) == (frame(4), frame(9), calls)


def test_outer_frames_that_a_function_was_traced_under_first_are_passed_over() -> None:
    """Up to 0.9 JAX keeps them with the function, which is called from elsewhere now."""
    deep = DeepStacks()
    deep.add((frame(3), frame(9), frame(20)))
    found = deep.whole((frame(3), frame(7), frame(20), frame(9), frame(20)))
    assert found == (frame(3), frame(9), frame(20))


def test_a_stack_of_which_nothing_is_known_stays_as_it_is() -> None:
    stack = (frame(3), frame(7))
    assert DeepStacks().whole(stack) == stack


def test_of_one_line_alone_it_is_known_whether_it_is_the_programs() -> None:
    """Before 0.8 an instruction has a line, and no stack."""
    deep = DeepStacks()
    deep.add((frame(3), frame(7)))
    places = Places({}, deep)
    lines = {n: {"source_file": '"/me/train.py"', "source_line": str(n)} for n in (3, 99)}
    assert (places.of(lines[3]).line, places.of(lines[99])) == (3, UNKNOWN_SITE)
    assert Places({}).of(lines[99]).line == 99
