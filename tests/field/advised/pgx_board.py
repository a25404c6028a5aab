"""A game on a board, whose library compiles when it is imported."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "site-packages"))

import board_game

board = board_game.INITIAL
for move, action in enumerate((0, 3, 1, 4, 2)):
    board, won = board_game.play(board, action, 1 + move % 2)
    print(board.tolist(), bool(won))
