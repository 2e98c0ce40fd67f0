"""The messages of `retrain` about the split of reviewed images."""

from collections import Counter
from collections.abc import Iterator, Sequence

from datasets.checked_photograph import CheckedPhotograph
from datasets.splitting import SPLITS
from segdec.runtime.counts import count_of
from training.retrain.splitting import ReviewedSplit


def describe_counts(new: Sequence[CheckedPhotograph], split: ReviewedSplit, known: int) -> str:
    """Returns how many new images are in each split; the parent run already has `known` reviewed images."""
    counts = Counter(
        (split.splits.get(photograph.item.name), photograph.item.label > 0) for photograph in new
    )
    uses = zip(SPLITS, ("to train", "to validate", "held back to test both networks"), strict=True)
    listed = ", ".join(
        f"{counts[name, False]} good + {counts[name, True]} defective {use}"
        for name, use in uses
        if name == "train" or counts[name, False] + counts[name, True]
    )
    before = f"; {count_of(known, 'photograph')} the run has already" if known else ""
    return f"{count_of(len(new), 'new photograph')}: {listed}{before}"


def describe_ignored(split: ReviewedSplit) -> Iterator[str]:
    """Yields which images join a related one, replace another, or are skipped, and why."""
    if split.related:
        yield f"{split.related} of them validate or test, as a related photograph does"
    if split.replaced:
        number = count_of(len(split.replaced), "former training photograph")
        yield f"{number} replaced by a review of the same picture"
    for names, why in (
        (split.duplicates, "the run is validated or tested on the same picture"),
        (split.conflicting, "their part is in one split and a near duplicate in another"),
        (split.unlocalized, "the run trains on tiles, and they have no mask or box"),
    ):
        if names:
            yield f"{len(names)} skipped: {why}"
    if split.label_conflicts:
        yield (
            f"{len(split.label_conflicts)} of the skipped reviews contradict the data set, the first is "
            f"{split.label_conflicts[0]}: correct the data set if the review is right"
        )
    yield from split.notes
