"""The choice of the encoder by out-of-fold average precision and by a limit on the time of a prediction."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from segdec.errors import ConfigError
from training.fit.time_control import CACHED_STEP_COST
from training.formatting import format_figure, format_line

SHARE, TOTAL_SHARE = 0.1, 0.3
"""Maximum share of the time limit for the comparison of one encoder, and of all."""

MAX_PHOTOGRAPHS, MIN_PHOTOGRAPHS = 300, 50
"""Limits of the number of photographs on which encoders are compared."""

MAX_STEPS, MIN_STEPS = 200, 100
"""Limits of the number of training steps; after fewer, scores depend on chance."""

SETUP_S = 20.0
"""Duration of the comparison of one encoder without encoding and steps, s."""

STEP_COST = 8 * CACHED_STEP_COST
"""Duration of a step of 8 photographs, in predictions with the fastest encoder."""

NOISE = 0.1
"""Differences of AP below this, divided by the root of the number of defective photographs, are noise."""


@dataclass(frozen=True)
class ComparedEncoder:
    """An encoder, the duration of a prediction with it, and the out-of-fold AP of heads after some steps."""

    name: str
    duration_ms: float
    average_precision: float
    steps: int


@dataclass(frozen=True)
class EncoderComparison:
    """Encoders with heads that were trained on the same photographs and folds for the same `share_s`, s.

    `defective` of the `photographs` have a defect.
    """

    encoders: tuple[ComparedEncoder, ...]
    share_s: float
    photographs: int
    defective: int

    @property
    def noise(self) -> float:
        """Difference of AP below which the faster encoder is better."""
        return NOISE / math.sqrt(self.defective)

    @property
    def is_valid(self) -> bool:
        """Whether the first encoder and another one took enough steps."""
        return self.encoders[0].steps >= MIN_STEPS and len(self._trained) > 1

    @property
    def chosen(self) -> str:
        """The fastest encoder whose AP differs from the highest one by less than noise; else the first."""
        if not self.is_valid:
            return self.encoders[0].name
        highest = max(one.average_precision for one in self._trained)
        similar = [one for one in self._trained if one.average_precision >= highest - self.noise]
        return min(similar, key=lambda one: one.duration_ms).name

    @property
    def _trained(self) -> list[ComparedEncoder]:
        return [one for one in self.encoders if one.steps >= MIN_STEPS]

    def to_lines(self) -> Iterator[str]:
        """Yields the choice with its reason, and a line for each encoder."""
        why = (
            f"the fastest of those whose out-of-fold AP is at most {self.noise:.3f} below the highest one"
            if self.is_valid
            else "the first one, since a comparison needs more time"
        )
        yield format_line(
            "encoder",
            f"{self.chosen}: {why}; at most {self.share_s:.0f} s each, {self.photographs} photographs, "
            f"{self.defective} of them defective, at least {MIN_STEPS} steps",
        )
        for one in self.encoders:
            precision = f"AP {format_figure(one.average_precision)} after {one.steps:>3} steps"
            yield format_line("", f"{one.name:<20} {precision}  {one.duration_ms:.3g} ms per photograph")


def time_share(encoders: int) -> float:
    """Returns the share of the time limit for the comparison of each of so many encoders."""
    return min(SHARE, TOTAL_SHARE / encoders)


def count_photographs(share_s: float, durations_ms: Collection[float]) -> int:
    """Returns how many photographs each encoder has time for besides `MIN_STEPS`, at most the limit."""
    encoding_s = share_s - _fixed_s(durations_ms)
    return min(int(encoding_s / (max(durations_ms) / 1000)), MAX_PHOTOGRAPHS)


def minutes_needed(durations_ms: Collection[float]) -> float:
    """Returns the time limit with which encoders of these durations of a prediction are compared, minutes."""
    needed_s = _fixed_s(durations_ms) + MIN_PHOTOGRAPHS * max(durations_ms) / 1000
    return needed_s / time_share(len(durations_ms)) / 60


def _fixed_s(durations_ms: Collection[float]) -> float:
    return SETUP_S + MIN_STEPS * STEP_COST * min(durations_ms) / 1000


def keep_compared(durations: Mapping[str, float], minutes: float) -> tuple[dict[str, float], float]:
    """Returns the encoders, with their durations, that can be compared, and the minutes needed for all.

    The slowest ones are ignored until the time suffices; none can be compared if only one would remain.
    """
    kept = dict(sorted(durations.items(), key=lambda one: one[1]))
    while kept and minutes < minutes_needed(kept.values()):
        kept.popitem()
    compared = {name: ms for name, ms in durations.items() if len(kept) > 1 and name in kept}
    return compared, minutes_needed(durations.values())


def choose_encoder(names: Sequence[str], max_ms: float, measure: Callable[[str], float]) -> tuple[str, str]:
    """Returns the first of `names` that predicts a photograph within `max_ms`, and a message.

    `measure` returns the duration with a network, ms. Raises a `ConfigError` if the limit is not above 0, or
    all of them take longer.
    """
    if not max_ms > 0:
        raise ConfigError(
            f"--max-ms {max_ms:g}. Expected a time above 0 ms for the prediction of a photograph."
        )
    durations: dict[str, float] = {}
    for name in names:
        durations[name] = measure(name)
        if durations[name] <= max_ms:
            return name, f"{_describe(durations)}; --max-ms {max_ms:g}"
    raise ConfigError(
        f"--max-ms {max_ms:g}: {_describe(durations)}. Expected at most {max_ms:g} ms: give a higher limit, "
        "smaller photographs, or a faster encoder, see python -m training encoders."
    )


def _describe(durations: Mapping[str, float]) -> str:
    (first, duration), *others = durations.items()
    listed = [f"{first} predicts a photograph in {duration:.3g} ms"]
    return ", ".join([*listed, *(f"{name} in {other:.3g} ms" for name, other in others)])
