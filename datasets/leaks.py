"""Equal pictures in different splits: what is tested must not have been learnt."""

from collections.abc import Sequence

from datasets.checking import CheckedDataset, CheckedPhotograph, describe_problems, equal_pictures
from datasets.name_lists import known_names, nearest_known, records_by_name
from datasets.sample import Dataset
from segdec.errors import DatasetError

Leak = tuple[CheckedPhotograph, ...]
"""The places of one picture that lies in two splits or three."""


def find_leaks(photographs: Sequence[CheckedPhotograph]) -> list[Leak]:
    """Finds every picture that lies in more than one split; photographs without a split do not count."""
    assigned = (
        tuple(photograph for photograph in same if photograph.record.split is not None)
        for same in equal_pictures(photographs)
    )
    return [same for same in assigned if len({photograph.record.split for photograph in same}) > 1]


def unallowed_leaks(
    dataset: Dataset, photographs: Sequence[CheckedPhotograph], allowed: Sequence[str]
) -> list[Leak]:
    """Returns every leak but those of which each photograph is named.

    Args:
        dataset: Knows all names.
        photographs: What was found of it.
        allowed: Names of records, groups or folders.

    Raises:
        DatasetError: If one of the names is not there; it tells the nearest.
    """
    known = known_names(dataset) if allowed else set()
    for name in allowed:
        if name not in known:
            raise DatasetError(
                f"'{name}' is named in data.allowed_leaks (or --allow-leak), but no photograph and no group "
                f"is named so. {nearest_known(name, known)}"
            )
    by_name = records_by_name([photograph.record for photograph in photographs] if allowed else [])
    passing = {record.name for name in allowed for record in by_name.get(name, ())}
    return [leak for leak in find_leaks(photographs) if any(f.record.name not in passing for f in leak)]


def refuse_unusable(
    dataset: Dataset, checked: CheckedDataset, *, allowed_leaks: Sequence[str] = (), skip_broken: bool = False
) -> None:
    """Refuses pictures that lie in more than one split, and problems unless they are to be skipped.

    Takes names as `unallowed_leaks`.

    Raises:
        DatasetError: If there are any; one error lists all problems and all leaks that are not allowed.
    """
    problems = () if skip_broken else checked.dataset.problems
    leaks = unallowed_leaks(dataset, checked.photographs, allowed_leaks)
    reports = [describe_problems(problems)] if problems else []
    reports += [_describe(leaks)] if leaks else []
    if reports:
        raise DatasetError("\n".join(reports))


def _describe(leaks: Sequence[Leak]) -> str:
    """How many there are, one line each, and what to do."""
    many = len(leaks) != 1
    return "\n".join(
        [
            f"{len(leaks)} picture{'s lie' if many else ' lies'} in different splits:",
            *(f"  {name_all(leak)}" for leak in leaks),
            "Put equal pictures into one split (python -m datasets split does so), remove all but one, or "
            "name the photographs or their groups in data.allowed_leaks (training) or with --allow-leak "
            "(python -m datasets inspect, pack).",
        ]
    )


def name_all(same: Sequence[CheckedPhotograph]) -> str:
    """Names equal pictures on one line, each with its split."""
    return " = ".join(
        f"{photograph.record.name} ({photograph.record.split or 'left out'})" for photograph in same
    )
