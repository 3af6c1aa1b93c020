"""The text of a model card."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from learner.checkpoint import Checkpoint, CheckpointInfo
from learner.report import Cell, Section, Table, Text, percent

from ..matches.ladder import StandingsFigures
from ..matches.ladder_commands import ratings_table, steps_table
from ..run.config import RunConfig
from ..run.stages import config_at, training_commands

Results = Mapping[str, Any]

_LONGER = 1.1  # times the planned minutes: a run that was continued, and not one whose last gate took long


def card_sections(
    networks: Sequence[Checkpoint],
    results: Results,
    machine: str,
    config: RunConfig | None,
    ladder: StandingsFigures | None,
) -> list[Section]:
    """Returns the sections of the card.

    Args:
        networks: the network that was measured, and its student if there is one.
        results, machine, ladder: see ``card.CardData``.
        config: the configuration of the run that trained the network.
    """
    info = networks[0].info
    size = f"A {info.network.family} network, {info.network.size}, {_parameters(networks[0])}"
    sections = [
        Section(
            "Network",
            [
                Text(f"{size}; policy and win/draw/loss head."),
                Text(f"Digest of its weights: {info.digest}."),
                *map(_student, networks[1:]),
            ],
        ),
        _training(info, config),
        Section("Matches", [_matches(results), Text(f"Measured on {machine}. The games lie in matches/ as PDN.")]),
        Section("Endgames", [*_endgames(results)]),
    ]
    if ladder is not None:
        sections.append(ladder_section(ladder))
    return sections


def _parameters(loaded: Checkpoint) -> str:
    return f"{sum(weights.numel() for weights in loaded.network.parameters()):,} parameters"


def _student(student: Checkpoint) -> Text:
    figures = student.info.figures
    learnt = ", ".join(f"{float(str(figures[name])):,.0f} {name}" for name in ("games", "samples") if name in figures)
    return Text(
        f"A student beside it, {student.info.network.size}, {_parameters(student)}, plays in its place where time "
        f"limits the search. Trained on searches{f': {learnt}' if learnt else ''}."
    )


def _training(info: CheckpointInfo, config: RunConfig | None) -> Section:
    names = {"steps": "training steps", "games": "games", "samples": "positions", "minutes": "minutes"}
    rows: list[list[Cell]] = [
        [text, round(float(str(info.figures[name])))] for name, text in names.items() if name in info.figures
    ]
    rows.append(["written", info.created.date().isoformat()])
    blocks: list[Any] = [Table("When the network was made", ["", "until then"], rows)]
    if config is not None:
        for number, command in enumerate(training_commands(config)):
            when = "" if number == 0 else f", after {config.stages[number - 1].steps:,} steps"
            blocks.append(Text(f"Command{when}: {command}"))
        planned, used = config_at(config, 0).loop.minutes, float(str(info.figures.get("minutes", 0)))
        if planned is not None and used > _LONGER * planned:
            blocks.append(Text(f"Continued by --resume --minutes, to {used:.0f} minutes in all."))
        blocks.append(Text("All settings: config.json."))
        blocks.append(Text(_origin(config)))
    return Section("Training", blocks)


def _origin(config: RunConfig) -> str:
    """What a run began with and was taught by."""
    text = f"It began with {'random weights' if config.init is None else f'the network {config.init[:12]}'}"
    if config.teacher is not None:
        text += f", and learnt from the answers of the network {config.teacher.digest[:12]} as well"
    if config.opponent is not None:
        return f"{text}. All its games were against the network {config.opponent.digest[:12]}."
    if config.teacher is not None or config.init is not None:
        return f"{text}."
    return f"{text}. No games or evaluations of others were used."


def _matches(results: Results) -> Table:
    rows: list[list[Cell]] = []
    for name, figures in results.items():
        if name.startswith("match "):
            elo = f"{figures['elo']:+.0f} ± {figures['elo_error']:.0f}"
            score = f"{100 * figures['score']:.1f} %"
            rows.append([figures["command"], *(figures[key] for key in ("wins", "draws", "losses")), score, elo])
    return Table("NET is this network", ["command", "won", "drawn", "lost", "score", "Elo"], rows)


def _endgames(results: Results) -> Iterator[Table | Text]:
    if figures := results.get("endgames"):
        rows: list[list[Cell]] = [
            [pieces, *(percent(line[key]) for key in ("accuracy", "accuracy_search", "accuracy_oracle"))]
            for pieces, line in [*figures["by_pieces"].items(), ("all", figures)]
        ]
        yield Table(
            f"Its win/draw/loss head on {figures['positions']:,} uniform positions of the test split, right in percent",
            ["pieces", "network alone", "with capture search", "with all searches of the oracle"],
            rows,
        )
    if figures := results.get("head"):
        yield _head(figures)
    if figures := results.get("conversion"):
        rows = [
            [line["pieces"], line["positions"], line["possible"], line["won"], percent(line["share"]), line["longest"]]
            for line in [*figures["by_pieces"], {"pieces": "all", **figures}]
        ]
        yield Table(
            f"Won positions against perfect defence, {figures['simulations']} simulations a move, under the rules of "
            "the game; it uses the tables that come with the program, the defence has all distances",
            ["pieces", "positions", "possible", "won", "share", "longest, plies"],
            rows,
        )
    if figures := results.get("first move"):
        search = figures.get("move_seconds", 1.0)  # on older cards the usual time of an external engine
        yield Text(
            f"From the command crownhead engine to the end of its first move, a search of {search:g} s: "
            f"{figures['seconds']:.1f} s, with compiled functions on disk."
        )


def _head(figures: Mapping[str, Any]) -> Table:
    """Accuracy of each network's win/draw/loss head alone, by number of pieces, on uniform and on game positions."""
    names = [name for name in ("network", "student") if name in figures["by_pieces"][0]["uniform"]]
    columns = [(source, name) for source in ("uniform", "games") for name in names]
    rows: list[list[Cell]] = []
    for line in figures["by_pieces"]:
        cells = ["" if line[source] is None else percent(line[source][name]["accuracy"]) for source, name in columns]
        counts = [0 if line[source] is None else line[source]["positions"] for source in ("uniform", "games")]
        rows.append([line["pieces"], *cells, *counts])
    heads = [f"{name}, {source}" for source, name in columns]
    return Table(
        "Its win/draw/loss head alone, without any search, right in percent: on uniform positions of the test split, "
        "and on positions of games, each once",
        ["pieces", *heads, "positions, uniform", "of games"],
        rows,
    )


def ladder_section(ladder: StandingsFigures) -> Section:
    blocks: list[Any] = [
        ratings_table(ladder, f"Promoted networks and anchors; {ladder['reference']} is 0"),
        steps_table(ladder, "Every network against the one before"),
    ]
    if climb := ladder.get("climb"):
        blocks.append(Text(f"First to last: {climb['elo']:.0f} ± {climb['elo_error']:.0f} Elo."))
    return Section("Ladder", blocks)
