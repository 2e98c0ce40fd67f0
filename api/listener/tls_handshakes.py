"""TLS handshakes that fail: no layer above hears of them."""

import logging
import ssl
from collections.abc import Callable

logger = logging.getLogger(__name__)


def report_failed_handshakes(context: ssl.SSLContext, count: Callable[[], None]) -> ssl.SSLContext:
    """Makes the connections of `context` tell of a failed handshake: by a line in the log and by `count`.

    The client's address is not in the line: the handshake sees bytes and no socket.
    """

    class WatchedConnection(ssl.SSLObject):
        def do_handshake(self) -> None:
            try:
                super().do_handshake()
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):  # more bytes are to come
                raise
            except ssl.SSLError as error:
                reason = error.reason or str(error)
                logger.warning("handshake", extra={"problem": "tls_handshake", "reason": reason})
                count()
                raise

    context.sslobject_class = WatchedConnection
    return context
