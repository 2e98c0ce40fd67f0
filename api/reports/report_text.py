"""Texts and table rows of a report."""

from collections.abc import Iterator

from api.messages.language import Language
from api.record.events import verdict_of
from api.reports.report_content import ReportContent
from segdec.config import GOOD
from segdec.runtime.identifiers import NOT_INSPECTED, REVIEW, UNSURE


def summary_rows(content: ReportContent) -> Iterator[tuple[str, str]]:
    """Yields names and values of the summary."""
    request, language = content.request, content.request.language
    translate = language.translate
    begin, end = (language.time(moment, request.zone) for moment in (request.span.begin, request.span.end))
    yield translate("Period"), translate("{begin} to {end}", begin=begin, end=end)
    station = request.station or translate("unnamed")
    yield translate("Station"), translate("all") if request.station is None else station
    if request.tag is not None:
        yield request.tag
    yield from _count_rows(content)


def _count_rows(content: ReportContent) -> Iterator[tuple[str, str]]:
    language = content.request.language
    translate = language.translate

    def with_share(count: int) -> str:
        share = f" ({language.percent(count / content.inspected)})" if content.inspected else ""
        return language.count(count) + share

    yield translate("Inspected"), language.count(content.inspected)
    yield translate("Good"), with_share(content.labels[GOOD])
    yield translate("For review"), with_share(content.labels[REVIEW])
    yield translate("Defective"), with_share(content.defective)
    for label, count in content.labels.most_common():
        if verdict_of(label) == "defect":
            yield f"   {label}", with_share(count)
    # Not every photograph without a verdict is stored with its metadata.
    is_exact = content.request.tag is None
    title = translate("Not inspected") if is_exact else translate("Not inspected, at least")
    yield title, language.count(content.not_inspected)


def error_lines(content: ReportContent) -> Iterator[str]:
    """Yields sentences about missed defects and false alarms."""
    statistics, language = content.statistics, content.request.language
    if content.request.tag is not None:
        yield language.translate("These estimates are for all parts of the period and the station.")
    if statistics.called_good and statistics.missed.value is None:
        yield language.translate_count(
            statistics.called_good,
            "Too few reviews to tell whether {count} part called good is defective.",
            "Too few reviews to tell how many of {count} parts called good are defective.",
        )
    elif statistics.called_good and statistics.missed.high is not None:
        yield language.translate_count(
            statistics.called_good,
            "Of {count} part called good, at most {share} are defective (95 % confidence).",
            "Of {count} parts called good, at most {share} are defective (95 % confidence).",
            share=language.percent(statistics.missed.high / statistics.called_good),
        )
    share = statistics.false_alarm_share
    if share.value is not None and share.low is not None and share.high is not None:
        yield language.translate_count(
            statistics.called_defective,
            "Of {count} part called defective, about {share} are good ({low} to {high}).",
            "Of {count} parts called defective, about {share} are good ({low} to {high}).",
            share=language.percent(share.value),
            low=language.percent(share.low),
            high=language.percent(share.high),
        )
    yield language.translate_count(
        statistics.reviewed,
        "{count} of {drawn} sampled parts was reviewed.",
        "{count} of {drawn} sampled parts were reviewed.",
        drawn=language.count(statistics.drawn),
    )
    yield from statistics.notes


def model_titles(content: ReportContent) -> list[str]:
    """Returns the titles of the columns of `model_rows`."""
    translate = content.request.language.translate
    titles = translate("Model"), translate("Version"), translate("Inspected"), translate("Thresholds")
    return [*titles, translate("Inspection plan"), "SHA-256"]


def model_rows(content: ReportContent) -> Iterator[tuple[str, ...]]:
    """Yields name, version, number of inspections, thresholds, plan, SHA-256 of the manifest with signer."""
    language = content.request.language
    for used in content.models:
        threshold = language.decimals(used.threshold, 3)
        if used.review_threshold is None:
            limits = language.translate("defective from {threshold}", threshold=threshold)
        else:
            limits = language.translate(
                "review from {review}, defective from {threshold}",
                review=language.decimals(used.review_threshold, 3),
                threshold=threshold,
            )
        sha256 = used.manifest_sha256 or "–"
        if (signer := content.signers.get(used.manifest_sha256)) is not None:
            sha256 += f", {language.translate('signed with the key {key}', key=signer)}"
        plan = "–" if used.plan is None else f"{used.plan} {used.plan_version}"
        yield used.model, used.version, language.count(used.inspected), limits, plan, sha256


def rate_titles(content: ReportContent) -> list[str]:
    """Returns the titles of the columns of `rate_rows`."""
    translate = content.request.language.translate
    return [translate("From"), translate("Inspected"), translate("Defective"), translate("Rate")]


def rate_rows(content: ReportContent) -> Iterator[tuple[str, ...]]:
    """Yields begin, inspected, defective and rate of each hour or day."""
    request, language = content.request, content.request.language
    for begin, inspected, defective in content.rates:
        rate = language.percent(defective / inspected) if inspected else "–"
        time = language.time(begin, request.zone)
        yield time, language.count(inspected), language.count(defective), rate


def defect_titles(content: ReportContent) -> list[str]:
    """Returns the titles of the columns of `defect_rows`."""
    translate = content.request.language.translate
    part = translate("Time"), translate("Part"), translate("Station"), translate("Class")
    return [*part, translate("Score"), translate("Review"), translate("Record")]


def defect_rows(content: ReportContent) -> Iterator[tuple[str, ...]]:
    """Yields time, part, station, class, score, review and record of each listed defect."""
    request, language = content.request, content.request.language
    for row in content.defects:
        yield (
            language.time(row["inspected_at"], request.zone),
            row["part_id"] or "–",
            row["station"],
            row["label"],
            language.decimals(row["score"], 3),
            label_text(row["reviewed_label"], language),
            str(row["id"]),
        )


def label_text(label: str | None, language: Language) -> str:
    """Returns a label as text, empty if it is None; the names of defect classes are those of the model."""
    texts = {
        None: "",
        GOOD: language.translate("good"),
        REVIEW: language.translate("review"),
        UNSURE: language.translate("unsure"),
        NOT_INSPECTED: language.translate("not inspected"),
    }
    return texts.get(label, label or "")


def shorten(text: str, limit: int) -> str:
    """Returns the first `limit` characters of a text, with an ellipsis if it has more."""
    return text if len(text) <= limit else f"{text[:limit]}…"
