"""Answers about reviews, as JSON."""

from datetime import datetime

from pydantic import Field

from api.record.schemas import InspectionRecord, ReviewReason
from segdec.schemas import AnswerPart


class ShadowVerdict(AnswerPart):
    """A candidate's prediction for a photograph."""

    model: str
    version: str
    label: str
    score: float | None = Field(description="1 − P(good); null: not inspected")


class ReviewTask(AnswerPart):
    """An inspection to be reviewed."""

    record: InspectionRecord
    why: ReviewReason = Field(
        description="a candidate differs; sampled by chance; `review`, or near the threshold; called "
        "defective; queued again by a person; without a verdict"
    )
    labels: list[str] = Field(description="possible labels besides `unsure`; the good one first")
    lease_until: datetime = Field(description="until then no other session gets it")
    shadows: list[ShadowVerdict]


class ReviewTasks(AnswerPart):
    """The tasks of a session."""

    tasks: list[ReviewTask] = Field(description="in the order in which to show them")
    waiting: int = Field(description="length of the queue including these; at most 10,000 are counted")


class Estimate(AnswerPart):
    """An estimate from a sample with its 95 % interval."""

    value: float | None = Field(description="null: a stratum has no reviews yet, or there are no inspections")
    low: float | None
    high: float | None


class ReviewStatistics(AnswerPart):
    """Error rates of a period, estimated from reviews."""

    since: datetime | None
    until: datetime | None
    station: str | None
    inspected: int
    called_good: int
    called_defective: int
    for_review: int = Field(description="verdict `review`")
    drawn: int = Field(description="queued by sampling")
    reviewed: int = Field(description="reviewed ones among them, `unsure` included")
    unsure: int
    defect_rate: Estimate = Field(description="share of defective parts among all inspected")
    missed: Estimate = Field(description="number of defective parts among those called good")
    miss_rate: Estimate = Field(description="share of those called good among all defective parts")
    false_alarms: Estimate = Field(description="number of good parts among those called defective")
    false_alarm_share: Estimate = Field(description="their share of those called defective")
    notes: list[str] = Field(description="caveats of the estimates")


class ReviewerAgreement(AnswerPart):
    """How often two people who reviewed the same photograph decided alike."""

    reviewed_twice: int = Field(description="pairs of reviews by different people, of the newest inspections")
    agreed: int = Field(description="pairs in which both said good, or both a defect")
