"""What the errors of the record mean, for clients and for the log."""

import errno

from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from api.database.database_files import DatabaseReplacedError
from api.open_files import describe_limit, is_limit_reached

CORRUPTED = "its database is corrupted"
CORRUPTION_TEXTS = ("malformed", "not a database")
"""In messages of SQLite."""
CORRUPTION_STATES = ("XX001", "XX002")
"""Of PostgreSQL: corrupted data, corrupted index."""


def is_full(error: Exception) -> bool:
    """Returns whether an error means that a disk is full."""
    text = str(getattr(error, "orig", error))
    return "full" in text or "space left" in text or getattr(error, "errno", None) == errno.EDQUOT


def is_corrupted(error: Exception) -> bool:
    """Returns whether an error means that the database is corrupted."""
    if not isinstance(error, DBAPIError):
        return False
    state = getattr(error.orig, "sqlstate", None)
    return state in CORRUPTION_STATES or any(text in str(error.orig) for text in CORRUPTION_TEXTS)


def is_out_of_files(error: Exception) -> bool:
    """Returns whether the limit of open files caused an error; SQLite reports only that it cannot open."""
    if is_limit_reached(error):
        return True
    return "unable to open" in str(getattr(error, "orig", "")) and is_limit_reached()


def describe(error: Exception) -> str:
    """Describes an error in a few words for clients; the log has the details."""
    if isinstance(error, DatabaseReplacedError):
        return "its database was removed or replaced"
    if is_full(error):
        return "its disk is full"
    if is_out_of_files(error):
        return "the service has too many open files"
    if isinstance(error, OSError):
        return "its pictures cannot be written"
    if is_corrupted(error):
        return CORRUPTED
    return "its database does not answer" if isinstance(error, SQLAlchemyError) else "the service has a fault"


def explain(error: Exception) -> str:
    """Describes an error for the log, and says what to do if that is known."""
    if is_corrupted(error):
        advice = "Stop the service, keep a copy of the database, and restore a backup (docs/record.md)"
        return f"the database is corrupted ({getattr(error, 'orig', error)}). {advice}"
    return f"{error}. {describe_limit()}" if is_out_of_files(error) else str(error)


def is_outage(error: Exception) -> bool:
    """Returns whether nothing can be stored now; then trying each inspection alone only costs time."""
    if isinstance(error, OperationalError):  # a lock timeout, an unreachable server
        return not is_full(error)
    if isinstance(error, (ConnectionError, PoolTimeoutError)):
        return True
    return is_disconnect(error) or is_corrupted(error)


def is_disconnect(error: Exception) -> bool:
    """Returns whether the connection was lost, and another attempt may succeed."""
    if isinstance(error, DatabaseReplacedError):
        return True
    return isinstance(error, DBAPIError) and error.connection_invalidated
