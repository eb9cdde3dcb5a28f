"""`matchmill keys add | list | revoke`: the API keys of a service."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matchmill.cli.actions import add_action, add_actions
from matchmill.cli.arguments import add_common, add_format, examples
from matchmill.cli.exit_codes import ALL_GOOD
from matchmill.cli.output import print_json
from matchmill.cli.serve import add_store
from matchmill.errors import InputError

if TYPE_CHECKING:
    from matchmill.service.database.rows import Key
    from matchmill.service.database.store import Store
    from matchmill.service.secrets import SecretKey

__all__ = ["add_arguments", "run"]

_SCOPES = ("subscribe", "publish", "read", "admin")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions and their arguments."""
    parser.usage = "matchmill keys add|list|revoke FOLDER …"
    parser.description = "Manage the API keys of a service's tenants; the service may be running."
    actions = add_actions(parser)
    _add_add(actions)
    _add_list(actions)
    _add_revoke(actions)


def _add_add(actions: Any) -> None:
    parser = add_action(
        actions,
        "keys",
        "add",
        "make a key, and a tenant if it is new",
        usage="FOLDER --tenant NAME [options]",
        description="Print a new key, this once: only its hash is stored.",
        epilog=examples("matchmill keys add alerts --tenant acme --name importer --scope publish"),
    )
    add_store(parser)
    parser.add_argument("--tenant", metavar="NAME", required=True, help="whose key it is")
    parser.add_argument("--name", metavar="TEXT", default="", help="what it is for")
    parser.add_argument(
        "--scope",
        choices=_SCOPES,
        action="append",
        dest="scopes",
        help="what it may do; may be repeated (default: everything)",
    )
    add_common(parser, settings=False)


def _add_list(actions: Any) -> None:
    parser = add_action(
        actions,
        "keys",
        "list",
        "show the keys, without their secrets",
        usage="FOLDER [options]",
        description="Show the keys of a tenant, or of all.",
        epilog=examples("matchmill keys list alerts --tenant acme"),
    )
    add_store(parser)
    parser.add_argument("--tenant", metavar="NAME", help="only of this tenant")
    add_format(parser)
    add_common(parser, settings=False)


def _add_revoke(actions: Any) -> None:
    parser = add_action(
        actions,
        "keys",
        "revoke",
        "end a key",
        usage="FOLDER KEY_ID --tenant NAME [options]",
        description="A revoked key is rejected at once, or within a second if several serve.",
        epilog=examples("matchmill keys revoke alerts --tenant acme 4f1d2c7a90be"),
    )
    add_store(parser)
    parser.add_argument("key_id", metavar="KEY_ID", help="as list shows it")
    parser.add_argument("--tenant", metavar="NAME", required=True, help="whose key it is")
    add_common(parser, settings=False)


def run(arguments: argparse.Namespace) -> int:
    """Run an action."""
    actions: dict[str, Callable[[argparse.Namespace], int]] = {
        "add": _add,
        "list": _list,
        "revoke": _revoke,
    }
    return actions[arguments.action](arguments)


@contextmanager
def _opened(arguments: argparse.Namespace) -> Iterator[tuple[Store, SecretKey]]:
    from matchmill.service.database.open import open_store
    from matchmill.service.private_folder import make_private
    from matchmill.service.secrets import SECRET_NAME, SecretKey

    folder = Path(arguments.folder)
    if arguments.action != "add" and not folder.is_dir():
        raise InputError(f"there is no folder {folder}; `matchmill keys add` makes one")
    make_private(folder)
    secret_key = SecretKey.read(Path(arguments.secret_file or folder / SECRET_NAME))
    with closing(open_store(folder, arguments.store)) as store:
        store.check_secret(secret_key.fingerprint)
        yield store, secret_key


def _add(arguments: argparse.Namespace) -> int:
    from matchmill.service.secrets import make_key

    name = arguments.tenant.strip()
    if not name or not name.isprintable():
        raise InputError("--tenant must be a name of printable characters")
    with _opened(arguments) as (store, secret_key), store.writing() as writing:
        tenant = (writing.add_tenant(name), name)
        key, secret = make_key(
            writing, secret_key, tenant, arguments.name, arguments.scopes or _SCOPES
        )
    print(secret)
    if not arguments.quiet:
        scopes = ", ".join(sorted(key.scopes))
        print(f"matchmill: key {key.key_id} of {name} may {scopes}", file=sys.stderr)
    return ALL_GOOD


def _list(arguments: argparse.Namespace) -> int:
    from matchmill.service.responses import key_dict

    with _opened(arguments) as (store, _), store.reading() as reading:
        if arguments.tenant is not None and reading.tenant(arguments.tenant) is None:
            raise InputError(f"there is no tenant {arguments.tenant!r}")
        keys = [
            key
            for number, name in reading.tenants()
            if arguments.tenant in (None, name)
            for key in reading.keys(number)
        ]
    if arguments.format == "json":
        print_json([key_dict(key) | {"tenant": key.tenant_name} for key in keys], indent=2)
    else:
        for key in keys:
            print(_line(key))
    return ALL_GOOD


def _line(key: Key) -> str:
    return f"{key.key_id}  {key.tenant_name}  {' '.join(sorted(key.scopes))}  {key.name}".rstrip()


def _revoke(arguments: argparse.Namespace) -> int:
    with _opened(arguments) as (store, _), store.writing() as writing:
        tenant = writing.tenant(arguments.tenant)
        if tenant is None or not writing.revoke_key(tenant, arguments.key_id):
            raise InputError(f"{arguments.tenant!r} has no key {arguments.key_id!r}")
    return ALL_GOOD
