"""A request about one photograph: read body, infer, encode."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, Self, TypeVar

from starlette.requests import Request

from api.errors import RequestError
from api.http.admission import ByteReservation, cancel_on_disconnect
from api.http.mask_encoding import check_mask_form
from api.http.middleware.access import add_log_fields
from api.http.request_params import QueryModel, RequestParams
from api.inspecting.inspector import InferredPhotograph, InspectedPhotograph, Inspection, OnDecoded
from api.inspecting.service import InspectionService
from api.inspecting.uploads import Upload, read_upload
from api.models.registry import ServedModel

T = TypeVar("T")


@dataclass
class PhotographRequest(Generic[QueryModel]):
    """A request about one photograph; its `with` block keeps the model loaded and counts the body's memory.

    `wants_file`: whether the client accepts the mask alone, as a file.
    """

    request: Request
    service: InspectionService
    model: ServedModel
    params: RequestParams[QueryModel]
    wants_file: bool
    _stack: ExitStack = field(default_factory=ExitStack, init=False)
    _body_bytes: ByteReservation = field(init=False)
    _inspection: Inspection = field(init=False)

    @classmethod
    def check(
        cls,
        request: Request,
        service: InspectionService,
        model: ServedModel,
        params: RequestParams[QueryModel],
    ) -> "PhotographRequest[QueryModel]":
        """Rejects invalid requests before the body is read; raises a RequestError, 400 or 503."""
        wants_file = prefers_png(request.headers.get("accept", ""))
        if wants_file and params.query.mask not in ("png", "scores", "classes"):
            detail = (
                f"Accept: image/png with mask={params.query.mask}. Expected mask=png, "
                "mask=scores or mask=classes with it."
            )
            raise RequestError(400, "bad_parameter", detail)
        check_mask_form(params.query.mask, model.config)
        service.queue.check()  # a full service does not read the body first
        return cls(request, service, model, params, wants_file)

    def __enter__(self) -> Self:
        enter = self._stack.enter_context
        enter(self.model.usage)
        self._body_bytes = enter(self.service.bodies.reserve())
        self._inspection = enter(self.service.inspector.open(self.model, self.params.deadline))
        return self

    def __exit__(self, *failure: object) -> None:
        self._stack.close()

    async def read_body(self, *, with_part: bool = False) -> Upload:
        """Reads the photograph and, if `with_part`, its part; errors as `BodyReceiver.receive` and
        `read_upload`.
        """
        limit = self.service.settings.max_body_bytes
        reading = partial(read_upload, self.request, limit, with_part=with_part)
        receive = self.service.bodies.receive
        return await receive(self.request, reading, self._body_bytes, self.params.deadline)

    async def infer(
        self, upload: Upload, station: str, on_decoded: OnDecoded | None = None
    ) -> InferredPhotograph:
        """Decodes the photograph and runs the network until the client disconnects; see `Inspection`."""
        threshold = self.params.query.threshold
        work = self._inspection.infer(upload, on_decoded, threshold=threshold, station=station)
        return await cancel_on_disconnect(self.request, work)

    async def encode(
        self, inferred: InferredPhotograph, make_answer: Callable[[InspectedPhotograph], T]
    ) -> T:
        """Makes the answer in an image thread and adds the decision to the log; as `Inspection.encode`."""
        work = self._inspection.encode(inferred, make_answer)
        inspected, answer = await cancel_on_disconnect(self.request, work)
        add_log_fields(
            self.request,
            model=inspected.model.name,
            version=inspected.model.version,
            label=inspected.label,
            score=round(inspected.prediction.score, 6),
            **({} if inspected.judged is None else {"plan": inspected.judged[0].number}),
        )
        return answer


def prefers_png(accept: str) -> bool:
    """Returns whether an `Accept` header prefers the mask alone: image/png, unless JSON has more weight."""
    weights = {}
    for part in accept.lower().split(","):
        kind, *parameters = (word.strip() for word in part.split(";"))
        quality = next((word[2:] for word in parameters if word.startswith("q=")), "1")
        weights[kind] = _number(quality)
    png = weights.get("image/png", 0.0)
    return png > 0 and png >= weights.get("application/json", 0.0)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 1.0
