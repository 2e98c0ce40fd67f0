"""What is said of how reviewed photographs were divided."""

from collections import Counter
from collections.abc import Iterator, Sequence

from datasets.checking import CheckedPhotograph
from datasets.splitting import SPLITS
from training.formatting import count_of
from training.retrain.splitting import ReviewedSplit


def describe_counts(found: Sequence[CheckedPhotograph], division: ReviewedSplit, known: int) -> str:
    """Returns how many train, validate and test.

    Args:
        found: Those that the run has not seen.
        division: What becomes of them.
        known: How many more there are, which it has seen.
    """
    counts = Counter(
        (division.splits.get(photograph.record.name), photograph.record.label > 0) for photograph in found
    )
    words = zip(SPLITS, ("to train", "to validate", "held back to test both networks"), strict=True)
    told = ", ".join(
        f"{counts[split, False]} good + {counts[split, True]} defective {use}" for split, use in words
    )
    before = f"; {count_of(known, 'photograph')} the run knows already" if known else ""
    return f"{count_of(len(found), 'new photograph')}: {told}{before}"


def describe_left_out(division: ReviewedSplit) -> Iterator[str]:
    """Yields what else is to be known: what follows its kin, what is left out and why."""
    if division.related:
        yield f"{division.related} of them validate or test as a photograph of their part, or a near twin, does"
    if division.replaced:
        number = count_of(len(division.replaced), "old training photograph")
        yield f"{number} stood for the same picture as a review, which counts now"
    for names, why in (
        (division.duplicates, "the run is validated or tested on the same picture"),
        (division.conflicting, "their part is on one side and a near twin on another"),
        (division.unlocalized, "it trains on tiles, and nobody says where their defects are"),
    ):
        if names:
            yield f"{len(names)} left out, since {why}"
    if division.label_conflicts:
        first = division.label_conflicts[0]
        yield (
            f"of {len(division.label_conflicts)} that are left out people say something else than the data set "
            f"does, the first is {first}: correct the data set where they are right"
        )
    yield from division.notes
