"""What the files of a data set mean where they could mean something else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Self

from segdec.images import DEFAULT_MAX_PIXELS


@dataclass(frozen=True)
class ReadingOptions:
    """How masks and annotations are read.

    Attributes:
        mask_threshold: A mask pixel is defective if its value is above this; None for the layout's default.
        mask_values: Class name → value in mask files whose values are classes.
        invert_masks: Whether mask files are above 0 where the photograph is good; None if nobody has decided.
        annotator: Which of several annotations of a photograph is used; see `datasets.formats.label_studio`.
        annotations_before_rotation: Whether annotations were drawn before the EXIF rotation of their
            photographs; None if nobody has decided.
        good_labels: Labels that mean good, compared without case and separators.
        defect_labels: Labels that are classes of defects although they may mean good.
        strict: Turn shapes that are dropped or cut off, and files with several pictures, into problems of
            their photographs.
        max_pixels: Limit on height × width of mask files that are read to list the data set.
    """

    mask_threshold: int | None = None
    mask_values: Mapping[str, int] | None = None
    invert_masks: bool | None = None
    annotator: str | None = None
    annotations_before_rotation: bool | None = None
    good_labels: Sequence[str] = ()
    defect_labels: Sequence[str] = ()
    strict: bool = False
    max_pixels: int = DEFAULT_MAX_PIXELS

    @classmethod
    def of(cls, settings: object) -> Self:
        """Returns the options that `settings` has as attributes of the same names; others have defaults."""
        return cls(**{f.name: getattr(settings, f.name) for f in fields(cls) if hasattr(settings, f.name)})


DEFAULTS = ReadingOptions()

BEFORE_ROTATION = (
    "--annotations-before-rotation (python -m training run: --data.annotations-before-rotation true)"
)
"""The option, for messages."""
