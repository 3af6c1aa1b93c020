"""What ``crownhead match`` does."""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from engine.players import HubPlayer, parse_player
from engine.players.network_text import BackendName, NetworkText, one_of
from engine.players.time_control import TimeControl, takes_time

from .match_file import MatchFile, check_writable
from .match_pool import MatchPool, Pairing, make_tasks
from .match_record import MatchGame, MatchResult
from .openings import MatchError, Opening, make_openings
from .progress import MatchProgress
from .sprt import Sprt

_SEARCH_SETTINGS = "policy_temperature", "shot_prior", "draw_value", "contempt_lead", "transpositions"  # of the record


@dataclass(frozen=True)
class PlayerFacts:
    """What a match must know of a player before it is made.

    Attributes:
        text: names it in its shortest form: ``alphabeta:8``, also where it was written ``alphabeta:08``.
        network: it evaluates positions in batches. external: it is a program of its own.
        timed: a limit in seconds makes a difference to it.
        settings: what its text does not say, ``simulations=64 oracle=tablebase weights=0123456789ab``; or "".
        ponders: it needs cores of its own.
    """

    text: str
    network: bool
    external: bool
    timed: bool
    settings: str
    ponders: bool = False


def inspect_player(
    text: str, simulations: int | None, control: TimeControl, plain: bool = False, backend: str = "auto"
) -> PlayerFacts:
    """Looks at the player that a text names, without loading its network.

    Args:
        simulations, control, plain, backend: of the match.

    Raises:
        PlayerError, CheckpointError, RunError: there is no such player.
    """
    player = parse_player(text, None if control.kind == "none" else control.base_s)
    if player is not None:
        return PlayerFacts(player.name, False, isinstance(player, HubPlayer), takes_time(player), "")
    from learner.checkpoint import read_info
    from learner.student import student_digest

    from .players import board_search, checkpoint_folder, student_search, uses_student

    named = NetworkText.parse(text)
    folder = checkpoint_folder(named.folder)
    weights = f"weights={read_info(folder).digest[:12]}"
    search = board_search(named, simulations, plain=plain)
    if uses_student(folder, named.backend or backend, "auto", control.kind != "none"):
        search = student_search(search)
        weights += f" shot_visits={search.shot_visits} student={(student_digest(folder) or '')[:12]}"
    limit = f"simulations={search.num_simulations} " if control.kind == "none" else ""
    backend = f"backend={named.backend} " if named.backend else ""
    fixed = " ".join(f"{name}={getattr(search, name):g}" for name in _SEARCH_SETTINGS)
    settings = f"{limit}{backend}oracle={named.oracle} {fixed} {weights}"
    return PlayerFacts(text, True, False, True, settings, named.ponder)


def start_engines(facts: Iterable[PlayerFacts]) -> None:
    """Starts every external engine once, and ends it again: one that never gets ready is refused before any game.

    Raises:
        EngineError: it does not get ready.
    """
    for text in {player.text for player in facts if player.external}:
        player = parse_player(text)
        assert isinstance(player, HubPlayer)
        with player:
            player.start()


def time_control(simulations: int | None, seconds: float | None, clock: str | None) -> TimeControl:
    """The time control that the options name.

    Raises:
        MatchError: more than one limit.
        TimeControlError: the clock is none, or a time is out of range.
    """
    given = [
        name
        for name, value in (("--simulations", simulations), ("--seconds", seconds), ("--clock", clock))
        if value is not None
    ]
    if len(given) > 1:
        raise MatchError(
            f"give {' or '.join(given)}, not both" if len(given) == 2 else f"give one of {', '.join(given)}"
        )
    if seconds is not None:
        return TimeControl("move", seconds)
    control = TimeControl.parse(clock) if clock is not None else TimeControl()
    if clock is not None and control.kind != "fischer":
        raise MatchError(f"--clock {clock}: write seconds and increment, like 60+0.6")
    return control


def choose_jobs(jobs: int | None, facts: tuple[PlayerFacts, ...], control: TimeControl, games: int) -> int:
    """Processes of a match: as asked for, else one for every core; but networks without a time play in one.

    A network judges the positions of many games at once, which one process does better than several. A game has a core
    for each player where one of them thinks in the other's time.
    """
    from .threads import num_cores

    lockstep = _lockstep(facts, control)
    cores = num_cores() // (len(facts) if any(player.ponders for player in facts) else 1)
    wanted = jobs if jobs is not None else 1 if lockstep else cores
    return max(1, min(wanted, games))


def _lockstep(facts: tuple[PlayerFacts, ...], control: TimeControl) -> bool:
    """Whether games are played side by side in one process."""
    one_by_one = control.kind != "none" or any(player.external for player in facts)
    return not one_by_one and any(player.network for player in facts)


def make_pairing(
    facts: tuple[PlayerFacts, PlayerFacts],
    control: TimeControl,
    simulations: int | None,
    seed: int,
    backend: str = "auto",
    plain: bool = False,
) -> Pairing:
    """The pairing of two players.

    Raises:
        MatchError: no such backend.
    """
    one_of(backend, BackendName, "backend", MatchError)
    first, second = facts
    return Pairing(first.text, second.text, control, simulations, seed, _lockstep(facts, control), backend, plain)


def match_command(
    player_a: str,
    player_b: str,
    games: int,
    simulations: int | None,
    seconds: float | None,
    clock: str | None,
    openings: str,
    sprt: str | None,
    pdn: Path | None,
    resume: bool,
    jobs: int | None,
    seed: int,
    quiet: bool,
    backend: str = "auto",
) -> dict[str, Any]:
    """Plays a match; see ``crownhead match --help``."""
    control = time_control(simulations, seconds, clock)
    test = None if sprt is None else Sprt.parse(sprt)
    if resume and pdn is None:
        raise MatchError("--resume goes on with the games of a file: name it with --pdn")
    if pdn is not None and not resume and pdn.is_file() and pdn.stat().st_size:
        raise MatchError(f"{pdn} is there already: go on with its games by --resume, or name another file")
    limits = simulations, control, False, backend
    facts = (inspect_player(player_a, *limits), inspect_player(player_b, *limits))
    chosen = make_openings(openings, (games + 1) // 2, seed)
    file, kept = None, {}
    if pdn is not None:
        tags = {
            "Event": f"{facts[0].text} v {facts[1].text}",
            "TimeControl": str(control),
            "Openings": openings,
            "Seed": str(seed),
        }
        settings = (facts[0].settings, facts[1].settings)
        file = MatchFile(pdn, (facts[0].text, facts[1].text), tags, settings, chosen, games)
        kept = file.read() if resume else {}
        check_writable(pdn)
    if not quiet:
        _tell_untimed(facts, control)
    pairing = make_pairing(facts, control, simulations, seed, backend)
    start_engines(facts)
    starts = [(index, chosen[index // 2]) for index in range(games) if index not in kept]
    with MatchProgress(games, quiet) as progress, MatchPool(choose_jobs(jobs, facts, control, len(starts))) as pool:
        result = _play(pool, pairing, starts, games, kept, test, file, progress)
    figures: dict[str, Any] = {**result.summary(), "errors": result.errors}
    if test is not None:
        figures["sprt"] = test.report()
    if resume:
        figures["kept"] = len(kept)
    if not quiet:
        _print(result, test)
    return figures


def _tell_untimed(facts: tuple[PlayerFacts, ...], control: TimeControl) -> None:
    """Says of which players a limit in seconds changes nothing."""
    untimed = {player.text: None for player in facts if not player.timed}  # each once, also against itself
    for name in untimed if control.kind != "none" else ():
        text = f"{name} takes as long as it takes: no limit in seconds changes it"
        Console(stderr=True).print(text, markup=False, soft_wrap=True)


def _play(
    pool: MatchPool,
    pairing: Pairing,
    starts: list[tuple[int, Opening]],
    games: int,
    kept: Mapping[int, MatchGame],
    test: Sprt | None,
    file: MatchFile | None,
    progress: MatchProgress,
) -> MatchResult:
    """The games that are missing, and the result of all in their order, up to the test's decision if there is one."""
    over = dict(kept)
    played: list[MatchGame] = []
    counted = None  # how many games count, once that is known
    try:
        for game in _with_kept(pool, pairing, starts):
            if game is not None:
                over[game.index] = game
                if file is not None:
                    file.add(game)
            while len(played) in over and not (test and test.decision):
                played.append(over[len(played)])
                progress.game(played[-1])
                if test and len(played) % 2 == 0:
                    test.add(played[-2].score, played[-1].score)
            if test and test.decision:
                break
        counted = len(played)
    except KeyboardInterrupt as error:
        if file is None or not len(file):
            raise
        path = shlex.quote(str(file.path))
        text = f"{len(file)} of {games} games are in {path}; the same command with --resume goes on"
        raise KeyboardInterrupt(text) from error
    finally:
        if file is not None:
            file.close(counted)
    return MatchResult(pairing.player_a, pairing.player_b, tuple(played))


def _with_kept(pool: MatchPool, pairing: Pairing, starts: list[tuple[int, Opening]]) -> Iterator[MatchGame | None]:
    """The games as they end; before them None, that those kept be counted."""
    yield None
    for _, game in pool.play(make_tasks(pairing, starts, pool.jobs)):
        yield game


def _print(result: MatchResult, test: Sprt | None) -> None:
    console = Console()
    console.print(
        f"{result.player_a} v {result.player_b}: +{result.wins} ={result.draws} -{result.losses}, "
        f"score {result.score:.1%}, Elo {result.elo:+.0f} ± {result.elo_error:.0f}",
        markup=False,
        soft_wrap=True,
    )
    if test is not None:
        console.print(str(test), soft_wrap=True)
    if result.errors:  # told in full when they happened
        console.print(f"forfeited or lost on time: {len(result.errors)} of {result.games} games")
