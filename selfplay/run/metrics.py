"""State of a run as metrics for Prometheus, on loopback only: ``crownhead status RUN --prometheus PORT``."""

import logging
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from engine.errors import one_line

from ..rating.ratings import RatingsError
from .folder import RunError
from .status import StatusFigures

_COUNTERS = ("games", "samples", "steps", "promotions")
_GAUGES = ("seconds_ago", "minutes", "iteration", "window", "in_flight", "refused", "elo")
_LOG = logging.getLogger(__name__)


class RunCollector(Collector):
    """Reads the state of the run at each scrape.

    Names of metrics are ``crownhead_`` and a key of ``StatusFigures`` or ``LearnerFigures``; those of counters end in
    ``_total``, those of machines begin with ``crownhead_machine_`` and have the label ``machine``.
    ``crownhead_up`` is 0 while the run cannot be read, and then it is the only one.
    """

    def __init__(self, read: Callable[[], StatusFigures]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        try:
            figures = self._read()
        except (RunError, RatingsError, OSError) as error:
            _LOG.warning("metrics: %s", one_line(error))
            yield _up(0)
            return
        yield _up(1)
        values: dict[str, object] = {**figures}
        for key in _COUNTERS:
            yield CounterMetricFamily(f"crownhead_{key}", f"{key} of the run", value=float(figures[key]))  # type: ignore[literal-required]
        for key, value in [*((key, values[key]) for key in _GAUGES), *(figures["learner"] or {}).items()]:
            if isinstance(value, int | float):
                yield GaugeMetricFamily(f"crownhead_{key}", key.replace("_", " "), value=value)
        for key in ("actors", "games_per_second", "samples_per_second", "evaluations_per_second", "gpu_busy", "behind"):
            family = GaugeMetricFamily(f"crownhead_machine_{key}", key.replace("_", " "), labels=["machine"])
            for machine in figures["machines"]:
                if (value := machine[key]) is not None:  # type: ignore[literal-required]
                    family.add_metric([machine["machine"]], float(value))
            yield family


def _up(value: int) -> Metric:
    return GaugeMetricFamily("crownhead_up", "whether the run can be read", value=value)


def serve_metrics(read: Callable[[], StatusFigures], port: int) -> Callable[[], None]:
    """Serves metrics in a thread; returns a function that stops it. Raises ``OSError`` if the port is in use."""
    registry = CollectorRegistry()
    registry.register(RunCollector(read))
    server, thread = start_http_server(port, addr="127.0.0.1", registry=registry)

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return stop
