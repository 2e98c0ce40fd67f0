"""Reports failed TLS handshakes, which no other layer sees."""

import logging
import ssl
from collections.abc import Callable

logger = logging.getLogger(__name__)


def report_failed_handshakes(context: ssl.SSLContext, count: Callable[[], None]) -> ssl.SSLContext:
    """Makes the connections of `context` log a failed handshake and call `count`.

    The log line has no client address: the handshake gets bytes, not the socket.
    """

    class WatchedConnection(ssl.SSLObject):
        def do_handshake(self) -> None:
            try:
                super().do_handshake()
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):  # needs more bytes
                raise
            except ssl.SSLError as error:
                reason = error.reason or str(error)
                logger.warning("handshake", extra={"problem": "tls_handshake", "reason": reason})
                count()
                raise

    context.sslobject_class = WatchedConnection
    return context
