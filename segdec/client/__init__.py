"""A client of the inspection service: `Client` waits for each answer, `AsyncClient` is for an event loop."""

from segdec.client.clients import AsyncClient, Client

__all__ = ["AsyncClient", "Client"]
