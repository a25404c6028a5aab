"""How many additions and multiplications are moved."""

from __future__ import annotations

from jitcount._emulate.other_rounding.costs import Costs


def _costs(operations: int, elements: int) -> tuple[Costs, dict[int, float]]:
    costs = Costs()
    costs.add_transfer(2 * elements)
    for place in range(operations):
        costs.add_rounded(place, elements)
    return costs, {place: (place * 0.37) % 1 for place in range(operations)}


def test_what_is_small_is_always_moved() -> None:
    costs, coins = _costs(1000, elements=256)
    assert costs.left_out(coins) == frozenset()


def test_of_a_long_chain_of_large_arrays_some_are_moved() -> None:
    costs, coins = _costs(100, elements=1_000_000)
    left_out = costs.left_out(coins)
    assert 80 < len(left_out) < 100
    assert min(coins, key=lambda place: coins[place]) not in left_out


def test_functions_leave_more_time_than_they_take() -> None:
    costs, coins = _costs(4, elements=100_000)
    for _ in range(20):
        costs.add_function(100_000, is_root=False)
    assert costs.left_out(coins) == frozenset()


def test_of_many_small_products_some_are_moved_and_of_few_all() -> None:
    for count, fewest, most in (2, 0, 0), (40, 10, 30):
        costs = Costs()
        for place in range(count):
            costs.add_product(place, 16, 256)
        coins = {place: (place * 0.37) % 1 for place in range(count)}
        assert fewest <= len(costs.left_out(coins)) <= most


def test_one_operation_is_moved_whatever_it_costs() -> None:
    costs, coins = _costs(1, elements=100_000_000)
    costs.add_sum(1000, 1_000_000)
    assert costs.left_out(coins) == frozenset()
