"""What a rule of an inspection plan says about a part."""

from enum import IntEnum


class Severity(IntEnum):
    """The consequence of a rule, in ascending order; the worst of all rules decides.

    Attributes:
        ACCEPT: The part is good.
        NOTE: The part is good; the finding is recorded.
        REVIEW: A person decides.
        REJECT: The part is defective.
        STOP: The part is defective, and the line should stop.
    """

    ACCEPT = 0
    NOTE = 1
    REVIEW = 2
    REJECT = 3
    STOP = 4
