"""Responses for an inspected photograph: the complete answer as JSON, or only the mask as a file."""

import time
from collections.abc import Sequence
from urllib.parse import quote

from starlette.responses import Response

from api.http.mask_encoding import encode_mask, encode_mask_file, outline_parts
from api.http.request_params import QueryModel, RequestParams
from api.inspecting.inspector import InspectedPhotograph
from api.inspecting.plan_answer import make_plan_answer
from segdec.schemas import Answer, Decision, ImageFacts, ModelIdentity, PlanAnswer, RegionAnswer, Timing

HEADER_PREFIX = "X-Segdec-"
MAX_HEADER_TEXT = 200
"""Characters of a finding in a header, each up to 12 bytes: proxies limit the size of headers."""


def make_answer(inspected: InspectedPhotograph, *, params: RequestParams[QueryModel]) -> Answer:
    """Makes the complete answer. Slow for a large mask, so call it in a thread."""
    prediction, inferred = inspected.prediction, inspected.inferred
    mask = encode_mask(prediction, params.query.mask, params.query.space)
    regions = [RegionAnswer.model_validate(region, from_attributes=True) for region in prediction.regions]
    ended = time.perf_counter()
    timing_ms = {
        "queue": inferred.queue_ms,
        "decode": inferred.facts.decode_ms,
        "infer": inferred.result.infer_ms,
        "encode": (ended - inspected.encode_started) * 1000,
        "total": (ended - params.started) * 1000,
    }
    return Answer(
        id=params.request_id,
        model=inspected.model,
        image=inspected.image,
        decision=make_decision(inspected),
        mask=mask,
        regions=regions,
        timing_ms=Timing(**{step: round(ms, 3) for step, ms in timing_ms.items()}),
        batch_size=inferred.result.batch_size,
        warnings=list(inspected.warnings),
        inspected_area=None if prediction.area is None else outline_parts(prediction.area),
        plan=describe_judgement(inspected),
    )


def make_json_response(inspected: InspectedPhotograph, *, params: RequestParams[QueryModel]) -> Response:
    """Makes the response with the complete answer. Call it in a thread."""
    answer = make_answer(inspected, params=params)
    return Response(answer.model_dump_json(), media_type="application/json")


def make_mask_response(inspected: InspectedPhotograph, *, params: RequestParams[QueryModel]) -> Response:
    """Makes the response for `Accept: image/png`: the mask as the body, all other values in headers. Call it
    in a thread.
    """
    prediction = inspected.prediction
    content = encode_mask_file(prediction, params.query.mask, params.query.space)
    headers = answer_headers(
        make_decision(inspected),
        inspected.model,
        inspected.image,
        inspected.warnings,
        describe_judgement(inspected),
    )
    return Response(content, headers=headers, media_type="image/png")


def answer_headers(
    decision: Decision,
    model: ModelIdentity,
    image: ImageFacts,
    warnings: Sequence[str],
    plan: PlanAnswer | None,
) -> dict[str, str]:
    """Returns all values of an answer except the mask, as headers; text is percent-encoded UTF-8."""
    facts = {
        "Label": quote(decision.label),
        "Score": repr(decision.score),
        "Threshold": repr(decision.threshold),
        "Review-Threshold": "" if decision.review_threshold is None else repr(decision.review_threshold),
        "Model": quote(model.name),
        "Version": quote(model.version),
        "Integrity": image.integrity,
        "Warnings": quote("; ".join(warnings)),
    }
    if plan is not None:
        facts |= {
            "Model-Label": quote(decision.model_label or ""),
            "Plan": quote(plan.name),
            "Plan-Version": str(plan.version),
            "Severity": plan.severity,
            "Finding": quote(plan.sentence[:MAX_HEADER_TEXT]),
        }
    return {HEADER_PREFIX + name: value for name, value in facts.items() if value}


def describe_judgement(inspected: InspectedPhotograph) -> PlanAnswer | None:
    """Describes the verdict of the inspection plan; None without one."""
    return None if inspected.judged is None else make_plan_answer(*inspected.judged)


def make_decision(inspected: InspectedPhotograph) -> Decision:
    prediction = inspected.prediction
    return Decision(
        label=inspected.label,
        model_label=None if inspected.judged is None else prediction.label,
        score=prediction.score,
        threshold=prediction.threshold,
        review_threshold=prediction.review_threshold,
        unlike_training=inspected.inferred.facts.comparison.reason is not None,
        probabilities=prediction.probabilities,
    )
