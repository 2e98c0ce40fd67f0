"""Serves the state of the line to PLCs and control rooms by OPC UA, in a thread of its own."""

import asyncio
import itertools
import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from urllib.parse import urlsplit

from asyncua import Server, ua
from asyncua.crypto.permission_rules import USER_TYPES, SimpleRoleRuleset, User, UserRole
from asyncua.server.user_managers import UserManager
from cryptography import x509
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from api.delivery.line_state import LineStateReader, StationState
from api.delivery.loop_thread import LoopThread
from api.delivery.opcua_access import OpcUaAccess
from api.delivery.opcua_nodes import LineNodes
from segdec import __version__
from segdec.errors import ConfigError

INTERVAL_S = 1.0
"""Seconds between heartbeats, and between reads of the record."""
STOP_S = 5.0
RESTART_S = 10.0
"""Seconds after an unexpected end until the server starts again."""
MAX_AGE_S = 10.0
"""Age of the shown state of the line beyond which the server counts as down."""
WRITING_REQUESTS = {
    ua.ObjectIds.WriteRequest_Encoding_DefaultBinary,
    ua.ObjectIds.CallRequest_Encoding_DefaultBinary,
}
SECURITY_POLICIES = [
    ua.SecurityPolicyType.Basic256Sha256_SignAndEncrypt,
    ua.SecurityPolicyType.Aes128Sha256RsaOaep_SignAndEncrypt,
    ua.SecurityPolicyType.Aes256Sha256RsaPss_SignAndEncrypt,
]
logger = logging.getLogger(__name__)


class _ReadOnly(SimpleRoleRuleset):  # type: ignore[misc]
    """Allows every request that does not write, after a login."""

    def __init__(self) -> None:
        allowed = {ua.NodeId(number) for number in USER_TYPES if number not in WRITING_REQUESTS}
        self._permission_dict = {**dict.fromkeys(UserRole, frozenset()), UserRole.User: allowed}


class _Users(UserManager):  # type: ignore[misc]
    """Checks user names; nobody is an administrator."""

    def __init__(self, access: OpcUaAccess) -> None:
        self._access = access

    def get_user(
        self, _server: object, username: str | None = None, password: str | None = None, **_: object
    ) -> User | None:
        if username is None:
            return User(role=UserRole.User) if self._access.anonymous else None
        check = self._access.check_login
        if check is not None and check(username, password or ""):
            return User(role=UserRole.User, name=username)
        logger.warning("OPC UA: a login as %r is refused", username)
        return None


class OpcUaServer:
    """The server.

    `pair` are the files of certificate and private key; None: without encryption. No other object may use
    `engine`; `close` disposes it.

    Raises:
        ConfigError: If the endpoint has another form.
    """

    def __init__(
        self,
        endpoint: str,
        pair: tuple[Path, Path] | None,
        engine: Engine,
        state: LineStateReader,
        access: OpcUaAccess,
    ) -> None:
        self._endpoint, self._pair = _check(endpoint), pair
        self._engine, self.state, self._access = engine, state, access
        self._started: Future[None] = Future()
        self._thread = LoopThread("opcua", self._run, self._on_error)
        self._is_usable: Callable[[], bool] = lambda: True
        self._nodes: LineNodes | None = None
        self._shown_at = float("-inf")

    def start(self, is_usable: Callable[[], bool]) -> None:
        """Starts the server; returns when it accepts connections.

        While `is_usable` returns False, values have a bad quality.

        Raises:
            ConfigError: If the address is in use, or certificate and key cannot be used.
        """
        self._is_usable = is_usable
        self._thread.start()
        self._started.result()

    def close(self) -> None:
        """Stops the server."""
        self._thread.close(STOP_S)
        self._engine.dispose()

    @property
    def is_up(self) -> bool:
        """Whether clients can read the present state of the line."""
        return time.monotonic() - self._shown_at < MAX_AGE_S

    @property
    def skipped(self) -> int:
        """Number of stations that are not shown because of an error."""
        return 0 if self._nodes is None else len(self._nodes.skipped)

    def problems(self) -> dict[str, str]:
        """Describes what clients do not get now, by codes."""
        problems = {}
        if not self.is_up:
            problems["opcua_down"] = "The OPC UA server does not show the line: the log says why."
        if self.skipped:  # without names: everybody may read /readyz
            problems["opcua_stations"] = f"OPC UA does not show {self.skipped} stations: the log names them."
        return problems

    def _on_error(self, error: Exception) -> None:
        self._started.set_exception(self._explain(error))

    async def _run(self) -> None:
        """Serves until the thread stops; starts again after an unexpected end."""
        while True:
            try:
                await self._serve()
                return
            except Exception as error:
                if not self._started.done():
                    raise
                logger.critical("OPC UA has ended and starts again in %g s", RESTART_S, exc_info=error)
            self._shown_at = float("-inf")
            if await self._is_stopping(RESTART_S):
                return

    async def _serve(self) -> None:
        server = Server(user_manager=_Users(self._access))
        await server.init()
        # asyncua reads for a session of another client after a failed login to it; its tokens can be guessed.
        server.iserver.lookup_external_session = lambda _token: None
        named = self._access.check_login is not None
        kinds = {ua.AnonymousIdentityToken: self._access.anonymous, ua.UserNameIdentityToken: named}
        server.set_identity_tokens([kind for kind, accepted in kinds.items() if accepted])
        server.set_server_name("segdec")
        server.set_endpoint(self._endpoint)
        server.allow_remote_admin(False)
        policies = [ua.SecurityPolicyType.NoSecurity]
        if self._pair is not None:
            policies = SECURITY_POLICIES
            certificate, key = (path.read_bytes() for path in self._pair)
            await server.set_application_uri(_application_uri(certificate))
            await server.load_certificate(certificate, _format_of(certificate))
            await server.load_private_key(key, format=_format_of(key))
        server.set_security_policy(policies, permission_ruleset=_ReadOnly())
        nodes = self._nodes = LineNodes(server)
        await nodes.create()
        async with server:
            self._shown_at = time.monotonic()
            if not self._started.done():
                self._started.set_result(None)
            logger.info("OPC UA at %s, segdec %s", self._endpoint, __version__)
            async with asyncio.TaskGroup() as working:
                working.create_task(self._write_heartbeats(nodes))
                working.create_task(self._write_states(nodes))

    async def _write_heartbeats(self, nodes: LineNodes) -> None:
        for count in itertools.count(1):
            await nodes.write_heartbeat(count)
            if await self._is_stopping(INTERVAL_S):
                return

    async def _write_states(self, nodes: LineNodes) -> None:
        failed = False
        while True:
            try:
                states = await asyncio.to_thread(self._read)
            except Exception as error:
                if not failed and not isinstance(error, SQLAlchemyError):  # the record logs these
                    logger.exception("OPC UA: the state of the line cannot be read")
                failed = True
                await nodes.mark_unusable()
            else:
                failed = False
                await nodes.write_states(states, usable=self._is_usable())
                self._shown_at = time.monotonic()
            if await self._is_stopping(INTERVAL_S):
                return

    async def _is_stopping(self, seconds: float) -> bool:
        """Waits; returns whether the server stops."""
        try:
            await asyncio.wait_for(self._thread.stopping.wait(), seconds)
        except TimeoutError:
            return False
        return True

    def _read(self) -> Mapping[str | None, StationState]:
        with self._engine.connect() as connection:
            return self.state.read(connection)

    def _explain(self, error: Exception) -> Exception:
        if isinstance(error, OSError) and not error.filename:
            reason = error.strerror or error
            return ConfigError(f"Cannot serve OPC UA at {self._endpoint}: {reason}. Choose another address.")
        if self._pair is not None and isinstance(error, (OSError, ValueError, TypeError)):
            files = " and ".join(map(str, self._pair))
            return ConfigError(
                f"{files} cannot be used for OPC UA ({error}). Expected a certificate and its RSA key, "
                "without a password, as PEM or DER."
            )
        return error


def _application_uri(certificate: bytes) -> str:
    """Returns the application URI, which clients compare with the certificate."""
    pem = _format_of(certificate) == "PEM"
    read = x509.load_pem_x509_certificate if pem else x509.load_der_x509_certificate
    try:
        names = read(certificate).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        return names.get_values_for_type(x509.UniformResourceIdentifier)[0]
    except (x509.ExtensionNotFound, IndexError):
        raise ValueError("the certificate has no application URI in subjectAltName") from None


def _format_of(file: bytes) -> str:
    return "PEM" if b"-----BEGIN" in file else "DER"


def _check(endpoint: str) -> str:
    try:
        parts = urlsplit(endpoint)
        known = parts.scheme == "opc.tcp" and parts.hostname and parts.port
    except ValueError:
        known = False
    if not known:
        raise ConfigError(
            f"--opcua-endpoint '{endpoint}' is not an address. Expected for example "
            "opc.tcp://0.0.0.0:4840/segdec."
        )
    return endpoint
