"""Contenders measured in turn, and the machine's peak in the same rounds."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from benchmarks.inference.competitor import Competitor
from benchmarks.inference.competitors import matrix_products
from benchmarks.inference.peers.matmul import FLOP
from benchmarks.reporting import interleave, spread


@dataclass(frozen=True)
class Race:
    """What `run_race` measured.

    Attributes:
        seconds: Of each contender, one a round.
        peak: FLOP/s of the fastest matrix product.
        peak_mb: Most memory of each contender, 10⁶ bytes.
        versions: Library of each contender.
    """

    seconds: Mapping[str, list[float]]
    peak: float
    peak_mb: Mapping[str, float]
    versions: Mapping[str, str]

    def median(self, name: str) -> float:
        """Median seconds; NaN for who did not take part."""
        return spread(self.seconds[name])["median"] if name in self.seconds else float("nan")

    def ratio(self, name: str, other: str) -> float:
        """How many times as fast as `other`."""
        return self.median(other) / self.median(name)

    def peak_share(self, name: str, flop: float) -> float:
        """FLOP/s of the direct network, in percent of the peak."""
        return 100 * flop / self.median(name) / self.peak


def run_race(contenders: Mapping[str, Competitor], rounds: int) -> Race:
    """Starts all, asks each once a round and ends them.

    Raises:
        RunError: If one ends before.
    """
    products = matrix_products()
    everyone = {**contenders, **products}
    with ExitStack() as stack:
        for contender in everyone.values():
            stack.enter_context(contender)
        measured = interleave({name: contender.ask for name, contender in everyone.items()}, rounds)
    fastest = min(min(measured.pop(name)) for name in products)
    versions = {name: contender.ready["version"] for name, contender in everyone.items()}
    peak_mb = {name: contender.answers[-1]["peak_mb"] for name, contender in contenders.items()}
    return Race(measured, FLOP / fastest, peak_mb, versions)
