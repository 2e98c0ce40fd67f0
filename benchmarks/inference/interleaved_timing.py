"""Competitors measured in turn, and the machine's peak in the same rounds."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

from benchmarks.inference.competitor import Competitor
from benchmarks.inference.competitors import matrix_products
from benchmarks.inference.peers.matmul import FLOP
from benchmarks.reporting import interleave, spread


@dataclass(frozen=True)
class Timing:
    """What `time_interleaved` measured.

    Attributes:
        seconds: Of each competitor, one a round.
        peak: FLOP/s of the fastest matrix product.
        peak_mb: Most memory of each competitor, 10⁶ bytes.
        versions: Library of each competitor.
        cpu_seconds: Processor time of each competitor, one a round.
    """

    seconds: Mapping[str, list[float]]
    peak: float
    peak_mb: Mapping[str, float]
    versions: Mapping[str, str]
    cpu_seconds: Mapping[str, list[float]] = field(default_factory=dict)

    def median(self, name: str) -> float:
        """Returns the median seconds; NaN for who did not take part."""
        return spread(self.seconds[name])["median"] if name in self.seconds else float("nan")

    def ratio(self, name: str, other: str) -> float:
        """Returns how many times as fast as `other`."""
        return self.median(other) / self.median(name)

    def least_cpu(self, name: str) -> float:
        """Returns the least processor time, which other work on the machine lengthens the least; else NaN."""
        return min(self.cpu_seconds.get(name, [float("nan")]))

    def peak_share(self, name: str, flop: float) -> float:
        """Returns the FLOP/s of the direct network, in percent of the peak."""
        return 100 * flop / self.median(name) / self.peak


def time_interleaved(competitors: Mapping[str, Competitor], rounds: int) -> Timing:
    """Starts all, asks each once a round and ends them.

    Raises:
        RunError: If one ends before.
    """
    products = matrix_products()
    everyone = {**competitors, **products}
    with ExitStack() as stack:
        for competitor in everyone.values():
            stack.enter_context(competitor)
        measured = interleave({name: competitor.ask for name, competitor in everyone.items()}, rounds)
    fastest = min(min(measured.pop(name)) for name in products)
    versions = {name: competitor.ready["version"] for name, competitor in everyone.items()}
    peak_mb = {name: competitor.answers[-1]["peak_mb"] for name, competitor in competitors.items()}
    cpu_seconds = {
        name: [answer["cpu_seconds"] for answer in competitor.answers[1:]]
        for name, competitor in competitors.items()
    }
    return Timing(measured, FLOP / fastest, peak_mb, versions, cpu_seconds)
