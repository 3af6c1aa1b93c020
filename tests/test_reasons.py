"""Why moves are bad: reasons of known positions, and every reason of stored games checked by a slow reference."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from endgame_oracles import board_of
from hypothesis import given, settings
from hypothesis import strategies as st
from reason_reference import WON, forced, plies_that_show

from engine.board import Board, Move
from engine.fen import Color
from engine.knowledge.drawing import draw_positions
from engine.knowledge.features import features_of
from engine.knowledge.rules import load_rules
from engine.knowledge.squares import has_the_move
from engine.outcomes import DRAW, OUTCOMES
from engine.pdn import read_games
from engine.players import AlphaBetaPlayer
from engine.players.evaluation import LEAST_WIN
from engine.reasons.comparing import gap_of
from engine.reasons.endings import Change, ending_reason, opposition_reason
from engine.reasons.explaining import Explainer
from engine.reasons.fault import Fault, behind
from engine.reasons.following import follow, until_won
from engine.reasons.forced import forced_reason
from engine.reasons.material import MaterialSearch, balance_of, shows
from engine.reasons.quoting import RuleQuotes
from engine.reasons.reason import Kind, Proof, Reason
from engine.reasons.shut_in import shut_in_reason
from engine.reasons.words import counted, ending, net_pieces, pieces_on
from engine.tablebase import Tablebase, open_tablebase
from engine.tablebase.folder import SHIPPED
from engine.tablebase.material import parse_name
from gui.game.game_report import GameReview

GAMES = Path(__file__).with_name("data") / "weak_games.pdn"
NODES = 20_000
MOST_PLIES = 8  # largest depth of the reference


@pytest.fixture(scope="module")
def tables() -> Iterator[Tablebase]:
    with open_tablebase(SHIPPED) as opened:
        yield opened


def moves_of(board: Board, texts: str) -> tuple[Move, ...]:
    after = Board(board.fen())
    return tuple(after.push_pdn(text) for text in texts.split())


def fault_of(fen: str, move: str, better: str, line: str = "", reply: str = "") -> Fault:
    board = Board(fen)
    played = board.parse_pdn(move)
    expected = moves_of(board, line), moves_of(behind(board, played), reply)
    return Fault(board, played, board.parse_pdn(better), 0.6, 0.2, *expected)


PROVEN = (
    (
        ("B:W21,22,23,24,27,28,30,31,32:B1,2,3,4,5,6,8,15,16", "5-9", "16-20"),
        Kind.SHOT,
        "5-9 loses a man by the shot 24-19 15x24 28x12.",
    ),
    (("B:W9,15,29,31,32:B5,7,8,12,14", "8-11", "14-17"), Kind.CAPTURE, "8-11 leaves the man on 11 to be taken: 15x8."),
    (
        ("W:W18,20,23,26,27,28,30,32:B1,3,5,8,9,11,12", "18-15", "23-19"),
        Kind.EXCHANGE,
        "18-15 loses a man in the exchange 11x18 23x14 9x18.",
    ),
    (
        ("B:W15,18,19,23,29,30,31,32:B2,4,5,6,7,8,12,16,17", "17-22", "17-21"),
        Kind.ATTACK,
        "17-22 loses the man on 22, which 30-26 attacks and nothing defends: 30-26 5-9 26x17.",
    ),
    (
        ("B:W18,20,21,24,25,27,29,30,31,32:B1,2,3,4,5,6,7,10,11,12,22", "11-16", "5-9"),
        Kind.FORCED_LOSS,
        "11-16 loses a man by force: 20x11 7x16 30-26 3-7 26x17.",
    ),
    (
        ("W:W15,17,20,29,30,31,32:B1,2,3,6,8,12,13,23", "17-14", "15-10"),
        Kind.MISSED_SHOT,
        "17-14 misses the shot 15-10 13x22 30-25 6x15 25x4, which wins a man.",
    ),
    (
        ("B:W15,17,29,31,32:B5,6,7,8,12", "6-9", "7-10"),
        Kind.MISSED_GAIN,
        "6-9 misses winning a man: 7-10 31-26 10x19.",
    ),
    (("B:W14,15,23,32:B1,10", "10x17", "10x26"), Kind.WRONG_CAPTURE, "10x17 takes the wrong way: better 10x26."),
    (
        ("B:W28,K23:B8,16,20", "20-24", "8-12"),
        Kind.NO_MOVE,
        "20-24 loses by force: Black is left without a piece after 28x3.",
    ),
    (
        ("B:W7,K6:B3,10,K21", "3-8", "21-25"),
        Kind.MISSED_WIN,
        "3-8 misses the win 21-25 6x15 3x19, which leaves White without a piece.",
    ),
    (
        ("W:W24,27,30,32,K2:B11,12,13,20,21,22", "2-6", "24-19"),
        Kind.CROWNING,
        "2-6 lets the man on 22 through to king: 22-25 24-19 25-29.",
    ),
    (
        ("B:WK15,K16:B13,20,K6", "6-1", "20-24"),
        Kind.MISSED_CROWNING,
        "6-1 misses crowning the man on 20: 20-24 16-11 24-28 11-7 28-32.",
    ),
    (
        ("B:W17,K1,K3,K20:B16,K18,K24,K32", "18-14", "24-27"),
        Kind.FORCED_LOSS,
        "18-14 loses a king, 24-27 only a man: 17x10.",
    ),
    (
        ("B:W14,24,K6,K13:B25,K1,K7,K9", "9x18", "9x2"),
        Kind.WRONG_CAPTURE,
        "9x18 takes the wrong way: better 9x2.",
    ),
    (  # what the move captures makes up for what is captured after it
        ("B:W15,16,21,24,31,K4:B10,11,19,20,K12,K32", "11x18", "19x28"),
        Kind.WRONG_CAPTURE,
        "11x18 takes the wrong way: better 19x28 15x6 12x19.",
    ),
    (
        ("B:W8,17,20,23,K10,K30:B3,9,13,14,16,24", "13x22", "14x21"),
        Kind.EXCHANGE,
        "13x22 loses a man in the exchange 10x26 3x12 20x11.",
    ),
)


@pytest.mark.parametrize(("fault", "kind", "text"), PROVEN, ids=[kind for _, kind, _ in PROVEN])
def test_reasons_that_the_search_proves(fault: tuple[str, str, str], kind: Kind, text: str) -> None:
    made = fault_of(*fault)
    reason = Explainer(nodes=NODES).explain(made)
    assert reason is not None
    assert (reason.text, reason.kind, reason.proof) == (text, kind, Proof.SEARCH)
    confirm(made, reason)


def test_the_man_that_is_named_is_not_crowned_anyway() -> None:
    made = fault_of("B:W8,9,10,15,K1,K2:B6,7,17,19,K26,K28", "6x13", "7x14")
    gap = gap_of(MaterialSearch(1_500), made)
    assert gap is not None
    reason = forced_reason(made, gap)
    assert reason is not None
    assert reason.text == "6x13 lets the man on 10 through to king: 10x3 17-22 8-4."  # after 7x14, 8-3 follows, too
    confirm_line(made, reason, behind(made.board, made.move))


def confirm(fault: Fault, reason: Reason, tables: Tablebase | None = None) -> None:
    """Raises ``AssertionError`` unless the reference confirms the reason."""
    color = fault.board.turn
    after, instead = behind(fault.board, fault.move), behind(fault.board, fault.better)
    start = fault.board if reason.instead else after
    end = behind(start, *reason.line)  # raises if a move of the line is illegal
    assert fault.board.pdn(fault.move) in reason.text
    match reason.proof:
        case Proof.TABLES:
            assert tables is not None
            assert tables.probe_wdl(after) > tables.probe_wdl(instead)  # for the opponent
            return
        case Proof.LINE:
            confirm_line(fault, reason, start)
            return
    winner = color if reason.instead else color.other
    least = balance_of(end, winner).score if end.legal_moves else WON
    good, bad = (instead, after) if reason.instead else (after, instead)
    plies = [plies_that_show(good, bad, winner, claimed, MOST_PLIES) for claimed in (least, least - 1)]
    assert any(shown is not None for shown in plies), reason.text  # the loser may crown a man afterwards: 1 less
    confirm_line(fault, reason, start)


def confirm_line(fault: Fault, reason: Reason, start: Board) -> None:
    """Asserts that the line shows what the reason's kind says."""
    color = fault.board.turn
    end = behind(start, *reason.line)
    lost = balance_of(fault.board, color).pieces - balance_of(end, color).pieces
    first = () if reason.instead else (fault.move,)
    course = follow(fault.board, (*first, *reason.line), color)
    match reason.kind:
        case Kind.SHOT | Kind.MISSED_SHOT:
            assert not reason.line[0].captured
            assert reason.line[1].captured
            assert (lost < 0) == reason.instead
        case Kind.CAPTURE:
            assert reason.line[0].captured == reason.squares
            assert lost > 0
        case Kind.EXCHANGE if "a king for a man" in reason.text:
            assert course.men < 0 < course.kings
        case Kind.EXCHANGE | Kind.ATTACK | Kind.FORCED_LOSS | Kind.EXPECTED_LOSS:
            assert lost > 0
        case Kind.MISSED_GAIN if "winning a king" in reason.text:
            assert course.kings < 0
            assert ("for a man" in reason.text) == (course.men > 0)
        case Kind.MISSED_GAIN:
            assert lost < 0
        case Kind.CROWNING | Kind.BACK_ROW | Kind.MISSED_CROWNING:
            crownings = course.crownings if reason.instead else course.others
            assert any(crowned.start in reason.squares for crowned in crownings)
        case Kind.NO_MOVE | Kind.MISSED_WIN:
            assert not end.legal_moves
            assert (end.turn is color) != reason.instead
        case Kind.WRONG_CAPTURE:
            assert fault.move.captured
            assert fault.better.captured


def test_every_reason_of_stored_games_is_confirmed(tables: Tablebase) -> None:
    explainer = Explainer(tables.get_wdl, NODES, MOST_PLIES)
    found: list[tuple[Fault, Reason | None]] = []

    def explain(fault: Fault) -> Reason | None:
        found.append((fault, explainer.explain(fault)))
        return found[-1][1]

    for game in read_games(GAMES.read_text("utf-8")):
        review = GameReview(game.board(), AlphaBetaPlayer(6), known=tables.get_wdl, explain=explain)
        while review.advance(1.0):
            pass
        reasons = [move.reason for move in review.report.moves if move.reason is not None]
        assert reasons
    for fault, reason in found:
        if reason is not None:
            confirm(fault, reason, tables)
    kinds = {reason.kind for _, reason in found if reason is not None}
    assert {Kind.CAPTURE, Kind.EXCHANGE, Kind.FORCED_LOSS, Kind.MISSED_GAIN} <= kinds


@pytest.mark.parametrize(
    ("fault", "kind", "text"),
    [
        (
            ("B:WK3,30:B19,22", "19-24", "19-23"),
            Kind.ENDING,
            "19-24 leaves the drawn ending of two men against a king and a man, which 19-23 holds: by the tables it is "
            "lost now.",
        ),
        (
            ("B:WK15,K16:B13,20,K6", "13-17", "20-24"),
            Kind.ENDING,
            "13-17 gives away the win in the ending of a king and two men against two kings: by the tables it is drawn "
            "now.",
        ),
        (
            ("B:WK25,K20:BK24,K17", "17-21", "24-28", "", "20x27 21x30"),
            Kind.OPPOSITION,
            "17-21 gives up the move (the opposition). By the tables a won ending becomes a loss.",
        ),
    ],
)
def test_reasons_that_the_tables_prove(fault: tuple[str, ...], kind: Kind, text: str, tables: Tablebase) -> None:
    made = fault_of(*fault)
    reason = Explainer(tables.get_wdl, 1).explain(made)
    assert reason is not None
    assert (reason.text, reason.kind, reason.proof) == (text, kind, Proof.TABLES)
    confirm(made, reason, tables)


def test_who_does_not_have_the_move_cannot_give_it_up(tables: Tablebase) -> None:
    fault = fault_of("W:WK13,K18:BK8,K10", "18-22", "18-14", "18-14 10x17 13x22", "8-3")
    reason = Explainer(tables.get_wdl, 3000).explain(fault)
    assert not has_the_move(fault.board)
    assert reason is not None
    assert reason.text.startswith(
        "18-22 leaves the move (the opposition) to Black; the exchange 18-14 10x17 13x22 gains it."
    )


def test_a_man_that_the_expected_play_crowns_is_not_missed() -> None:
    fault = fault_of("B:W18,19,K2:B8,21,28,K1,K31", "8-11", "28-32")
    missed = Explainer(nodes=NODES).explain(fault)
    assert missed is not None
    assert missed.text == "8-11 misses crowning the man on 28: 28-32."
    reply = moves_of(behind(fault.board, fault.move), "2-7 28-32 7x16")
    reason = Explainer(nodes=NODES).explain(fault._replace(reply=reply))
    assert reason is None or reason.kind is not Kind.MISSED_CROWNING


def test_who_is_a_piece_ahead_does_not_give_up_the_move(tables: Tablebase) -> None:
    """The better move offers a piece to win another; the played one loses one. Neither is an exchange."""
    line, reply = "18-15 11x18 19-15 18x11 28x19", "24x15 14-17 11-8 28-32"
    fault = fault_of("W:WK18,K19,K28:BK11,K24", "18-14", "18-15", line, reply)
    assert opposition_reason(fault, Proof.TABLES) is None
    reason = ending_reason(fault, Change(fault, tables.get_wdl))
    assert reason is not None
    assert reason.kind is Kind.ENDING


def test_a_king_that_has_to_leave_the_double_corner_does_not_give_it_up(tables: Tablebase) -> None:
    fault = fault_of("B:W27,K18,K19:BK32", "32x16", "32x14")
    reason = ending_reason(fault, Change(fault, tables.get_wdl))
    assert reason is not None
    assert reason.text == "32x16 takes into the ending of a king against a king: by the tables it is lost now."
    stays = fault_of("B:WK23:BK32", "32-27", "32-28")
    reason = ending_reason(stays, Change(stays, tables.get_wdl))
    assert reason is not None
    assert reason.text == "32-27 gives up the double corner, where the king was safe."


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (
            ("B:W23,29,K3,K21:B10,K25,K32", "32-27", "25-30"),
            "32-27 loses two kings for two men: 29x22 27x25 21x30.",
        ),
        (
            ("B:W12,20,32:B17,K11,K25", "11-7", "25-30"),
            "11-7 misses winning a man: 25-30 32-27 30-26 27-24 26-23 24-19 23x16.",
        ),
    ],
)
def test_the_men_and_kings_named_are_those_of_the_line(fault: tuple[str, ...], text: str) -> None:
    reason = Explainer(nodes=NODES).explain(fault_of(*fault))
    assert reason is not None
    assert reason.text == text


def test_what_the_tables_say_is_said_behind_another_reason(tables: Tablebase) -> None:
    reason = Explainer(tables.get_wdl, NODES).explain(fault_of("B:W28,K23:B8,16,20", "16-19", "8-12"))
    assert reason is not None
    assert reason.text == "16-19 leaves the man on 19 to be taken: 23x16. By the tables a won ending becomes a loss."


def test_rules_are_quoted_where_they_say_what_the_tables_say(tables: Tablebase) -> None:
    """In random endings: the words quoted belong to a rule whose conditions hold and whose outcome is right."""
    quotes, rng, quoted = RuleQuotes(), np.random.default_rng(5), set[str]()
    for material in map(parse_name, ("1021", "2101", "0211", "1111", "0031")):
        for value in (1, 0, -1):
            for words in draw_positions(tables, material, value, 20, rng):
                board = board_of(*words)
                text = quotes.quote(board, value)
                assert sum(quotes.quote(board, claimed) != "" for claimed in (1, 0, -1)) <= 1
                if not text:
                    continue
                number, conditions, outcome = re.fullmatch(
                    r"Rule (\d+), with Black to move(?:, where no rule before it applies)?: if (.*), it is a (\w+)\.",
                    text,
                ).groups()  # type: ignore[union-attr]
                assert ("where no rule before it applies" in text) == (number != "1")
                rule = load_rules().rules[int(number) - 1]
                assert conditions.split(", and ") == list(rule.words)
                assert OUTCOMES[DRAW - value] == outcome == OUTCOMES[rule.outcome]
                (holds,) = features_of(words[None])
                assert all(bool(int(holds[at // 64]) >> at % 64 & 1) == wanted for at, wanted in rule.conditions)
                quoted.add(outcome)
    assert quoted == set(OUTCOMES)


def test_no_rule_is_quoted_where_there_is_none() -> None:
    quotes = RuleQuotes()
    for fen in ("B:W18:B15", Board().fen(), "W:WK1,K2,K3:BK30,K31,K32"):
        assert not any(quotes.quote(Board(fen), value) for value in (1, 0, -1))


def test_nothing_is_claimed_of_a_move_that_is_as_good() -> None:
    assert Explainer(nodes=NODES).explain(fault_of(Board().fen(), "11-15", "9-14")) is None


def test_a_search_for_reasons_can_be_ended() -> None:
    def stop() -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        Explainer(check=stop).explain(fault_of(Board().fen(), "11-15", "9-14"))


def test_what_is_lost_only_in_the_expected_play_is_called_so() -> None:
    """The search is too short to find anything, so only the expected lines can show it."""
    fault = fault_of(
        "B:W15,18,19,23,29,30,31,32:B2,4,5,6,7,8,12,16,17",
        "17-22",
        "17-21",
        "17-21 29-25 7-10",
        "30-26 5-9 26x17",
    )
    explainer = Explainer(nodes=1)
    reason = explainer.explain(fault)
    assert reason is not None
    assert (reason.kind, reason.proof) == (Kind.EXPECTED_LOSS, Proof.LINE)
    assert reason.text == "17-22 loses a man in the expected play: 30-26 5-9 26x17."
    confirm(fault, reason)


def test_a_king_that_is_shut_in() -> None:
    fault = fault_of("B:WK18,K27:BK1,K25", "25-29", "1-6", "1-6 27-24 6-10 24-19", "18-22 1-6 27-24 6-10")
    reason = shut_in_reason(fault, Proof.LINE)
    assert reason is not None
    assert (reason.kind, reason.squares) == (Kind.TRAPPED, (29,))
    assert reason.text == "25-29 shuts in the king on 29: no move is safe there any more."
    assert shut_in_reason(fault._replace(reply=fault.reply[:2]), Proof.LINE) is None  # too short to say so


def test_a_king_that_was_shut_in_before() -> None:
    line, reply = "14-17 22-18 29-25 4-8 17-21", "4-8 10-14 8-11 14-10"
    reason = shut_in_reason(fault_of("B:WK22,K4:B13,K14,K29", "14-10", "14-17", line, reply), Proof.LINE)
    assert reason is not None
    assert reason.text == "14-10 leaves the king on 29 shut in: no move is safe there."


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_lines_of_the_search_lead_to_their_score(seed: int) -> None:
    rng, board = np.random.default_rng(seed), Board()
    for _ in range(int(rng.integers(5, 60))):
        moves = board.distinct_moves
        if not moves:
            return
        board.push(moves[int(rng.integers(len(moves)))])
    if not board.legal_moves:
        return
    search = MaterialSearch(3_000)
    prospects = search.prospects(board)
    assert [prospect.depth for prospect in prospects] == list(range(1, len(prospects) + 1))
    line = search.line(board, prospects[0])
    if line is not None:
        assert shows(behind(board, *line), board.turn, prospects[0].score)


def test_the_search_counts_as_the_reference_does() -> None:
    board = Board("B:W15,17,29,31,32:B5,6,7,8,12")
    for prospect in MaterialSearch(5_000).prospects(board)[:6]:
        assert abs(prospect.score) < LEAST_WIN
        assert forced(board.words(), prospect.score, prospect.depth)
        assert not forced(board.words(), prospect.score + 1, prospect.depth)


def test_pieces_are_followed_along_a_line() -> None:
    board = Board("B:W30,31:B19,22")
    line = moves_of(board, "22-26 31x22 19-24 22-18 24-28 18-15 28-32")
    course = follow(board, line, Color.BLACK)
    assert (course.men, course.kings, course.pieces) == (1, 0, 1)
    assert [tuple(crowning) for crowning in course.crownings] == [(19, 32, 7)]
    assert course.others == ()
    assert until_won(board, line, Color.WHITE) == line[:2]
    assert until_won(board, line, Color.WHITE, 2) is None
    assert until_won(board, line, Color.BLACK) is None


def test_words() -> None:
    assert [counted(number, "man") for number in (1, 2, 12)] == ["a man", "two men", "twelve men"]
    assert [net_pieces(2, 0), net_pieces(0, 1), net_pieces(1, 1), net_pieces(-1, 2)] == [
        "two men",
        "a king",
        "two pieces",
        "a piece",
    ]
    board = Board("B:W21,22,K23:B1,K30")
    assert ending(board, Color.WHITE) == "a king and two men against a king and a man"
    assert pieces_on(board, (21, 22)) == "the men on 21 and 22"
    assert pieces_on(board, (21, 22, 23)) == "the pieces on 21, 22 and 23"
