"""Texts and table rows of a report."""

from collections.abc import Iterator
from datetime import datetime
from zoneinfo import ZoneInfo

from api.records.events import verdict_of
from api.records.reports.report_content import ReportContent
from segdec.config import GOOD
from segdec.runtime.identifiers import REVIEW


def summary_rows(content: ReportContent) -> Iterator[tuple[str, str]]:
    """Yields names and values of the summary."""
    request, inspected = content.request, content.inspected
    span = request.span
    yield "Period", f"{time_text(span.begin, request.zone)} to {time_text(span.end, request.zone)}"
    yield "Station", "all" if request.station is None else request.station or "unnamed"
    if request.tag is not None:
        yield request.tag
    yield "Inspected", _count(inspected)
    yield "Good", _with_share(content.labels[GOOD], inspected)
    yield "For review", _with_share(content.labels[REVIEW], inspected)
    yield "Defective", _with_share(content.defective, inspected)
    for label, count in content.labels.most_common():
        if verdict_of(label) == "defect":
            yield f"   {label}", _with_share(count, inspected)
    # Not every photograph without a verdict is stored with its metadata.
    yield "Not inspected" if request.tag is None else "Not inspected, at least", _count(content.not_inspected)


def error_lines(content: ReportContent) -> Iterator[str]:
    """Yields sentences about missed defects and false alarms."""
    found = content.statistics
    if content.request.tag is not None:
        yield "These estimates are for all parts of the period and the station."
    if found.called_good and found.missed.high is not None:
        most = percent(found.missed.high / found.called_good)
        called = _count(found.called_good)
        yield f"Of {called} parts called good, at most {most} are defective (95 % confidence)."
    share = found.false_alarm_share
    if share.value is not None and share.low is not None and share.high is not None:
        bounds = f"{percent(share.low)} to {percent(share.high)}"
        called = _count(found.called_defective)
        yield f"Of {called} parts called defective, about {percent(share.value)} are good ({bounds})."
    yield f"{_count(found.reviewed)} of {_count(found.drawn)} sampled parts were reviewed."
    yield from found.notes


def model_rows(content: ReportContent) -> Iterator[tuple[str, ...]]:
    """Yields name, version, number of inspections, thresholds and SHA-256 of the manifest."""
    for used in content.models:
        review = "" if used.review_threshold is None else f"review from {used.review_threshold:.3f}, "
        thresholds = f"{review}defective from {used.threshold:.3f}"
        yield used.model, used.version, _count(used.inspected), thresholds, used.manifest_sha256 or "–"


def rate_rows(content: ReportContent) -> Iterator[tuple[str, ...]]:
    """Yields begin, inspected, defective and rate of each hour or day."""
    for begin, inspected, defective in content.rates:
        rate = percent(defective / inspected) if inspected else "–"
        yield time_text(begin, content.request.zone), _count(inspected), _count(defective), rate


def defect_rows(content: ReportContent) -> Iterator[tuple[str, ...]]:
    """Yields time, part, station, class, score, review and record of each listed defect."""
    for row in content.defects:
        yield (
            time_text(row["inspected_at"], content.request.zone),
            row["part_id"] or "–",
            row["station"],
            row["label"],
            f"{row['score']:.3f}",
            row["reviewed_label"] or "",
            str(row["id"]),
        )


def time_text(moment: datetime, zone: ZoneInfo) -> str:
    """Returns a time in the zone of the plant, to the minute."""
    return moment.astimezone(zone).strftime("%Y-%m-%d %H:%M")


def percent(share: float) -> str:
    """Returns a share in percent."""
    return f"{100 * share:.{2 if share < 0.1 else 1}f} %"


def _count(number: int) -> str:
    return f"{number:,}"


def _with_share(number: int, total: int) -> str:
    return f"{_count(number)} ({percent(number / total)})" if total else _count(number)
