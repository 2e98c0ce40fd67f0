"""The metrics for Prometheus. The route never waits, so that it answers under load."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from api.errors import document_problems
from api.http.roles import require_role
from api.metrics import Metrics

router = APIRouter(tags=["health"], dependencies=require_role("anyone"))

TEXT = {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Prometheus' text format"}


@router.get("/metrics", response_class=Response, responses={**document_problems(), 200: TEXT})
async def metrics(request: Request) -> Response:
    """Counters and histograms since the start, for Prometheus."""
    counted: Metrics = request.app.state.metrics
    body, content_type = counted.render()
    return Response(body, headers={"Content-Type": content_type})
