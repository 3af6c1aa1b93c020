"""The student of a checkpoint: a second network in its folder, which plays where time limits a search.

It is a checkpoint of its own, in the subfolder ``student``. Older students are one file of a
wide network; such files are still read.
"""

from pathlib import Path

from engine.errors import one_line
from engine.files import sha256_of

from .checkpoint import (
    INFO_FILE,
    Checkpoint,
    CheckpointError,
    CheckpointInfo,
    load_checkpoint,
    read_info,
    read_tensors,
    whole_folder,
)
from .network import WideConfig, make_network
from .network_base import NetworkError

STUDENT_FOLDER = "student"
_OLD_FILE = "student.safetensors"


def has_student(folder: Path) -> bool:
    folder = whole_folder(folder)
    return (folder / STUDENT_FOLDER / INFO_FILE).is_file() or (folder / _OLD_FILE).is_file()


def read_student_info(folder: Path) -> CheckpointInfo | None:
    """What is known of the student in the folder of a checkpoint; None if there is none.

    Raises:
        CheckpointError: it cannot be read.
    """
    folder = whole_folder(folder)
    if (folder / STUDENT_FOLDER / INFO_FILE).is_file():
        return read_info(folder / STUDENT_FOLDER)
    student = load_student(folder)
    return None if student is None else student.info


def load_student(folder: Path) -> Checkpoint | None:
    """The student in the folder of a checkpoint; None if there is none.

    Raises:
        CheckpointError: it cannot be read, is damaged, or (of the old format) was taught by another network.
    """
    folder = whole_folder(folder)
    if (folder / STUDENT_FOLDER / INFO_FILE).is_file():
        return load_checkpoint(folder / STUDENT_FOLDER)
    return _load_old(folder) if has_student(folder) else None


def _load_old(folder: Path) -> Checkpoint:
    path = folder / _OLD_FILE
    tensors, fields = read_tensors(path)
    teacher = read_info(folder)
    try:
        config = WideConfig.model_validate(fields["student"])
        network = make_network(config).eval()
        network.set_weights(tensors)
        parent, figures, crownhead = str(fields["teacher"]), dict(fields["figures"]), str(fields["crownhead"])
    except (KeyError, TypeError, ValueError, NetworkError) as error:
        raise CheckpointError(f"{path}: no student of this program: {one_line(error)}") from error
    if parent != teacher.digest:
        raise CheckpointError(f"{path}: taught by another network than the one beside it; remove it, or train it anew")
    info = CheckpointInfo(
        network=config,
        figures=figures,
        parent=parent,
        digest=sha256_of(path.read_bytes()),
        created=teacher.created,
        crownhead=crownhead,
    )
    return Checkpoint(network, info)
