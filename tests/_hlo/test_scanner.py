"""The parts of an HLO module that a profile needs, read without reading the rest."""

from jitcount._hlo.scanner import scan
from tests._hlo.test_parser import TEXT


def test_computations_with_their_instructions_and_the_tables() -> None:
    module = scan(TEXT)
    assert {name: len(each) for name, each in module.computations.items()} == {
        "add.1": 3,
        "no_percent": 3,
        "main.1": 6,
    }
    assert module.entry == "main.1"
    assert module.tables["FileNames"] == ['"/home/me/model.py"', '"/home/me/a file.py"']
    assert [each.name for each in module.computations["main.1"] if each.is_root] == ["t"]


def test_an_instruction_says_what_it_takes_and_calls_and_where_it_comes_from() -> None:
    _, _, sliced, _, reduce, _ = scan(TEXT).computations["main.1"]
    assert (reduce.opcode, reduce.operands, reduce.called) == ("reduce", ("s", "c"), ("add.1",))
    assert sliced.metadata == {"op_name": r'"f/a, \"b\" = {(c"', "stack_frame_id": "2"}
    assert reduce.metadata == {}
    copied = scan(TEXT).computations["no_percent"][2]
    assert copied.operands == ("gte",)  # with its shape before it


def test_what_is_not_known_is_read_all_the_same() -> None:
    line = "%a = f99[<=4]{0:T(8,128)} frobnicate(f99[4]{0:T(8)} %b, /*index=1*/%c), calls={%d, %e}"
    (found,) = scan(f"ENTRY %main () -> f99[4] {{\n  {line}\n}}\n").computations["main"]
    assert (found.name, found.opcode, found.operands) == ("a", "frobnicate", ("b", "c"))
    branches = "%a = f32[] conditional(%b, %c), branch_computations={%d, %e}, metadata={x=1}"
    (found,) = scan(f"ENTRY %main () -> f32[] {{\n  {branches}\n}}\n").computations["main"]
    assert found.called == ("d", "e")
