"""How long a picture is kept."""

from enum import IntEnum


class RetentionClass(IntEnum):
    """Classes of pictures; the lowest are deleted first. The database stores the numbers."""

    GOOD = 0
    GOOD_SAMPLE = 1
    TO_REVIEW = 2
    DEFECT = 3
    REVIEWED = 4
