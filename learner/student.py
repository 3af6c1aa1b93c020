"""The student of a checkpoint: a second network in its folder, which plays where time limits a search.

It is a checkpoint of its own, in the subfolder ``student``.
"""

from pathlib import Path

from .checkpoint import INFO_FILE, Checkpoint, CheckpointInfo, load_checkpoint, read_info, whole_folder

STUDENT_FOLDER = "student"


def has_student(folder: Path) -> bool:
    return (whole_folder(folder) / STUDENT_FOLDER / INFO_FILE).is_file()


def read_student_info(folder: Path) -> CheckpointInfo | None:
    """What is known of the student in the folder of a checkpoint; None if there is none.

    Raises:
        CheckpointError: it cannot be read.
    """
    return read_info(whole_folder(folder) / STUDENT_FOLDER) if has_student(folder) else None


def load_student(folder: Path) -> Checkpoint | None:
    """The student in the folder of a checkpoint; None if there is none.

    Raises:
        CheckpointError: it cannot be read, or is damaged.
    """
    return load_checkpoint(whole_folder(folder) / STUDENT_FOLDER) if has_student(folder) else None
