"""Measures how many faults of weak players get a reason, and of which kind.

``python tests/measure_reasons.py FILE [GAMES [SECONDS [SEED]]]``: weak players play games, the champion reviews them
with SECONDS per position, and the faults are written to FILE, one line of JSON each. If FILE exists, its faults are
explained, each position once, and the numbers are printed; with ``-v`` at the end also every reason.
"""

import json
import sys
import time
from collections import Counter
from itertools import cycle, islice, permutations
from pathlib import Path

import numpy as np

from engine.board import Board, Move
from engine.players import parse_player
from engine.reasons.explaining import Explainer
from engine.reasons.fault import Fault, behind
from engine.tablebase import open_tablebase
from gui.game.game_report import LEAST_LOSS, GameReview
from selfplay.conditions import Conditions
from selfplay.players import make_player

WEAK = "level:beginner", "level:casual", "level:club", "level:county", "alphabeta:1", "champion"
SIMULATIONS = 16  # strength of the champion among the weak players
MOST_PLIES = 160
OPENING = 2  # random plies at the beginning


def texts(board: Board, moves: tuple[Move, ...]) -> list[str]:
    after, found = Board(board.fen()), []
    for move in moves:
        found.append(after.pdn(move))
        after.push(move)
    return found


def collect(path: Path, games: int = 30, seconds: float = 0.3, seed: int = 0) -> None:
    players = [make_player(parse_player(name), Conditions(simulations=SIMULATIONS, seed=5)) for name in WEAK]
    judge = make_player(parse_player("champion"), Conditions(seconds=seconds))
    pairs = islice(cycle(permutations(range(len(players)), 2)), games)
    with open_tablebase() as tables, path.open("w", encoding="utf-8") as file:
        for number, pair in enumerate(pairs, seed):
            board, rng = Board(), np.random.default_rng(number)
            for _ in range(OPENING):
                board.push(board.distinct_moves[int(rng.integers(len(board.distinct_moves)))])
            for player in players:
                player.seed(number)
            while board.outcome() is None and board.ply < MOST_PLIES:
                board.push(players[pair[board.ply % 2]].choose([board])[0])

            def write(fault: Fault, number: int = number) -> None:
                line, reply = texts(fault.board, fault.line), texts(behind(fault.board, fault.move), fault.reply)
                moves = fault.board.pdn(fault.move), fault.board.pdn(fault.better)
                values = round(fault.before, 4), round(fault.after, 4)
                json.dump([number, fault.board.fen(), *moves, *values, line, reply], file)
                file.write("\n")
                file.flush()

            review = GameReview(board, judge, seconds, tables.get_wdl, write)
            while review.advance(1.0):
                pass
            print(f"game {number + 1}: {WEAK[pair[0]]} - {WEAK[pair[1]]}, {board.ply} plies", flush=True)


def moves_of(board: Board, line: list[str]) -> tuple[Move, ...]:
    after = Board(board.fen())
    return tuple(after.push_pdn(text) for text in line)


def read(path: Path) -> list[Fault]:
    faults, seen = [], set()
    for line in path.read_text("utf-8").splitlines():
        _, fen, move, better, before, after, expected, reply = json.loads(line)
        if (fen, move) in seen:
            continue
        seen.add((fen, move))
        board = Board(fen)
        played = board.parse_pdn(move)
        replies = moves_of(behind(board, played), reply)
        faults.append(Fault(board, played, board.parse_pdn(better), before, after, moves_of(board, expected), replies))
    return faults


def measure(path: Path, loud: bool) -> None:
    faults, kinds = read(path), Counter[str]()
    spent = []
    with open_tablebase() as tables:
        explainer = Explainer(tables.get_wdl)
        for fault in faults:
            begun = time.process_time()
            reason = explainer.explain(fault)
            spent.append(time.process_time() - begun)
            if loud:
                move = fault.board.pdn(fault.move)
                text = f"{reason.kind} {reason.proof}: {reason.text}" if reason else "-"
                print(f"{fault.loss:.2f} {fault.board.fen()} {move}: {text}")
            if fault.loss >= LEAST_LOSS["blunder"]:
                kinds[f"{reason.kind}, by {reason.proof}" if reason else "none"] += 1
    total = kinds.total()
    for kind, count in kinds.most_common():
        print(f"{kind:32} {count:5} {count / total:7.1%}")
    print(f"{total} faults of {LEAST_LOSS['blunder']:.0%} or more with a reason: {1 - kinds['none'] / total:.1%}")
    print(f"seconds of processor time a fault: {sum(spent) / len(spent):.2f}, at most {max(spent):.2f}")


if __name__ == "__main__":
    file, *rest = (argument for argument in sys.argv[1:] if argument != "-v")
    if not Path(file).exists():
        collect(Path(file), *(number(text) for number, text in zip((int, float, int), rest, strict=False)))
    measure(Path(file), "-v" in sys.argv)
