"""One spelling for classes that differ only in case, as `Scratch` and `scratch`."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from datasets.formats.annotation_reader import FileAnnotation


def unify_spelling(annotations: Sequence[FileAnnotation]) -> tuple[list[FileAnnotation], list[str]]:
    """Returns the annotations with one spelling of each class, and a note for each class with several.

    The spelling is that of a folder, otherwise the most frequent one.
    """
    number = Counter(label for each in annotations for label in each.classes)
    folders = {each.folder_class for each in annotations}
    spellings: dict[str, list[str]] = defaultdict(list)
    for label in sorted(number, key=lambda label: (label not in folders, -number[label], label)):
        spellings[label.casefold()].append(label)
    several = [listed for listed in spellings.values() if len(listed) > 1]
    chosen = {label: listed[0] for listed in several for label in listed}
    notes = [f"The labels {', '.join(map(repr, listed))} were read as {listed[0]!r}." for listed in several]
    return ([renamed(each, chosen) for each in annotations] if chosen else list(annotations)), notes


def renamed(annotation: FileAnnotation, chosen: Mapping[str, str]) -> FileAnnotation:
    """Returns the annotation with the chosen names of its labels, wherever they are."""
    stated = annotation.folder_class
    return replace(
        annotation,
        shapes=[replace(each, label=chosen.get(each.label, each.label)) for each in annotation.shapes],
        labels=[chosen.get(label, label) for label in annotation.labels],
        masks=[(path, chosen.get(label, label)) for path, label in annotation.masks],
        folder_class=None if stated is None else chosen.get(stated, stated),
    )
