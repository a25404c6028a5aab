"""All cases that every backend runs, in the order in which they run."""

from __future__ import annotations

from jitcount._suite.algebra_cases import ALGEBRA_CASES
from jitcount._suite.array_cases import ARRAY_CASES
from jitcount._suite.array_class_cases import ARRAY_CLASS_CASES
from jitcount._suite.array_operation_cases import ARRAY_OPERATION_CASES
from jitcount._suite.composite_cases import COMPOSITE_CASES
from jitcount._suite.crash_cases import CRASH_CASES
from jitcount._suite.elementwise_cases import ELEMENTWISE_CASES
from jitcount._suite.function_cases import FUNCTION_CASES
from jitcount._suite.integer_cases import INTEGER_CASES
from jitcount._suite.integer_operation_cases import INTEGER_OPERATION_CASES
from jitcount._suite.long_cases import LONG_CASES
from jitcount._suite.model_cases import MODEL_CASES
from jitcount._suite.moving_cases import MOVING_CASES
from jitcount._suite.moving_class_cases import MOVING_CLASS_CASES
from jitcount._suite.problem_cases import PROBLEM_CASES
from jitcount._suite.product_cases import PRODUCT_CASES
from jitcount._suite.product_class_cases import PRODUCT_CLASS_CASES
from jitcount._suite.reported_cases import REPORTED_CASES
from jitcount._suite.sharded_cases import SHARDED_CASES
from jitcount._suite.sharded_class_cases import SHARDED_CLASS_CASES
from jitcount._suite.sharded_operation_cases import SHARDED_OPERATION_CASES
from jitcount._suite.sum_cases import SUM_CASES
from jitcount._suite.whole_cases import WHOLE_CASES

OPERATION_CASES = (
    *FUNCTION_CASES,
    *INTEGER_OPERATION_CASES,
    *ARRAY_OPERATION_CASES,
    *ALGEBRA_CASES,
    *SHARDED_OPERATION_CASES,
)
"""The cases of single operations; `operations` has the table of what they test."""

CASES = (
    *PROBLEM_CASES,
    *SUM_CASES,
    *ELEMENTWISE_CASES,
    *ARRAY_CASES,
    *WHOLE_CASES,
    *PRODUCT_CASES,
    *MOVING_CASES,
    *LONG_CASES,
    *INTEGER_CASES,
    *COMPOSITE_CASES,
    *REPORTED_CASES,
    *CRASH_CASES,
    *PRODUCT_CLASS_CASES,
    *MOVING_CLASS_CASES,
    *ARRAY_CLASS_CASES,
    *SHARDED_CASES,
    *SHARDED_CLASS_CASES,
    *OPERATION_CASES,
    *MODEL_CASES,
)
