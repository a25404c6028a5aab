import pytest

from jitcount._emulate.translate import NotKnownError, translate
from jitcount._hlo.locations import SourceTables
from jitcount._hlo.parser import Shape, parse, split

TEXT = r"""HloModule jit_f, is_scheduled=true, entry_computation_layout={(f32[2]{0})->f32[2]{0}}

FileNames
1 "/home/me/model.py"
2 "/home/me/a file.py"

FunctionNames
1 "attention"
2 "<module>"

FileLocations
1 {file_name_id=1 function_name_id=1 line=8 end_line=8 column=4 end_column=9}
2 {file_name_id=2 function_name_id=2 line=20 end_line=20 column=0 end_column=9}

StackFrames
1 {file_location_id=2 parent_frame_id=1}
2 {file_location_id=1 parent_frame_id=2}


%add.1 (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %z = f32[] add(%x, %y)
}

no_percent (y.2: (f32[2], s32[])) -> f32[2] {
  y.2 = (f32[2]{0}, /*index=1*/s32[]) parameter(0)
  gte = f32[2]{0} get-tuple-element((f32[2]{0}, s32[]) y.2), index=0
  ROOT c-1 = f32[2]{0} copy(f32[2]{0} gte)
}, execution_thread="host"

ENTRY %main.1 (b: f32[2], a: f32[3]) -> (f32[2], f32[]) {
  %b = f32[3]{0} parameter(1)
  %a = f32[2]{0:T(128)S(1)} parameter(0), sharding={replicated}, metadata={op_name="a[\'k\']"}
  %s = f32[2]{0} slice(%b), slice={[0:2]}, metadata={op_name="f/a, \"b\" = {(c" stack_frame_id=2}
  %c = f32[] constant(0)
  %r = f32[] reduce(%s, %c), dimensions={0}, to_apply=%add.1, backend_config={"a":[1,{"b":"}"}]}
  ROOT %t = (f32[2]{0:T(128)S(1)}, f32[]) tuple(%a, %r), metadata={op_name="t" stack_frame_id=1}
}
"""


def test_computations_and_the_entry() -> None:
    module = parse(TEXT)
    assert list(module.computations) == ["add.1", "no_percent", "main.1"]
    assert module.entry.name == "main.1"
    assert module.entry.root.name == "t"
    assert [each.name for each in module.entry.parameters] == ["a", "b"]
    assert [each.opcode for each in module.computations["no_percent"].instructions] == [
        "parameter",
        "get-tuple-element",
        "copy",
    ]


def test_an_instruction_with_operands_and_attributes() -> None:
    module = parse(TEXT)
    *_, reduce, root = module.entry.instructions
    assert (reduce.opcode, reduce.operands, reduce.shape) == (
        "reduce",
        ("s", "c"),
        Shape("f32", ()),
    )
    assert reduce.operand_shapes == (Shape("f32", (2,), (0,)), Shape("f32", ()))
    assert reduce.numbers("dimensions") == (0,)
    assert reduce.numbers("nothing") == ()
    assert reduce.called("to_apply") == ["add.1"]
    assert reduce.attributes["backend_config"] == '{"a":[1,{"b":"}"}]}'
    assert root.shapes == (Shape("f32", (2,), (0,), ((128,),)), Shape("f32", ()))
    with pytest.raises(TypeError, match=r"^tuple gives a tuple$"):
        _ = root.shape
    copied = module.computations["no_percent"].root
    assert copied.operands == ("gte",)  # with its shape before it


def test_metadata_with_brackets_and_quotes() -> None:
    sliced = parse(TEXT).entry.instructions[2]
    assert sliced.attributes["slice"] == "{[0:2]}"
    assert sliced.metadata == {
        "op_name": r'"f/a, \"b\" = {(c"',
        "stack_frame_id": "2",
    }
    assert parse(TEXT).entry.instructions[3].metadata == {}


def test_lines_by_the_tables() -> None:
    module = parse(TEXT)
    assert module.tables["FileNames"] == ['"/home/me/model.py"', '"/home/me/a file.py"']
    places = SourceTables(module.tables)
    here = places.site_of(module.entry.instructions[2].metadata)
    assert (here, here.file, here.line) == ("model.py:8 in attention", "/home/me/model.py", 8)
    above = places.site_of(module.entry.root.metadata)
    assert (above.file, above.line) == ("/home/me/a file.py", 20)
    assert SourceTables({}).site_of({"source_file": '"/a/b.py"', "source_line": "3"}) == "b.py:3"
    assert SourceTables({}).site_of({}).line == places.site_of({"stack_frame_id": "99"}).line


def test_commas_outside_of_brackets_and_quotes_split() -> None:
    assert split('%a, f32[2,3]{1,0} %b, /*index=5*/%c, "d, e", {f, (g, h)}') == [
        "%a",
        "f32[2,3]{1,0} %b",
        "%c",
        '"d, e"',
        "{f, (g, h)}",
    ]
    assert split("") == []


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("%a = f32[<=4]{0} parameter(0)", "a dynamic shape f32[<=4]{0}"),
        ("%a = f128[4]{0} parameter(0)", "elements of type f128"),
        ("%a = f32[4]{0} parameter(0", "a bracket that is not closed"),
        ("%a = f32[4]{0}", "no operation in '%a = f32[4]{0}'"),
        ("what is this", "a line that is no instruction: 'what is this'"),
        ("%a = f32[4]{0} frobnicate()", "the operation frobnicate"),
        ("%a = f32[400]{0} constant({...})", "a constant that is not written out"),
        ("%a = (f32[4], f32[4]) parameter(0)", "arguments in a tuple"),
    ],
)
def test_what_is_not_known_is_refused_in_words(line: str, words: str) -> None:
    with pytest.raises(NotKnownError) as error:
        translate(f"HloModule it\n\nENTRY %main () -> f32[4] {{\n  {line}\n}}\n")
    assert str(error.value) == words


def test_an_empty_computation_and_a_module_without_an_entry_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^an empty computation main$"):
        parse("HloModule it\n\nENTRY %main () -> f32[4] {\n}\n")
    with pytest.raises(ValueError, match=r"^a module without an entry$"):
        parse("HloModule it\n")
