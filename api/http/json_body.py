"""JSON bodies without photographs; their size is bounded before they are parsed."""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from fastapi import Depends, FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import request_params_to_args
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from api.errors import RequestError, describe_json_errors
from api.http.body_receiver import BodyReceiver
from api.http.body_schemas import describe_json_body
from api.http.components import find_component
from api.http.request_body import JSON_TYPE, check_unique_names, is_json, media_type, parse_json, read_body
from api.http.request_params import DeadlineDep
from api.http.settings import ServerSettings

MAX_JSON_BYTES = 64 * 1024
MAX_JSON_VALUES = 5000
"""Maximum number of JSON values (estimated from commas, so commas in texts are counted too)."""
Limit = int | Callable[[ServerSettings], int]
"""Maximum number of bytes, or what returns it for the settings."""


def largest_body(settings: ServerSettings) -> int:
    """Returns the limit of a JSON body that contains a file."""
    return max(settings.max_body_bytes, MAX_JSON_BYTES)


class JsonBody:
    """A dependency that reads the JSON body of a request as `model`, at most `limit` bytes and `max_values`
    values; with `any_type`, its Content-Type is not checked.
    """

    def __init__(self, model: type[BaseModel], limit: Limit, any_type: bool, max_values: int) -> None:
        self.model, self._limit, self._any_type, self._max_values = model, limit, any_type, max_values

    async def __call__(self, request: Request, deadline: DeadlineDep) -> BaseModel:
        """Reads the body until the deadline.

        FastAPI reports invalid parameters of a route only after its dependencies, so they are checked here.

        Raises:
            RequestValidationError: If a parameter of the route is invalid; the body is not read.
            RequestError: 415 for another Content-Type, 413 for a larger body, 400 for invalid JSON, 503
                without memory for it, 408 if it takes too long.
        """
        if errors := list(_find_parameter_errors(request, request.scope["route"].dependant)):
            raise RequestValidationError(errors)
        if not self._any_type and not is_json(media_type(request)):
            kind = request.headers.get("content-type", "")[:80]
            raise RequestError(
                415, "unsupported_content_type", f"The Content-Type is '{kind}'. Expected {JSON_TYPE}."
            )
        limit = self._limit if isinstance(self._limit, int) else self._limit(request.app.state.settings)
        bodies = find_component(request, BodyReceiver)
        with bodies.reserve() as memory:
            body = await bodies.receive(request, partial(read_body, request, limit), memory, deadline)
            return await asyncio.to_thread(self._parse, body)

    def _parse(self, body: bytes) -> BaseModel:
        parsed = parse_json(body, self.model, self._max_values, partial(_bad_json, self.model))
        check_unique_names(body)
        return parsed


def json_body(
    model: type[BaseModel],
    limit: Limit = MAX_JSON_BYTES,
    any_type: bool = False,
    max_values: int = MAX_JSON_VALUES,
) -> Any:
    """Returns the dependency of a route with a JSON body.

    Use it as `Annotated[NewUser, json_body(NewUser)]`.
    """
    return Depends(JsonBody(model, limit, any_type, max_values))


def document_json_bodies(app: FastAPI) -> None:
    """Adds the bodies that `JsonBody` reads to the OpenAPI document, when it is made."""
    describe = app.openapi

    def openapi() -> dict[str, Any]:
        for route in app.routes:
            # Apps share their routes.
            if isinstance(route, APIRoute) and route.openapi_extra is None:
                model = _model_of(route.dependant)
                route.openapi_extra = None if model is None else describe_json_body(model)
        return describe()

    app.openapi = openapi  # type: ignore[method-assign]  # as `document_keys` does


def _model_of(dependant: Dependant) -> type[BaseModel] | None:
    if isinstance(dependant.call, JsonBody):
        return dependant.call.model
    return next(filter(None, map(_model_of, dependant.dependencies)), None)


def _find_parameter_errors(request: Request, dependant: Dependant) -> Iterator[Any]:
    """Yields the errors of parameters in the path, the query and the headers."""
    for fields, sent in (
        (dependant.path_params, request.path_params),
        (dependant.query_params, request.query_params),
        (dependant.header_params, request.headers),
    ):
        yield from request_params_to_args(fields, sent)[1]
    for dependency in dependant.dependencies:
        yield from _find_parameter_errors(request, dependency)


def _bad_json(model: type[BaseModel], error: ValidationError) -> RequestError:
    detail = f"{describe_json_errors(error)}. Expected a JSON object with {', '.join(model.model_fields)}."
    return RequestError(400, "bad_json", detail)
