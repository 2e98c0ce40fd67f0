"""A small OpenID Connect provider: any user who arrives is logged in with the claims of `claims`."""

import base64
import hashlib
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import uvicorn
from fastapi import FastAPI, Request
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey
from starlette.responses import JSONResponse, RedirectResponse, Response

CLIENT, SECRET = "segdec", "secret"
ACCEPTED = (f"{CLIENT}:{SECRET}", f"{CLIENT}:")


class Provider:
    """The provider as an app; `claims` are those of the next ID token, `changes` replace some at last, and
    remove those that are `...`.
    """

    def __init__(self) -> None:
        self.app, self.issuer = FastAPI(), ""
        self.key = RSAKey.generate_key(2048, {"kid": "1"})
        self.signing_key = self.key
        self.claims: dict[str, Any] = {"sub": "42", "preferred_username": "Eva", "groups": ["qs", "others"]}
        self.changes: dict[str, Any] = {}
        self._codes: dict[str, dict[str, str]] = {}
        self.app.get("/.well-known/openid-configuration")(self._describe)
        self.app.get("/keys")(lambda: KeySet([self.key]).as_dict(private=False))
        self.app.get("/authorize")(self._authorize)
        self.app.post("/token")(self._token)

    def _describe(self) -> dict[str, Any]:
        places = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
        return {
            "issuer": self.issuer,
            "id_token_signing_alg_values_supported": ["RS256"],
            **{name: f"{self.issuer}/{path}" for name, path in places.items()},
        }

    def _authorize(self, request: Request) -> Response:
        asked = dict(request.query_params)
        assert asked["client_id"] == CLIENT and asked["response_type"] == "code"
        code = secrets.token_urlsafe(8)
        self._codes[code] = asked
        answer = urlencode({"code": code, "state": asked["state"]})
        return RedirectResponse(f"{asked['redirect_uri']}?{answer}", status_code=302)

    async def _token(self, request: Request) -> Response:
        sent = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        login = request.headers.get("authorization", " ").partition(" ")[2]
        given = base64.b64decode(login).decode() or f"{sent['client_id']}:"  # a public client
        asked = self._codes.pop(sent.get("code", ""), None)
        digest = hashlib.sha256(sent.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if asked is None or challenge != asked["code_challenge"] or given not in ACCEPTED:
            return JSONResponse({"error": "invalid_grant"}, status_code=400)
        now = int(time.time())
        fixed = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 60, "nonce": asked["nonce"]}
        claims = {**fixed, **self.claims, **self.changes}
        token = self.sign({name: value for name, value in claims.items() if value is not ...})
        return JSONResponse({"access_token": "unused", "token_type": "Bearer", "id_token": token})

    def sign(self, claims: dict[str, Any]) -> str:
        """Returns the ID token with these claims."""
        return jwt.encode({"alg": "RS256", "kid": "1"}, claims, self.signing_key)


@contextmanager
def running(provider: Provider) -> Iterator[None]:
    """Serves the provider on a free port."""
    listener = socket.create_server(("127.0.0.1", 0))
    provider.issuer = f"http://127.0.0.1:{listener.getsockname()[1]}"
    server = uvicorn.Server(uvicorn.Config(provider.app, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join()


def query_of(url: str) -> dict[str, str]:
    """Returns the query of a URL."""
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
