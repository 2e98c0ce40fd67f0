"""Stations where many photographs are unlike those of the training: the line may have changed."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from sqlalchemy import Connection, select

from api.line.schemas import UnlikePhotographs
from api.line.training_distance import RecentPhotographs
from api.record.tables import inspections
from segdec.artifact import UNLIKE_TRAINING
from segdec.photograph_check import PhotographLimits
from segdec.schemas import ModelIdentity

MIN_COUNT, MIN_SHARE = 5, 0.1
"""Fewest photographs that are reported, and their lowest share of the last ones."""
MAX_LISTED = 12
"""Newest photographs of a report. The page shows all of them, and a person confirms no others."""

FindLimits = Callable[[ModelIdentity], PhotographLimits | None]
"""Returns the limits by which a model decides now; None if it does not answer any more."""


def find_unlike(
    connection: Connection, recent: Iterable[RecentPhotographs], find_limits: FindLimits
) -> Iterator[UnlikePhotographs]:
    """Yields a report for each station where many of the last photographs are beyond the present limits.

    Photographs that people have confirmed, and those like them, are within the limits.
    """
    for photographs in recent:
        if len(photographs.unlike) < MIN_COUNT or (limits := find_limits(photographs.model)) is None:
            continue
        records = [
            number
            for number, measures in photographs.unlike.items()
            if any(distance > 1 for distance in limits.distances(measures).values())
        ]
        if len(records) >= max(MIN_COUNT, MIN_SHARE * photographs.total):
            yield UnlikePhotographs(
                station=photographs.station,
                model=photographs.model.name,
                version=photographs.model.version,
                photographs=photographs.total,
                unlike=len(records),
                reason=_most_frequent_warning(connection, records),
                records=records[:MAX_LISTED],
            )


def _most_frequent_warning(connection: Connection, record_ids: Sequence[int]) -> str:
    statement = select(inspections.c.answer).where(inspections.c.id.in_(record_ids))
    answers = (json.loads(text) for text in connection.execute(statement).scalars())
    warnings = (warning for answer in answers for warning in answer["warnings"])
    counts = Counter(warning for warning in warnings if warning.startswith(UNLIKE_TRAINING))
    return counts.most_common(1)[0][0] if counts else UNLIKE_TRAINING
