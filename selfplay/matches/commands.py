"""``crownhead match``."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, NotRequired

from engine.claims import claimed
from engine.console import Console
from engine.files import check_writable
from engine.players.hub import HubPlayer
from engine.players.simple import make_simple_player
from engine.players.spec import HubSpec, NetworkSpec, PlayerSpec
from engine.players.time_control import TimeControl

from ..conditions import Conditions
from ..games.openings import Opening, make_openings
from ..progress import MatchProgress
from ..rating.sprt import Sprt, SprtFigures
from ..requests import MatchRequest
from .file import MatchFile
from .pool import MatchPool
from .record import GamesInOrder, MatchGame, MatchResult, MatchSummary, PunctualityFigures
from .tasks import Pairing, make_tasks


class MatchFigures(MatchSummary):
    """Results of ``crownhead match``.

    ``errors`` are those of games forfeited or lost on time, ``kept`` is the number of games that the file had before.
    """

    errors: list[str]
    punctuality: NotRequired[list[PunctualityFigures]]
    sprt: NotRequired[SprtFigures]
    kept: NotRequired[int]


def settings_of(spec: PlayerSpec, conditions: Conditions) -> str:
    """Settings of a player that its text leaves open: ``players.settings_text`` of a network, "" of other players.

    Raises what ``players.search_of`` raises if there is no such network, and ``make_simple_player`` of other players.
    """
    if not isinstance(spec, NetworkSpec):
        make_simple_player(spec)
        return ""
    from ..players import settings_text  # loads torch, which other players do not need

    return settings_text(spec, conditions)


def start_engines(players: Iterable[PlayerSpec]) -> None:
    """Starts and ends every external engine once, so that a broken one is found before any game.

    Raises ``EngineError`` if an engine does not get ready, ``PlayerSpecError`` if there is no such program.
    """
    for spec in {spec for spec in players if isinstance(spec, HubSpec)}:
        with HubPlayer(spec.command) as player:
            player.start()


def choose_jobs(jobs: int | None, pairing: Pairing | None, games: int, players: Iterable[PlayerSpec] = ()) -> int:
    """Number of processes for ``games`` games: ``jobs`` if given, else one per core.

    Untimed networks play in one process, which judges the positions of all games in one batch. A pondering player needs
    a core of its own, so there is one process for two cores. ``pairing`` is None for several pairings of ``players``.
    """
    from ..machines.threads import num_cores

    wanted = num_cores() // _cores_of_a_game(players if pairing is None else pairing.players)
    if jobs is not None:
        wanted = jobs
    elif pairing is not None and pairing.lockstep:
        wanted = 1
    return max(1, min(wanted, games))


def _cores_of_a_game(players: Iterable[PlayerSpec]) -> int:
    return 2 if any(isinstance(player, NetworkSpec) and player.ponder for player in players) else 1


def open_pool(
    jobs: int | None, address: str | None, pairing: Pairing | None, games: int, players: Iterable[PlayerSpec] = ()
) -> MatchPool:
    """The pool that plays the games: ``choose_jobs`` processes here, or those of a Ray cluster.

    Raises ``ClusterError`` if the cluster cannot be joined.
    """
    if address is None:
        return MatchPool(choose_jobs(jobs, pairing, games, players))
    from .ray_match import RayStarter

    cores = _cores_of_a_game(players if pairing is None else pairing.players)
    return MatchPool(min(jobs or games, max(1, games)), RayStarter(address, cores))


class PreparedMatch(NamedTuple):
    """What a match is played with; ``kept`` are the games that ``file`` has already."""

    pairing: Pairing
    openings: list[Opening]
    file: MatchFile | None
    kept: dict[int, MatchGame]


def prepare(request: MatchRequest) -> PreparedMatch:
    """Reads what a match needs; raises what is wrong with its players, its openings or the games to be continued."""
    pairing = Pairing(*request.players, request.control, request.simulations, request.seed, request.backend)
    first, second = (settings_of(spec, pairing.conditions) for spec in pairing.players)
    chosen = make_openings(request.openings, (request.games + 1) // 2, request.seed)
    if request.pdn is None:
        return PreparedMatch(pairing, chosen, None, {})
    names = pairing.player_a.text, pairing.player_b.text
    tags = {
        "Event": " v ".join(names),
        "TimeControl": str(request.control),
        "Openings": request.openings,
        "Seed": str(request.seed),
    }
    file = MatchFile(request.pdn, names, tags, (first, second), chosen, request.games)
    return PreparedMatch(pairing, chosen, file, file.read() if request.resume else {})


def match_command(request: MatchRequest, quiet: bool) -> MatchFigures:
    """Plays a match; see ``crownhead match --help``."""
    if request.pdn is None:
        return _played(request, quiet)
    check_writable(request.pdn)
    with claimed(request.pdn):
        return _played(request, quiet)


def _played(request: MatchRequest, quiet: bool) -> MatchFigures:
    control, games = request.control, request.games
    pairing, chosen, file, kept = prepare(request)
    if not quiet:
        tell_ignored(pairing.players, control)
        tell_repeated([pairing], chosen)
    start_engines(pairing.players)
    starts = [(index, chosen[index // 2]) for index in range(games) if index not in kept]
    test = request.test()
    pool = open_pool(request.jobs, request.address, pairing, len(starts))
    try:
        with MatchProgress(games, quiet) as progress, pool:
            result = _play(pool, pairing, starts, kept, test, file, progress)
    except KeyboardInterrupt as error:
        if file is None or not len(file):
            raise
        command = "the same command" if request.resume else "the same command with --resume"
        text = f"{len(file)} of {games} games are in {shlex.quote(str(file.path))}; {command} goes on"
        raise KeyboardInterrupt(text) from error
    figures: MatchFigures = {**result.summary(), "errors": result.errors}
    if control.kind == "move":
        figures["punctuality"] = result.punctuality(control.base_s)
    if not quiet:
        _print(figures, test)
    if test is not None:
        figures["sprt"] = test.report()
    if request.resume:
        figures["kept"] = len(kept)
    return figures


def tell_ignored(players: Iterable[PlayerSpec], control: TimeControl) -> None:
    """Prints which players ignore the time limit, or a number of their own because of it, if there is one."""
    for spec in dict.fromkeys(players) if control.kind != "none" else ():  # once, also against itself
        if not spec.timed:
            Console(stderr=True).print(f"{spec.text} ignores time limits", soft_wrap=True)
        elif isinstance(spec, NetworkSpec) and spec.simulations is not None:
            text = f"{spec.text}: time alone limits its search, {spec.simulations} is ignored"
            Console(stderr=True).print(text, soft_wrap=True)


def tell_repeated(pairings: Iterable[Pairing], chosen: Sequence[Opening]) -> None:
    """Prints that games are repeated, where openings come again and two players answer from the board alone."""
    repeating = (one.control.kind == "none" and all(spec.repeats for spec in one.players) for one in pairings)
    different = len({opening.board.fen() for opening in chosen})
    if different < len(chosen) and any(repeating):
        text = f"openings of {len(chosen)} pairs: {different}; players repeat games, and the ± is too small"
        Console(stderr=True).print(text, soft_wrap=True)


def _play(
    pool: MatchPool,
    pairing: Pairing,
    starts: list[tuple[int, Opening]],
    kept: Mapping[int, MatchGame],
    test: Sprt | None,
    file: MatchFile | None,
    progress: MatchProgress,
) -> MatchResult:
    """Plays the missing games; returns the result of all games in order, up to the decision of ``test`` if given."""
    counted = None  # number of games that count; None until it is known

    def on_game(game: MatchGame) -> bool:
        progress.game(game)
        if test and len(order.played) % 2 == 0:
            test.add(order.played[-2].score, game.score)
        return bool(test and test.decision)

    order = GamesInOrder(on_game)
    try:
        order.add(kept.values())
        for _, game in () if order.ended else pool.play(make_tasks(pairing, starts, pool.jobs)):
            if file is not None:
                file.add(game)
            order.add([game])
            if order.ended:
                break
        counted = len(order.played)
    finally:
        if file is not None:
            file.close(counted)
    return MatchResult(pairing.player_a.text, pairing.player_b.text, tuple(order.played))


def _print(figures: MatchFigures, test: Sprt | None) -> None:
    console = Console()
    text = (
        "{player_a} v {player_b}: +{wins} ={draws} -{losses}, score {score:.1%}, Elo {elo:+.0f} ± {elo_error:.0f}"
    ).format(**figures)
    console.print(text, soft_wrap=True)
    if test is not None:
        console.print(str(test), soft_wrap=True)
    if errors := figures["errors"]:  # their texts were logged when they happened
        console.print(f"forfeited or lost on time: {len(errors)} of {figures['games']} games")
    for kept in figures.get("punctuality", []):
        if kept["late"]:
            late = "{player}: {late} of {moves} moves late, the worst by {worst_s:.3f} s".format(**kept)
            console.print(late, soft_wrap=True)
