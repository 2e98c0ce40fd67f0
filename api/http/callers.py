"""Who sends a request: the user or the API key that `AccessControl` found, or the address."""

from starlette.requests import Request

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
"""Methods that change nothing."""


def caller_of(request: Request) -> str:
    """Returns the name of the user or the key that sent a request; empty without one."""
    return request.state.user or request.state.key or ""


def author_of(request: Request) -> str:
    """Returns who makes a change: the user or the key, or without one the address."""
    return caller_of(request) or unknown_person(request)


def unknown_person(request: Request) -> str:
    """Returns whom the audit log names if there is neither a user nor a key."""
    return f"unknown person at {request.client.host if request.client else 'an unknown address'}"


def client_of(request: Request) -> str:
    """Returns the client of a request, for limits: its user, its key, or without either its address."""
    state = request.state
    if state.user:
        return f"user {state.user}"
    return (
        f"key {state.key}" if state.key else f"address {request.client.host if request.client else 'unknown'}"
    )
