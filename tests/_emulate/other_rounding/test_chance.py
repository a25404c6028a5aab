"""Draws that are the same in every run, and others for each seed and place."""

from __future__ import annotations

from jitcount._emulate.other_rounding.chance import Chance


def test_draws_are_the_same_in_every_run() -> None:
    assert Chance(0, 1.0).words("sum", 3) == (3586397702, 392626625)


def test_seeds_kinds_and_places_draw_otherwise() -> None:
    draws = [
        Chance(seed, 1.0).words(kind, place)
        for seed in range(10)
        for kind in ("sum", "exp")
        for place in range(10)
    ]
    assert len(set(draws)) == len(draws)


def test_coins_are_spread_evenly() -> None:
    coins = [Chance(7, 1.0).coin("whether", place) for place in range(1000)]
    assert 0.45 < sum(coins) / 1000 < 0.55
    assert min(coins) >= 0
    assert max(coins) < 1
