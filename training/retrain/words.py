"""What is said of how reviewed photographs were divided."""

from collections import Counter
from collections.abc import Iterator, Sequence

from datasets.checking import CheckedPhotograph
from datasets.splitting import SPLITS
from training.evaluation.formatting import count_of
from training.retrain.division import Division


def tell_counts(found: Sequence[CheckedPhotograph], division: Division, known: int) -> str:
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


def tell_left_out(division: Division) -> Iterator[str]:
    """Yields what else is to be known: what follows its kin, what is left out and why."""
    if division.kin:
        yield f"{division.kin} of them validate or test as a photograph of their part, or a near twin, does"
    if division.replaced:
        number = count_of(len(division.replaced), "old training photograph")
        yield f"{number} stood for the same picture as a review, which counts now"
    for names, why in (
        (division.equal, "the run is validated or tested on the same picture"),
        (division.torn, "their part is on one side and a near twin on another"),
        (division.placeless, "it trains on tiles, and nobody says where their defects are"),
    ):
        if names:
            yield f"{len(names)} left out, since {why}"
    if division.contradicted:
        first = division.contradicted[0]
        yield (
            f"of {len(division.contradicted)} that are left out people say something else than the data set "
            f"does, the first is {first}: correct the data set where they are right"
        )
    yield from division.notes
