"""A request about one photograph: what it asks, then the photograph itself."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from starlette.requests import Request

from api.errors import RequestError
from api.inspection.admission import cancel_on_disconnect
from api.inspection.mask_encoding import check_mask_form
from api.inspection.photograph_pipeline import InspectedPhotograph, See, inspect_photograph
from api.middleware.access import add_log_fields
from api.models.registry import ServedModel
from api.routes.request_params import QueryModel, RequestParams
from api.routes.uploads import Upload, read_upload
from api.service import Service

T = TypeVar("T")


@dataclass(frozen=True)
class PhotographRequest(Generic[QueryModel]):
    """What is asked about a photograph that has not been read yet.

    Attributes:
        request: Whose body is the photograph.
        service: Answers.
        model: With which.
        params: Query and deadline.
        wants_file: Whether the mask alone is wanted, as a file.
    """

    request: Request
    service: Service
    model: ServedModel
    params: RequestParams[QueryModel]
    wants_file: bool

    @classmethod
    def check(
        cls, request: Request, service: Service, model: ServedModel, params: RequestParams[QueryModel]
    ) -> "PhotographRequest[QueryModel]":
        """Rejects, before the body is read, what would be rejected after it.

        Raises:
            RequestError: 400 or 503.
        """
        wants_file = prefers_png(request.headers.get("accept", ""))
        if wants_file and params.query.mask not in ("png", "scores", "classes"):
            raise RequestError(
                400,
                "bad_parameter",
                f"Accept: image/png with mask={params.query.mask}. Expected mask=png, "
                "mask=scores or mask=classes with it.",
            )
        check_mask_form(params.query.mask, model.config)
        service.queue.check()  # a full service does not read the body first
        return cls(request, service, model, params, wants_file)

    @asynccontextmanager
    async def photograph(self, *, with_part: bool = False) -> AsyncIterator[Upload]:
        """Yields the body; within the block its memory is counted, and the model stays.

        Args:
            with_part: Whether it may also say what part it shows.

        Raises:
            RequestError: As `Service.receive` and `read_upload`.
        """
        with self.model.usage, self.service.bodies.reserve() as reservation:
            limit = self.service.settings.max_body_bytes
            reading = partial(read_upload, self.request, limit, reservation, with_part=with_part)
            yield await self.service.receive(reading, self.params.deadline)

    async def inspect(
        self, upload: Upload, encode: Callable[[InspectedPhotograph], T], see: See | None = None
    ) -> tuple[InspectedPhotograph, T]:
        """Inspects it unless the client goes; notes the verdict for the log. As `inspect_photograph`."""
        work = inspect_photograph(
            self.service,
            self.model,
            upload,
            threshold=self.params.query.threshold,
            deadline=self.params.deadline,
            encode=encode,
            see=see,
        )
        inspected, answer = await cancel_on_disconnect(self.request, work)
        identity, prediction = inspected.model, inspected.prediction
        add_log_fields(
            self.request,
            model=identity.name,
            version=identity.version,
            label=prediction.label,
            score=round(prediction.score, 6),
        )
        return inspected, answer


def prefers_png(accept: str) -> bool:
    """Returns whether an `Accept` header asks for the mask alone: it names image/png, and JSON not before."""
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
