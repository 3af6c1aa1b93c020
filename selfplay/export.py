"""``crownhead export``: writes a network as ONNX for other programs, and on request checks its answers."""

import time
from typing import NotRequired, TypedDict

from engine.console import Console, Table
from engine.files import check_replaceable, check_writable
from engine.version import installed_version
from learner.checkpoint import load_checkpoint
from learner.inference.export import check_export, check_model, export_onnx

from .machines.threads import use_single_thread
from .players import checkpoint_folder
from .requests import ExportRequest


class ExportFigures(TypedDict):
    """An exported file; ``digest`` is that of the checkpoint, ``check`` has the fields of ``Fidelity`` if asked for."""

    path: str
    digest: str
    bytes: int
    seconds: float
    check: NotRequired[dict[str, float]]


def export_command(request: ExportRequest, quiet: bool) -> ExportFigures:
    """Exports a network; see ``crownhead export --help``. Raises ``StorageError`` if the file holds something else."""
    use_single_thread()
    loaded, out = load_checkpoint(checkpoint_folder(request.checkpoint)), request.out
    check_writable(out)
    check_replaceable(out, check_model, "ONNX model")
    start = time.perf_counter()
    export_onnx(loaded.network, out, {"digest": loaded.info.digest, "crownhead": installed_version()})
    figures: ExportFigures = {
        "path": str(out),
        "digest": loaded.info.digest,
        "bytes": out.stat().st_size,
        "seconds": time.perf_counter() - start,
    }
    if request.check:
        figures["check"] = check_export(out, loaded.network)._asdict()
    if not quiet:
        _print(figures)
    return figures


def _print(figures: ExportFigures) -> None:
    console, check = Console(), figures.get("check")
    title = "{path}: {bytes:,} bytes".format(**figures)
    if check is None:
        console.print(title)
        return
    table = Table("compared with the network", "", title=title)
    table.add_row("policy divergence (nats)", f"{check['policy_kl']:.6f}")
    table.add_row("same best move", f"{check['top1_agreement']:.2%}")
    table.add_row("mean error of win, draw and loss", f"{check['wdl_error']:.5f}")
    table.add_row("error of the value (root mean square)", f"{check['value_error']:.5f}")
    console.print(table)
