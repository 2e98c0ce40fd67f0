"""What a picture is kept for."""

from enum import IntEnum


class RetentionClass(IntEnum):
    """What is worth least is deleted first. The numbers stand in the database."""

    GOOD = 0
    GOOD_SAMPLE = 1
    TO_REVIEW = 2
    DEFECT = 3
    REVIEWED = 4
