"""The instructions of an optimised program have the lines that they come from."""

from collections import Counter

from jitcount._profile.optimised import OptimisedProgram

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
    found = OptimisedProgram(OPTIMISED).origins_of(unit)
    return {(origin.sites.user.line, origin.transform): weight for origin, weight in found.items()}


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
    for origin, number in OptimisedProgram(OPTIMISED).counts().items():
        counts[origin.sites.user.line, origin.transform] += number
    assert counts == {(4, ""): 3, (5, "backward pass"): 1, (0, ""): 2}
