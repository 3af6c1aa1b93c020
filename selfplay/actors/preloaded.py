"""All that processes that play need; the server that they are forks of imports it once (see ``processes``)."""

import atexit
import os

from ..machines.processes import PATH_BEFORE
from ..matches import workers as match_workers  # noqa: F401
from . import worker  # noqa: F401

# Only for these imports: the programs that players start look for modules as they always do.
os.environ.pop("PYTHONSAFEPATH", None)
if before := os.environ.pop(PATH_BEFORE, ""):
    os.environ["PYTHONPATH"] = before
else:
    os.environ.pop("PYTHONPATH", None)
atexit.register(os._exit, 0)  # of the server alone, and at once: others may wait for the end of its output
