"""The text of a lowered program says where its operations come from."""

from jitcount._hlo.mlir import read_lowered

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
