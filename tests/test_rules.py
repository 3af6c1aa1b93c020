"""Features, rules and the player that uses only rules: against slow references and against the tables."""

import json
import math
import os
import random
from pathlib import Path

import numpy as np
import pytest
from player_of import player_of
from programs import crownhead_here

from engine.board import Board
from engine.fen import Color, format_fen
from engine.files import StorageError
from engine.knowledge.duels import duels, runs
from engine.knowledge.exchanges import (
    capture_balance,
    is_quiet,
    loses_in_three,
    new_buffers,
    wins_in_three,
    wins_in_two,
    wins_now,
)
from engine.knowledge.features import FEATURES, NUM_FEATURES, WORDS, features_of
from engine.knowledge.progress import NUM_COUNTED, NUM_QUANTITIES, QUANTITIES, write_many
from engine.knowledge.rules import OUTCOMES, Rule, RulesError, load_rules, save_rules
from engine.players import TablebasePlayer
from engine.players.rules import RulesPlayer
from engine.players.spec import RulesSpec, parse_player
from engine.tablebase import open_tablebase
from engine.tablebase.dense import DenseTables, load_tables
from engine.tablebase.folder import SHIPPED
from learner.endgame.decision_list import ListLearner, decide, errors_of, gather
from learner.endgame.rules_commands import rules_command
from learner.endgame.rules_learning import (
    Positions,
    curve,
    fit_points,
    fit_progress,
    learning_set,
    measure,
    quiet_positions,
    quiet_sample,
    with_features,
)
from learner.endgame.rules_page import PAGE, read_page, rule_parts, write_page
from selfplay.games.openings import Opening
from selfplay.matches.match import play_games
from selfplay.measures.convert import won_positions

DOCS = Path(__file__).parents[1] / "docs" / "endgames"
Words = tuple[int, int, int]


@pytest.fixture(scope="module")
def tables() -> DenseTables:
    return load_tables(SHIPPED, 4)


@pytest.fixture(scope="module")
def quiet(tables: DenseTables) -> list[Words]:
    """Quiet positions of three and four pieces."""
    words = [quiet_sample(tables, pieces, 120, seed=3)[0] for pieces in (3, 4)]
    return [tuple(row) for part in words for row in part.tolist()]


def any_positions(number: int) -> list[Words]:
    """Positions of up to six pieces, quiet or not."""
    rng, found = random.Random(5), list[Words]()
    while len(found) < number:
        squares = rng.sample(range(1, 33), rng.randint(2, 6))
        own = [f"{'K' if s > 28 or rng.random() < 0.4 else ''}{s}" for s in squares[::2]]
        opp = [f"{'K' if s < 5 or rng.random() < 0.4 else ''}{s}" for s in squares[1::2]]
        found.append(Board(f"B:W{','.join(opp)}:B{','.join(own)}").words())
    return found


def board(words: Words) -> Board:
    return Board(format_fen(Color.BLACK, *words))


def after(position: Board, move: object) -> Board:
    behind = position.copy()
    behind.push(move)  # type: ignore[arg-type]
    return behind


def captures(position: Board) -> bool:
    return any(move.captured for move in position.legal_moves)


def slow_balance(position: Board) -> int:
    if not captures(position):
        return 0
    return max(len(move.captured) - slow_balance(after(position, move)) for move in position.distinct_moves)


def slow_wins(position: Board, moves: int) -> bool:
    """Whether a piece is won by force with one of the first ``moves`` moves."""
    if captures(position):
        return slow_balance(position) > 0
    for behind in (after(position, move) for move in position.distinct_moves):
        if captures(behind):
            if slow_balance(behind) < 0:
                return True
        elif moves > 1 and all(slow_wins(after(behind, answer), moves - 1) for answer in behind.distinct_moves):
            return True
    return False


def words_of(words: Words) -> tuple[np.uint32, np.uint32, np.uint32]:
    own, opp, kings = words
    return np.uint32(own), np.uint32(opp), np.uint32(kings)


def test_captures_are_followed_to_their_end() -> None:
    room = new_buffers()
    balances = set()
    for words in any_positions(1500):
        balance = capture_balance(*words_of(words), room)
        assert balance == slow_balance(board(words))
        balances.add(int(balance))
    assert {-1, 0, 1, 2} <= balances


def test_pieces_won_by_force_are_found(quiet: list[Words]) -> None:
    room, seen = new_buffers(), set()
    for words in quiet:
        position, here = board(words), words_of(words)
        found = [bool(wins(*here, room)) for wins in (wins_now, wins_in_two, wins_in_three)]
        assert found == [slow_wins(position, moves) for moves in (1, 2, 3)]
        loses = all(slow_wins(after(position, move), 3) for move in position.distinct_moves)
        assert bool(loses_in_three(*here, room)) == loses
        seen |= {*enumerate(found), ("loses", loses)}
    assert {(1, True), (2, True), ("loses", True)} <= seen


def test_pieces_won_at_once_are_found() -> None:
    room, seen = new_buffers(), set()
    for words in any_positions(800):
        found = bool(wins_now(*words_of(words), room))
        assert found == slow_wins(board(words), 1)
        seen.add((found, captures(board(words))))
    assert len(seen) == 4


def test_duels_are_the_tables(tables: DenseTables) -> None:
    values = duels()
    with open_tablebase(SHIPPED) as known:
        for words in quiet_positions(tables, 2)[0].tolist()[::37]:
            own, opp, kings = words
            bits = own.bit_length() - 1, opp.bit_length() - 1
            king = int(own & kings != 0), int(opp & kings != 0)
            assert values[(*king, *bits)] == known.probe_wdl(board((own, opp, kings)))


def test_a_man_runs_where_no_king_can_stop_it() -> None:
    """Compared with a search of one man against one king, until the man is crowned."""

    def crowned(position: Board, plies: int) -> bool:
        man = next((n for n, (color, king) in position.piece_map().items() if color is Color.BLACK and not king), None)
        if man is None:
            return any(color is Color.BLACK for color, _ in position.piece_map().values())
        if not position.legal_moves:
            return position.turn is Color.WHITE
        if plies == 0:
            return False
        ways = [crowned_after(after(position, move), plies - 1) for move in position.distinct_moves]
        return any(ways) if position.turn is Color.BLACK else all(ways)

    def crowned_after(position: Board, plies: int) -> bool:
        """As ``crowned``, but a new king that is captured at once does not count."""
        pieces = position.piece_map()
        new = any(color is Color.BLACK and king for color, king in pieces.values())
        return not captures(position) if new and position.turn is Color.WHITE else crowned(position, plies)

    known, seen = runs(), set()
    rng = random.Random(2)
    for _ in range(60):
        man, king = rng.randint(17, 28), rng.randint(5, 32)
        if man == king:
            continue
        for index, turn in enumerate("BW"):
            position = Board(f"{turn}:WK{king}:B{man}")
            own, opp, _ = Board(f"B:WK{king}:B{man}").words()
            expected = crowned(position, 7)
            assert known[index, opp.bit_length() - 1, own.bit_length() - 1] == expected
            seen.add(expected)
    assert seen == {True, False}


def plain_features(words: Words) -> dict[str, bool]:
    """Texts of features that follow directly from the pieces."""
    found = {}
    own, opp, kings = words
    pieces = board(words).piece_map()
    for subject, color in (("the side to move", Color.BLACK), ("the opponent", Color.WHITE)):
        mine = [(n if color is Color.BLACK else 33 - n, king) for n, (c, king) in pieces.items() if c is color]
        crowned, men = [n for n, king in mine if king], [n for n, king in mine if not king]
        steps = [7 - (n - 1) // 4 for n in men]
        found |= {
            f"{subject} has a king": bool(crowned),
            f"{subject} has two or more kings": len(crowned) > 1,
            f"{subject} has a man": bool(men),
            f"{subject} has two or more men": len(men) > 1,
            f"{subject} has a single piece": len(mine) == 1,
            f"{subject} has a king in a double corner": any(n in (1, 5, 28, 32) for n in crowned),
            f"{subject} has a king in a single corner": any(n in (4, 29) for n in crowned),
            f"{subject} has a man on its back row": any(n < 5 for n in men),
            f"{subject} holds the bridge": {1, 3} <= set(men),
            f"{subject} has a man at the side of the board": any(n % 8 in (4, 5) for n in men),
            f"{subject} has a man five or more steps from crowning": any(s >= 5 for s in steps),
            **{
                f"{subject} has a man {text} from crowning": any(s <= k for s in steps)
                for k, text in enumerate(("one step", "at most two steps", "at most three steps"), 1)
            },
        }
    own_kings, opp_kings = (own & kings).bit_count(), (opp & kings).bit_count()
    system = sum((n - 1) // 4 % 2 == 0 for n in pieces)
    return found | {
        "the side to move has more pieces": own.bit_count() > opp.bit_count(),
        "the side to move has fewer kings": own_kings < opp_kings,
        "the side to move has the move": system % 2 == 1,
        "it is kings alone against men alone": own_kings == own.bit_count() and opp_kings == 0,
    }


def test_features_say_what_is_on_the_board(quiet: list[Words]) -> None:
    numbers = {feature.yes: number for number, feature in enumerate(FEATURES)}
    seen = set()
    for words, row in zip(quiet, features_of(np.array(quiet, np.uint32)).tolist(), strict=True):
        for text, holds in plain_features(words).items():
            assert (row[numbers[text] // 64] >> numbers[text] % 64 & 1 == 1) == holds, (text, board(words).fen())
            seen.add((text, holds))
    assert len(seen) > 50


def test_features_of_moves_are_found_by_making_them(quiet: list[Words]) -> None:
    numbers = {feature.yes: number for number, feature in enumerate(FEATURES)}
    for words, row in zip(quiet, features_of(np.array(quiet, np.uint32)).tolist(), strict=True):
        position = board(words)
        balances = {move: -slow_balance(after(position, move)) for move in position.distinct_moves}
        safe = [move for move, balance in balances.items() if balance >= 0]
        exchange = any(balance == 0 and captures(after(position, move)) for move, balance in balances.items())
        men = [n for n, (color, king) in position.piece_map().items() if color is Color.BLACK and not king]
        expected = {
            "the side to move has no safe move": not safe,
            "the side to move has at most one safe move": len(safe) < 2,
            "the side to move can exchange evenly": exchange,
            "the side to move has a man without a safe move": any(all(m.start != n for m in safe) for n in men),
            "the side to move can win a piece at once, by captures or a shot": slow_wins(position, 1),
        }
        for text, holds in expected.items():
            assert (row[numbers[text] // 64] >> numbers[text] % 64 & 1 == 1) == holds, (text, position.fen())


def test_every_feature_has_words_of_its_own() -> None:
    texts = [text for feature in FEATURES for text in feature]
    assert len(set(texts)) == 2 * NUM_FEATURES
    assert NUM_FEATURES <= 64 * WORDS


def test_all_quiet_positions_are_found_once_with_their_values(tables: DenseTables) -> None:
    words, values = quiet_positions(tables, 3)
    assert len(np.unique(words, axis=0)) == len(words)
    assert all(is_quiet(*words_of(tuple(row))) for row in words[::1000].tolist())
    assert (tables.lookup(words) == values).all()
    sampled, _ = quiet_sample(tables, 3, 500, seed=1)
    known = {tuple(row) for row in words.tolist()}
    assert all(tuple(row) in known for row in sampled.tolist())


def test_a_list_is_learnt_that_can_be_learnt() -> None:
    """Class 2 where 0 and not 1, else class 0 where 70, else class 1; a fifth of the bits are noise."""
    rng = np.random.default_rng(4)
    features = rng.integers(0, 2**63, (4000, 2), np.uint64)
    bits = [(features[:, n // 64] >> np.uint64(n % 64) & np.uint64(1)) == 1 for n in (0, 1, 70)]
    classes = np.where(bits[0] & ~bits[1], 2, np.where(bits[2], 0, 1))
    examples = gather(features, classes)
    learner = ListLearner(examples, [*range(10), 70])
    rules = learner.learn(8)
    assert errors_of(rules, examples) == 0
    assert rules == learner.learn(8)
    assert errors_of(learner.polish(rules), examples) == 0


def test_the_first_rule_that_applies_decides() -> None:
    rules = [Rule(((3, True), (65, False)), 0), Rule(((3, True),), 2), Rule((), 1)]
    features = np.array([[8, 0], [8, 2], [0, 0]], np.uint64)
    assert decide(rules, features).tolist() == [0, 1, 2]


def test_polishing_never_makes_a_list_worse(tables: DenseTables) -> None:
    positions = with_features(*quiet_sample(tables, 4, 4000, seed=2))
    examples = gather(positions.features, positions.classes)
    learner = ListLearner(examples, list(range(NUM_FEATURES)), width=8)
    rules = learner.learn(6)
    assert errors_of(learner.polish(rules), examples) <= errors_of(rules, examples)
    assert all(len(rule.conditions) <= 4 for rule in rules)


def test_what_is_learnt_from_is_the_same_for_the_same_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("learner.endgame.rules_learning._OF_FIVE", 200)
    five = load_tables(SHIPPED, 5)
    words, values = quiet_sample(five, 4, 200, seed=1)
    sets = [learning_set(five, words, values, seed) for seed in (1, 1, 2)]
    assert (sets[0].features == sets[1].features).all()
    assert len(sets[0].words) != len(sets[2].words) or (sets[0].words != sets[2].words).any()


def test_plies_are_estimated_from_what_is_counted(tables: DenseTables) -> None:
    words, values = quiet_positions(tables, 3)
    with open_tablebase(SHIPPED) as known:
        points = fit_progress(words, values, known, 2000, seed=1)
        won = words[values == 1][::97]
        plies = known.probe_distance_many(won).astype(float)
    quantities = np.zeros((len(won), NUM_QUANTITIES))
    write_many(won, new_buffers(), quantities)
    assert (quantities[:, NUM_COUNTED:].sum(axis=1) > 0).any()
    general = np.array(points[None])
    assert len(general) == 1 + len(QUANTITIES)
    guessed = general[0] + quantities @ general[1:]
    assert np.abs(guessed - plies).mean() < np.abs(plies - plies.mean()).mean()
    assert fit_points(won, plies) == fit_points(won, plies)


def test_rules_are_stored_in_words(tmp_path: Path) -> None:
    path, rules = tmp_path / "rules.json", load_rules()
    save_rules(path, rules)
    assert load_rules(path) == rules
    stored = json.loads(path.read_text())
    assert stored["rules"][0]["if"] == list(rules.rules[0].words)
    stored["rules"][0]["then"] = "draw" if stored["rules"][0]["then"] == "win" else "win"
    path.write_text(json.dumps(stored))
    with pytest.raises(RulesError, match="checksum"):
        load_rules(path)
    del stored["checksum"]
    stored["rules"][0]["if"] = ["the moon is full"]
    path.write_text(json.dumps(stored))
    with pytest.raises(RulesError, match="the moon is full"):
        load_rules(path)
    stored["rules"] = stored["rules"][-1:]
    stored["plies"]["others"]["days"] = 1.0
    path.write_text(json.dumps(stored))
    with pytest.raises(RulesError, match="'days' is an unknown quantity"):
        load_rules(path)
    del stored["plies"]["others"]["days"]
    for number, said in ((math.nan, "not finite"), (10**400, "too large")):
        stored["plies"]["others"]["constant"] = number
        path.write_text(json.dumps(stored))
        with pytest.raises(RulesError, match=said):
            load_rules(path)
    del stored["plies"]["others"]
    path.write_text(json.dumps(stored))
    with pytest.raises(RulesError, match="its plies lack 'others'"):
        load_rules(path)


def test_the_rules_that_ship_are_short_and_right(tables: DenseTables) -> None:
    rules = load_rules()
    assert len(rules.rules) <= 60
    assert all(len(rule.conditions) <= 4 for rule in rules.rules)
    assert rules.rules[-1].conditions == ()
    for pieces, least in ((2, 0.94), (3, 0.98), (4, 0.95)):
        _, right = measure(rules, with_features(*quiet_sample(tables, pieces, 4000, seed=11)))
        assert right.mean() >= least


def test_the_page_shows_the_rules_that_ship() -> None:
    page, rules = (DOCS / PAGE).read_text(encoding="utf-8"), load_rules()
    for number, rule in enumerate(rules.rules, 1):
        assert f"## {number}. {OUTCOMES[rule.outcome].capitalize()}\n\n{rule}\n" in page
    for picture in set(page.split("](")[1:]):
        assert (DOCS / picture.split(")")[0]).is_file()


def test_a_page_counts_what_each_rule_decides(tables: DenseTables, tmp_path: Path) -> None:
    rules = load_rules()._replace(rules=load_rules().rules[-5:])
    positions: Positions = with_features(*quiet_sample(tables, 4, 3000, seed=5))
    parts = rule_parts(rules, [positions], seed=1)
    decided, right = measure(rules, positions)
    assert sum(part.covered[4] for part in parts) == 3000
    assert [part.errors[4] for part in parts] == [int((~right & (decided == i)).sum()) for i in range(5)]
    found = curve(rules, positions, seed=1)
    assert found[-1] == right.mean()
    page = write_page(tmp_path, rules, parts, found)
    text = read_page(page)
    assert text == page.read_text()
    assert f"5 rules {found[-1]:.2%}" in text
    assert len(list((tmp_path / "rules").glob("*.svg"))) == sum(part.example is not None for part in parts)


def test_the_player_wins_won_endgames(tables: DenseTables) -> None:
    player, defence = RulesPlayer(), TablebasePlayer(SHIPPED, seed=1)
    boards = won_positions(4, 20, seed=9, tables=tables)
    scores = [next(play_games(player, defence, [(0, Opening("endgame", one))])).score for one in boards]
    assert sum(score == 1.0 for score in scores) >= 16


@pytest.mark.parametrize("fen", ["B:WK20:B5,K14", "B:W17:B18,20", "B:W14:B24,K3"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_player_leaves_places_whose_estimate_is_too_good(fen: str, seed: int) -> None:
    """Without what it found where it has been, it draws most of these games, by repetition or after 80 plies."""
    defence = TablebasePlayer(SHIPPED, seed)
    assert next(play_games(RulesPlayer(), defence, [(0, Opening("endgame", Board(fen)))])).score == 1.0


def test_the_player_plays_legally_from_the_first_move_on() -> None:
    player = player_of("rules")
    start = Board()
    move = player.choose([start])[0]
    assert move in start.legal_moves
    assert player.choose([start])[0] == move
    assert parse_player("rules") == RulesSpec()
    assert parse_player("rules:my.json").text == "rules:my.json"


def test_the_command_shows_rules_and_refuses_bad_files(tmp_path: Path) -> None:
    shown = crownhead_here("rules")
    assert shown.returncode == 0
    assert str(load_rules().rules[0]) in shown.stdout
    assert len(json.loads(crownhead_here("rules", "--json").stdout)["rules"]) == len(load_rules().rules)
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(RulesError, match="not a file of rules"):
        player_of(f"rules:{tmp_path / 'bad.json'}")


@pytest.mark.parametrize("option", [("--out", "{}/in/the/way"), ("--learn", "{}/in/the/way.json")])
def test_a_place_that_cannot_be_written_is_told_before_the_work(tmp_path: Path, option: tuple[str, str]) -> None:
    (tmp_path / "in").write_text("a file")
    done = crownhead_here("rules", option[0], option[1].format(tmp_path))
    assert done.returncode == 2
    assert "a file is in the way" in done.stderr


def test_a_file_of_rules_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"cannot read .*gone\.json"):
        player_of(f"rules:{tmp_path}/gone.json")


def test_a_folder_that_is_not_there_is_told_of_before_the_learning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("learner.endgame.rules_commands.load_tables", lambda *_, **__: pytest.fail("it began"))
    with pytest.raises(StorageError, match="cannot read"):
        rules_command(None, tmp_path / "rules.json", 2, 1, tmp_path / "none", True)
    (tmp_path / "empty").mkdir()
    with pytest.raises(StorageError, match="holds no tables"):
        rules_command(None, tmp_path / "rules.json", 2, 1, tmp_path / "empty", True)


def test_a_file_of_another_kind_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("learner.endgame.rules_commands.load_tables", lambda *_, **__: pytest.fail("it began"))
    notes = tmp_path / "rules.json"
    notes.write_text("my own")
    with pytest.raises(StorageError, match=r"rules\.json exists already and holds no rules"):
        rules_command(None, notes, 2, 1, None, True)
    assert notes.read_text() == "my own"
    page = tmp_path / PAGE
    page.write_text("# House rules\n")
    with pytest.raises(StorageError, match=r"rules\.md exists already and holds no page of rules"):
        rules_command(tmp_path, None, None, 1, None, True)
    assert page.read_text() == "# House rules\n"


@pytest.mark.skipif(os.name == "nt", reason="its devices have no folder")
def test_a_device_is_refused_before_the_learning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("learner.endgame.rules_commands.load_tables", lambda *_, **__: pytest.fail("it began"))
    with pytest.raises(StorageError, match="cannot write /dev/null: it is a device or pipe"):
        rules_command(None, Path("/dev/null"), 2, 1, None, True)


@pytest.mark.parametrize("plies", [3, 7])
def test_a_draw_by_repetition_is_better_than_a_loss(plies: int) -> None:
    board = Board("W:WK6:BK26")
    for text in ("6-1", "26-30", "1-6", "30-26", "6-1", "26-30", "1-6")[:plies]:
        board.push_pdn(text)
    assert str(RulesPlayer().choose([board])[0]) == "30-26"  # 30-25 loses
