"""Clients of the inspection service: `Client` is synchronous, `AsyncClient` is for an event loop."""

from segdec.errors import MissingExtraError

try:
    from segdec.client.clients import AsyncClient, Client
except ModuleNotFoundError as error:
    raise MissingExtraError(error.name or "httpx", "client") from error

__all__ = ["AsyncClient", "Client"]
