"""What the errors of the record mean, for clients and for the log."""

import errno

from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from api.database.database_files import DatabaseReplacedError
from api.open_files import describe_limit, is_limit_reached

CORRUPTION_TEXTS = ("malformed", "not a database")
"""In messages of SQLite."""
CORRUPTION_STATES = ("XX001", "XX002")
"""Of PostgreSQL: corrupted data, corrupted index."""
READ_ONLY_ERRORS = (errno.EROFS, errno.EACCES, errno.EPERM)
DESCRIPTIONS = {
    "database_replaced": "its database was removed or replaced",
    "disk_full": "its disk is full",
    "too_many_files": "the service has too many open files",
    "read_only": "its database or its folder is read-only or not accessible",
    "pictures_not_writable": "its pictures cannot be written",
    "database_corrupted": "its database is corrupted",
    "database_locked": "another program has locked its database",
    "database_unavailable": "its database does not answer",
    "record_failed": "the service has a fault",
}
"""What clients read about an error, by its code in `/readyz`."""


def is_full(error: Exception) -> bool:
    """Returns whether an error means that a disk is full."""
    text = str(getattr(error, "orig", error))
    if "full" in text or "space left" in text or getattr(error, "errno", None) == errno.EDQUOT:
        return True
    return _sqlite_error(error) == "SQLITE_IOERR_SHMSIZE"  # the index of the WAL does not fit


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


def is_read_only(error: Exception) -> bool:
    """Returns whether an error means that files or the database cannot be changed."""
    if getattr(error, "errno", None) in READ_ONLY_ERRORS:
        return True
    return "read-only" in str(getattr(error, "orig", "")) or "READONLY" in _sqlite_error(error)


def _sqlite_error(error: Exception) -> str:
    """Returns SQLite's name of an error; empty for errors of others."""
    return getattr(getattr(error, "orig", None), "sqlite_errorname", "")


def code_of(error: Exception) -> str:
    """Returns the code of an error, a key of `DESCRIPTIONS`."""
    is_locked = _sqlite_error(error).startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))
    causes = {
        "database_replaced": isinstance(error, DatabaseReplacedError),
        "disk_full": is_full(error),
        "too_many_files": is_out_of_files(error),
        "read_only": is_read_only(error),
        "pictures_not_writable": isinstance(error, OSError),
        "database_corrupted": is_corrupted(error),
        "database_locked": is_locked,
        "database_unavailable": isinstance(error, SQLAlchemyError),
    }
    return next((code for code, applies in causes.items() if applies), "record_failed")


def describe(error: Exception) -> str:
    """Describes an error in a few words for clients; the log has the details."""
    return DESCRIPTIONS[code_of(error)]


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
