"""Commands about endgames: ``tablebase``, ``oracle``, ``probe``, ``classics``, ``rules``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from .options import (
    MAX_SEED,
    MOST_PIECES,
    Games,
    Json,
    Net,
    Pieces,
    Positions,
    Seed,
    Tables,
    Trees,
    request_command,
)

tablebase = typer.Typer(help="Exact endgame tables: build, check and describe them.", no_args_is_help=True)
oracle = typer.Typer(
    help="The endgame oracle: networks that judge endgames, measured on exact tables.", no_args_is_help=True
)


@tablebase.command("build")
def tablebase_build(
    pieces: Annotated[int, typer.Option(min=2, max=MOST_PIECES, help="Tables of 2 to this many pieces.")] = 5,
    folder: Annotated[
        Path | None, typer.Option("--dir", help="Folder to build in; if left out, one in the user's cache.")
    ] = None,
    distance: Annotated[bool, typer.Option("--distance", help="Also store how many plies every win takes.")] = False,
    slices: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Build only these slices, like 4400,4301, and those that they need."),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Spread slices over the nodes of this Ray cluster."),
    ] = None,
    quiet: Json = False,
) -> Any:
    """Solve endgames from the rules alone, ignoring repetition and the 80-ply rule. Existing tables are kept.

    With eight pieces there are only tables of four against four.
    """
    from engine.tablebase.commands import build_command

    names = None if slices is None else slices.split(",")
    if address is None:
        return build_command(folder, pieces, distance, quiet, names)
    from ..machines.ray_tables import build_over_cluster

    if distance or names:
        raise ValueError("--distance and --slices work on one machine only: leave them out, or --address")
    return build_command(folder, pieces, False, quiet, None, lambda place: build_over_cluster(place, pieces, address))


@tablebase.command("info")
def tablebase_info(folder: Tables = None, quiet: Json = False) -> Any:
    """Show which tables exist, and the cost of more tables: bytes, time, memory."""
    from engine.tablebase.commands import info_command

    return info_command(folder, quiet)


@tablebase.command("verify")
def tablebase_verify(
    pieces: Annotated[
        int | None, typer.Option(min=2, max=MOST_PIECES, help="Check tables of 2 to this many pieces; all if left out.")
    ] = None,
    folder: Tables = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Keep in the folder what is found right, and begin after it."),
    ] = False,
    quiet: Json = False,
) -> Any:
    """Check the value of every position in the tables against those of all its successors."""
    from engine.tablebase.commands import verify_command

    return verify_command(folder, pieces, quiet, resume)


@tablebase.command("stats")
def tablebase_stats(
    pieces: Annotated[int | None, typer.Option(min=2, max=MOST_PIECES, help="Only tables of this many pieces.")] = None,
    folder: Tables = None,
    quiet: Json = False,
) -> Any:
    """Count wins, draws and losses of every slice, with the longest win, and check the checksums of the files."""
    from engine.tablebase.commands import stats_command

    return stats_command(folder, pieces, quiet)


@tablebase.command("encode")
def tablebase_encode(
    output: Annotated[Path, typer.Argument(help="File to write.")],
    pieces: Annotated[int, typer.Option(min=2, max=7, help="Encode tables of 2 to this many pieces.")] = 5,
    folder: Tables = None,
    net: Annotated[
        Path | None, typer.Option(help="Network of kind pair, or oracle, for the code; if left out, one is trained.")
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(min=0.01, help="Minutes of processor time for training [3]; coding takes more."),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, max=MAX_SEED, help="Seed of the training [1].")] = None,
    quiet: Json = False,
) -> Any:
    """Encode all tables in one small file, without loss: a network and corrections of its errors."""
    from learner.endgame.codec_commands import encode_command

    if net is not None and (minutes, seed) != (None, None):
        raise ValueError("--minutes and --seed are for training, and --net names a network that has learnt: choose")
    return encode_command(folder, pieces, output, net, minutes or 3.0, 1 if seed is None else seed, quiet)


@tablebase.command("decode")
def tablebase_decode(
    file: Annotated[Path, typer.Argument(help="File written by encode.")],
    folder: Annotated[Path, typer.Option("--dir", help="Folder for the tables; existing ones are replaced.")],
    quiet: Json = False,
) -> Any:
    """Decode a file of encode and write its tables, checked against its checksum."""
    from learner.endgame.codec_commands import decode_command

    return decode_command(file, folder, quiet)


def probe(
    fens: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FEN]...", help="Positions; - reads more from standard input, one per line."),
    ] = None,
    net: Net = None,
    folder: Tables = None,
    trees: Trees = True,
    quiet: Json = False,
) -> Any:
    """Judge endgames by the oracle and, if tables cover them, exactly. Without FENs, reads standard input."""
    from learner.endgame.probe_command import probe_command
    from selfplay.players import network_folder

    return probe_command(fens or [], network_folder(net), folder, quiet, trees)


def classics(
    out: Annotated[
        Path | None, typer.Option(help="Folder for the page and its pictures; if left out, text is printed.")
    ] = None,
    folder: Tables = None,
    quiet: Json = False,
) -> Any:
    """Prove the standard endings of textbooks by tables: who wins, in how many plies, and with which moves.

    The tables that come with the package cover endings of up to 5 pieces; one ending has 6 and two have 7.
    """
    from engine.knowledge.classics import classics_command

    return classics_command(folder, out, quiet)


def rules(
    out: Annotated[
        Path | None, typer.Option(help="Folder for a page with measurements of the rules and boards.")
    ] = None,
    learn: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Learn new rules (15 minutes) and write them to this file.")
    ] = None,
    most: Annotated[
        int | None,
        typer.Option("--rules", min=2, max=200, help="Largest number of rules to learn, with --learn; 60 if left out."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=MAX_SEED, help="Seed of the positions drawn, with --learn or --out [1].")
    ] = None,
    folder: Tables = None,
    quiet: Json = False,
) -> Any:
    """Show the rules about endgames that were learnt from the tables; the player `rules` uses nothing else.

    Learning needs tables with distances of up to four pieces, which come with the package.
    """
    from learner.endgame.rules_commands import rules_command

    if learn is None and out is None and seed is not None:
        raise ValueError("--seed is for --learn and --out: without these no positions are drawn")
    return rules_command(out, learn, most, 1 if seed is None else seed, folder, quiet)


@dataclass(frozen=True)
class OracleTrainRequest:
    """Train an endgame network on samples of the exact tables, and make an oracle of it. Ctrl-C saves."""

    out: Annotated[Path, typer.Option(help="Folder for the training; an earlier training in it continues.")]
    kind: Annotated[str | None, typer.Option(help="Kind of a new network: pair (the default) or wang.")] = None
    net: Annotated[str | None, typer.Option(help="Continue the training of this network instead.")] = None
    freeze_body: Annotated[
        bool, typer.Option("--freeze-body", help="Train only the win/draw/loss head of a self-play network.")
    ] = False
    pieces: Pieces = 5
    fewest: Annotated[int, typer.Option(min=2, help="Fewest pieces of a position.")] = 2
    width: Annotated[
        int | None, typer.Option(min=2, help="Numbers per pair of pieces, even; 64 in a new network; widens --net.")
    ] = None
    minutes: Annotated[
        float, typer.Option(min=0.01, help="Minutes of training; tables and calibration take some more.")
    ] = 30.0
    games: Games = None
    seed: Seed = 1
    folder: Tables = None

    def execute(self, quiet: bool) -> Any:
        from learner.endgame.commands import Beginning, Lessons, oracle_train_command
        from selfplay.players import network_folder

        beginning = Beginning(self.kind, network_folder(self.net), self.freeze_body, self.width)
        games = _positions(self.games, self.pieces)
        lessons = Lessons(self.pieces, self.minutes, self.seed, self.folder, self.fewest, games)
        return oracle_train_command(beginning, lessons, self.out, quiet)


_FURTHER_PIECES = 4  # more than tables have, which confidence is extrapolated to (``learner.endgame.extrapolation``)


def _positions(games: Path | None, most: int) -> Any:
    """Positions with at most ``most`` pieces (uint32 [N, 4]) from the games in a folder or file; None without one."""
    if games is None:
        return None
    from ..run.reached import reached_positions

    return reached_positions(games, most)


oracle.command("train")(request_command(OracleTrainRequest, OracleTrainRequest.execute))


@oracle.command("calibrate")
def oracle_calibrate(
    nets: Annotated[list[Path], typer.Argument(metavar="NETWORK...", help="Folders of endgame networks.")],
    out: Annotated[Path, typer.Option(help="Folder for the oracle.")],
    budget: Annotated[float, typer.Option(min=1, help="Mean number of network evaluations per position.")] = 64.0,
    positions: Positions = 100_000,
    seed: Seed = 1,
    games: Games = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Members of an oracle keep their calibration, and it its trees.")
    ] = False,
    folder: Tables = None,
    quiet: Json = False,
) -> Any:
    """Make one oracle of several networks; temperatures and thresholds are chosen on the validation split."""
    from learner.endgame.commands import oracle_calibrate_command

    reached = _positions(games, MOST_PIECES + _FURTHER_PIECES)
    return oracle_calibrate_command(nets, folder, out, budget, positions, seed, quiet, reached, keep)


@oracle.command("trees")
def oracle_trees(
    net: Annotated[Path, typer.Argument(metavar="ORACLE", help="Folder of the oracle; it is rewritten.")],
    pieces: Pieces = 6,
    fewest: Annotated[
        int, typer.Option(min=2, max=MOST_PIECES, help="Fewest pieces; what trees count about fewer stays.")
    ] = 2,
    positions: Annotated[int, typer.Option(min=1, help="Number of positions drawn for each number of pieces.")] = 3_000,
    seed: Seed = 1,
    games: Games = None,
    folder: Tables = None,
    quiet: Json = False,
) -> Any:
    """Let the champion's student search trees where the oracle is unsure: fit, by exact values, how much they count."""
    from learner.endgame.trees_command import oracle_trees_command

    reached = _positions(games, MOST_PIECES)
    return oracle_trees_command(net, pieces, positions, seed, folder, quiet, reached, fewest=fewest)


@dataclass(frozen=True)
class OracleValidateRequest:
    """Measure an oracle on positions of the test split, on which no network is trained."""

    net: Net = None
    pieces: Pieces = 5
    positions: Positions = 100_000
    seed: Seed = 1
    games: Games = None
    folder: Tables = None
    trees: Trees = False

    def execute(self, quiet: bool) -> Any:
        return self.measured(quiet, None)

    def measured(self, quiet: bool, out: Path | None) -> Any:
        """Measures, and writes a report to ``out`` if that is given."""
        from learner.endgame.validate_command import oracle_validate_command
        from selfplay.players import network_folder

        net, games = network_folder(self.net), _positions(self.games, self.pieces)
        return oracle_validate_command(
            net, self.pieces, self.positions, self.seed, self.folder, quiet, out, games, self.trees
        )


@dataclass(frozen=True)
class OracleReportRequest(OracleValidateRequest):
    """Measure an oracle and write a report: an HTML page, its figures as PNG, all numbers as JSON."""

    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("oracle-report")

    def execute(self, quiet: bool) -> Any:
        return self.measured(quiet, self.out)


oracle.command("validate")(request_command(OracleValidateRequest, OracleValidateRequest.execute))
oracle.command("report")(request_command(OracleReportRequest, OracleReportRequest.execute))
