"""`python -m api user add NAME --role ROLE`: adds and changes the users of the pages."""

import argparse
import getpass
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy import Engine

from api.accounts import users
from api.accounts.passwords import hash_password
from api.accounts.users import COMMAND_LINE
from api.database.database import write_transaction
from api.errors import RequestError
from api.record.open_record import add_setting_flags, create_if_missing, open_record
from api.roles import USER_ROLES
from segdec.errors import ConfigError


def run(arguments: Sequence[str]) -> None:
    """Lists, adds, changes or removes users.

    Raises:
        ConfigError: If the record cannot be used, or the change is not possible.
    """
    options = _parser().parse_args(arguments)
    if options.action == "add":
        create_if_missing(options.record_database, options.record_folder)
    with open_record(options.record_database, options.record_folder) as engine:
        try:
            _ACTIONS[options.action](engine, options)
        except RequestError as error:
            raise ConfigError(str(error)) from error


def _list(engine: Engine, _options: argparse.Namespace) -> None:
    with engine.connect() as connection:
        listed = users.list_users(connection)
    for user in listed:
        print(f"{user['name']}  {user['role']}{'  screen' if user['is_screen'] else ''}")
    if not listed:
        print("There are no users.")


def _add(engine: Engine, options: argparse.Namespace) -> None:
    name = users.normalise_name(options.name)
    password = None if options.screen else hash_password(_read_password(name), name)
    now, is_screen = datetime.now(UTC), options.screen
    with write_transaction(engine) as connection:
        users.add_user(
            connection, name, options.role, password=password, is_screen=is_screen, who=COMMAND_LINE, now=now
        )
    print(f"The user '{name}' has the role {options.role}.")
    if options.screen:
        _link(engine, options)


def _change_role(engine: Engine, options: argparse.Namespace) -> None:
    name = users.normalise_name(options.name)
    with write_transaction(engine) as connection:
        users.change_role(connection, name, options.role, COMMAND_LINE)
    print(f"The user '{name}' has the role {options.role}.")


def _set_password(engine: Engine, options: argparse.Namespace) -> None:
    name = users.normalise_name(options.name)
    password = hash_password(_read_password(name), name)
    with write_transaction(engine) as connection:
        users.set_password(connection, name, password, COMMAND_LINE)
    print(f"The password of '{name}' is changed; '{name}' has to log in again.")


def _remove(engine: Engine, options: argparse.Namespace) -> None:
    name = users.normalise_name(options.name)
    with write_transaction(engine) as connection:
        users.remove_user(connection, name, COMMAND_LINE)
    print(f"The user '{name}' is removed.")


def _link(engine: Engine, options: argparse.Namespace) -> None:
    name = users.normalise_name(options.name)
    with write_transaction(engine) as connection:
        token, expires_at = users.make_link(connection, name, COMMAND_LINE, datetime.now(UTC))
    print(f"Open this page on the screen, once, before {expires_at:%Y-%m-%d %H:%M} UTC:")
    print(f"  {users.link_path(token)}, after the address of the service")


_ACTIONS = {
    "list": _list,
    "add": _add,
    "role": _change_role,
    "password": _set_password,
    "remove": _remove,
    "link": _link,
}


def _read_password(name: str) -> str:
    """Returns a new password, typed twice at a terminal or read from a pipe."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    password = getpass.getpass(f"New password of '{name}': ")
    if getpass.getpass("The same again: ") != password:
        raise ConfigError("The two passwords differ. Nothing was changed.")
    return password


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m api user",
        description="Manage the users of the pages. Passwords are asked for, or read from a pipe.",
        epilog="Examples: add anna --role administrator; add press-3 --role operator --screen",
    )
    actions = parser.add_subparsers(dest="action", required=True)

    def action(name: str, text: str, *, has_name: bool = True) -> argparse.ArgumentParser:
        made = actions.add_parser(name, help=text, description=text)
        if has_name:
            made.add_argument("name", metavar="NAME")
        add_setting_flags(made, "record_folder", "record_database")
        return made

    action("list", "List the users.", has_name=False)
    add = action("add", "Add a user; the first one is an administrator.")
    add.add_argument("--role", choices=USER_ROLES, required=True)
    add.add_argument("--screen", action="store_true", help="a screen at the line: no password, prints a link")
    action("role", "Change the role of a user.").add_argument("--role", choices=USER_ROLES, required=True)
    action("password", "Set the password of a user, and end the user's sessions.")
    action("remove", "Remove a user.")
    action("link", "Make a link with which a screen logs in, once.")
    return parser
