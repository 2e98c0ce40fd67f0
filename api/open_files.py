"""The limit of open files: recognises that it is reached, and says what to do."""

import errno
import logging
import os
import resource

LIMIT_ERRORS = (errno.EMFILE, errno.ENFILE)
"""Of the process and of the machine."""
logger = logging.getLogger(__name__)


def is_limit_reached(error: BaseException | None = None) -> bool:
    """Returns whether `error` reports the limit of open files; without one, whether it is reached now."""
    if error is not None:
        return getattr(error, "errno", None) in LIMIT_ERRORS or os.strerror(errno.EMFILE) in str(error)
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as failure:
        return failure.errno in LIMIT_ERRORS
    return False


def describe_limit() -> str:
    """Returns the limit and how to raise it."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return (
        f"The limit of {limit} open files is reached. Raise it (`ulimit -n`, `LimitNOFILE=` of systemd, "
        "`--ulimit nofile=` of Docker), or limit the connections in the proxy"
    )


def raise_limit() -> None:
    """Raises the soft limit of this process to its hard limit."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class OpenFilesMonitor:
    """Logs that no more files and connections can be opened, once until they can."""

    def __init__(self) -> None:
        self._reached = False

    def check(self) -> None:
        """Checks the limit; called every second, because the event loop closes such connections silently."""
        was_reached, self._reached = self._reached, is_limit_reached()
        if self._reached and not was_reached:
            logger.error("No more files can be opened and no connections accepted. %s", describe_limit())
        elif was_reached and not self._reached:
            logger.warning("Files can be opened again")
