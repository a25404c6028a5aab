"""How many operations may be moved, so that a program takes no more than three times as long.

Where XLA fuses an addition with its neighbours, it takes a hundredth of a nanosecond, and to move
it takes twenty times as long; a product of small matrices takes as long as to call a kernel, and to
move it takes some more. So where large arrays are added and multiplied and little else, or there
are many such products, only as many of these operations are moved as there is time for, other ones
with another seed. Additions of few numbers, functions and sums are always moved.
"""

from __future__ import annotations

from dataclasses import dataclass, field

# Nanoseconds for an element, as measured on one core with AVX2; only their ratios matter.
_PLAIN = 0.01
_FUNCTION = 0.3
_ROOT = 0.1
_TERM = 0.01
_TRANSFER = 0.06  # from memory, or to it
_CALL = 4_000.0  # to call any program at all
_KERNEL = 1_500.0  # to run a sum or a product at all
_MOVED_KERNELS = 6_500.0

_MOVED = 0.25
_MOVED_FUNCTION = 0.35

# To move so few elements is no more work than all else that is done for an operation.
_FEW = 256

# What a program may take when it is moved; below three, for these are estimates.
_TIMES = 2.5


@dataclass(slots=True)
class Costs:
    """What a program takes, and what it takes to move it."""

    memory: float = 0.0
    work: float = 0.0
    always: float = 0.0
    """To move what is always moved."""

    sometimes: dict[int, float] = field(default_factory=dict)
    """To move each addition and multiplication of large arrays, and each product of matrices, by
    its place in the program."""

    def add_transfer(self, elements: int) -> None:
        """Count an argument, a result, or what an operation writes that is not fused."""
        self.memory += elements * _TRANSFER

    def add_function(self, elements: int, *, is_root: bool) -> None:
        """Count a function of each number."""
        self.work += elements * (_ROOT if is_root else _FUNCTION)
        self.always += elements * _MOVED_FUNCTION

    def add_sum(self, terms: int, results: int) -> None:
        """Count a sum; to move it is a second one."""
        self.work += _KERNEL + terms * results * _TERM
        self.always += _KERNEL + terms * results * _TERM + results * _MOVED_FUNCTION

    def add_product(self, place: int, terms: int, results: int) -> None:
        """Count a product of matrices; to move it is a second one, of squares."""
        self.work += _KERNEL + terms * results * _TERM
        self.sometimes[place] = _MOVED_KERNELS + terms * results * _TERM + results * _MOVED_FUNCTION

    def add_rounded(self, place: int, elements: int) -> None:
        """Count an addition or a multiplication."""
        self.work += elements * _PLAIN
        if elements > _FEW:
            self.sometimes[place] = elements * _MOVED

    def left_out(self, coins: dict[int, float]) -> frozenset[int]:
        """The places that there is no time for: those with the highest coins, but not all."""
        left = _TIMES * (_CALL + max(self.memory, self.work)) - self.work - self.always
        kept = 0
        order = sorted(self.sometimes, key=lambda place: coins[place])
        for place in order:
            left -= self.sometimes[place]
            if left < 0 and kept:
                break
            kept += 1
        return frozenset(order[kept:])
