"""`matchmill keys add | list | revoke`: the API keys of a service."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from matchmill.cli.exit_codes import ALL_GOOD
from matchmill.errors import InputError
from matchmill.service.database.open import open_store
from matchmill.service.database.rows import Key
from matchmill.service.database.store import Store
from matchmill.service.responses import key_dict
from matchmill.service.schemas import SCOPES
from matchmill.service.secrets import SECRET_NAME, SecretKey, make_key

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> int:
    actions = {"add": _add, "list": _list, "revoke": _revoke}
    return actions[arguments.action](arguments)


@contextmanager
def _opened(arguments: argparse.Namespace) -> Iterator[tuple[Store, SecretKey]]:
    folder = Path(arguments.folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    secret_key = SecretKey.read(Path(arguments.secret_file or folder / SECRET_NAME))
    with closing(open_store(folder, arguments.store)) as store:
        store.check_secret(secret_key.fingerprint)
        yield store, secret_key


def _add(arguments: argparse.Namespace) -> int:
    name = arguments.tenant.strip()
    if not name or not name.isprintable():
        raise InputError("--tenant must be a name of printable characters")
    with _opened(arguments) as (store, secret_key), store.writing() as writing:
        tenant = (writing.add_tenant(name), name)
        key, secret = make_key(
            writing, secret_key, tenant, arguments.name, arguments.scopes or SCOPES
        )
    print(secret)
    if not arguments.quiet:
        scopes = ", ".join(sorted(key.scopes))
        print(f"matchmill: key {key.key_id} of {name} may {scopes}", file=sys.stderr)
    return ALL_GOOD


def _list(arguments: argparse.Namespace) -> int:
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
        rows = [key_dict(key) | {"tenant": key.tenant_name} for key in keys]
        print(json.dumps(rows, indent=2, ensure_ascii=False))
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
