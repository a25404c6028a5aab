import pytest

from jitcount._hlo.parser import Shape, flat, parse_shapes


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("f32[]", Shape("f32", ())),
        ("f32[2,3]", Shape("f32", (2, 3))),
        ("bf16[2,3]{0,1}", Shape("bf16", (2, 3), (0, 1))),
        ("f32[8,128]{1,0:T(8,128)}", Shape("f32", (8, 128), (1, 0), ((8, 128),))),
        ("f32[8,128]{1,0:T(8,128)S(1)}", Shape("f32", (8, 128), (1, 0), ((8, 128),))),
        ("bf16[4]{0:T(8,128)(2,1)S(3)}", Shape("bf16", (4,), (0,), ((8, 128), (2, 1)))),
        ("u32[]{:T(128)S(6)}", Shape("u32", (), (), ((128,),))),
        ("s4[8]{0:E(4)}", Shape("s4", (8,), (0,))),
        ("f32[4]{0:S(1)}", Shape("f32", (4,), (0,))),
        ("f32[4,4]{1,0:T(*,128)}", Shape("f32", (4, 4), (1, 0), ((-1, 128),))),
        ("f32[0,2]{1,0}", Shape("f32", (0, 2), (1, 0))),
        ("token[]", Shape("token", ())),
    ],
)
def test_an_array_with_its_layout(text: str, shape: Shape) -> None:
    assert parse_shapes(text) == (shape, len(text))
    assert parse_shapes(f"= {text} add(", 2) == (shape, 2 + len(text))


def test_tuples_however_deep_and_with_comments() -> None:
    text = "(f32[2]{0:T(128)}, (s32[], pred[3]), (), /*index=3*/u8[1], /*index=4*/token[])"
    shapes, end = parse_shapes(text)
    assert end == len(text)
    assert shapes == (
        Shape("f32", (2,), (0,), ((128,),)),
        (Shape("s32", ()), Shape("pred", (3,))),
        (),
        Shape("u8", (1,)),
        Shape("token", ()),
    )
    assert [each.element for each in flat(shapes)] == ["f32", "s32", "pred", "u8", "token"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("f32[<=5,3]{1,0}", "a dynamic shape f32[<=5,3]{1,0}"),
        ("f32[?]", "a dynamic shape f32[?]"),
        ("f4e2m1fn[8]{0}", "elements of type f4e2m1fn"),
        ("opaque[]", "elements of type opaque"),
        ("8 apples", "no shape at '8 apples'"),
    ],
)
def test_what_is_not_known_is_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        parse_shapes(text)
    assert str(error.value) == words


def test_how_stablehlo_writes_it() -> None:
    assert Shape("f32", ()).type == "tensor<f32>"
    assert Shape("c64", (2, 3)).type == "tensor<2x3xcomplex<f32>>"
    assert Shape("u8", (0,)).type == "tensor<0xui8>"
    assert Shape("token", ()).type == "!stablehlo.token"


def test_what_follows_from_a_shape() -> None:
    shape = Shape("bf16", (2, 3, 4), (0, 2, 1), ((8, 128),))
    assert (shape.size, shape.bits, shape.order) == (24, 16, (1, 2, 0))
    assert Shape("f32", (2, 3)).order == (0, 1)
    assert shape.replace("f32") == Shape("f32", (2, 3, 4))  # without a layout
    assert shape.replace(extents=()) == Shape("bf16", ())
