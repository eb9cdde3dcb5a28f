"""The folder of a sharded engine: versions beside each other, and one file that names the current.

    FOLDER/current.json                      the current version, and those that are kept
    FOLDER/holds/NAME                        a version that somebody needs, even after a restart
    FOLDER/versions/000007-3f9a…/            one version
        manifest.json                        counts, and size and checksum of each array
        dimensions-…/*.npy                   shared by all shards: an event is encoded once
        shards/3-…/*.npy                     one shard, to be mapped

A build writes a new folder and then publishes current.json. What that file does not name is left
over from a build that was cut short, and the next build removes it. Where there is no current.json
nothing is removed: a version with a manifest may be one that was published, and the next build
names all of them. Names of versions are unique everywhere.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from matchmill.errors import FolderError
from matchmill.io.reports import Rejected
from matchmill.storage.array_folder import SHARDED_MANIFEST, Manifest, map_arrays

__all__ = [
    "VERSION_NAME",
    "Catalogue",
    "FolderEntry",
    "VersionManifest",
    "catalogue_bytes",
    "is_sharded_engine",
    "map_folder",
    "parse_catalogue",
    "read_local_version",
    "read_version",
    "spare_name",
    "version_bytes",
    "version_folder",
]

VERSION_NAME = re.compile(r"\d{6,}-[0-9a-f]{12}")
FORMAT_VERSION = 8
_CATALOGUE, _VERSION = "matchmill sharded engine", "matchmill sharded engine version"


class FolderEntry(NamedTuple):
    """A folder of arrays: its name in the version, and what is known of each file."""

    folder: str
    n_subscriptions: int
    arrays: dict[str, dict[str, int]]
    meta: dict[str, Any]

    @property
    def n_bytes(self) -> int:
        """Count the bytes of all arrays."""
        return sum(entry["bytes"] for entry in self.arrays.values())


class VersionManifest(NamedTuple):
    """All that is known of a version besides its arrays."""

    name: str
    index_name: str
    id_type: str  # str or int
    n_subscriptions: int
    n_rejected: int
    rejected: list[Rejected]  # the first of them
    settings: dict[str, Any]
    operator_modules: list[str]
    operators: list[str]
    attributes: list[str] | None  # all that expressions mention; None if that is not known
    n_hash: int  # a subscription is in the shard pmod(xxhash64(id), n_hash)
    dimensions: FolderEntry
    shards: list[FolderEntry]

    @property
    def n_bytes(self) -> int:
        """Count the bytes of all arrays."""
        return self.dimensions.n_bytes + sum(shard.n_bytes for shard in self.shards)


class Catalogue(NamedTuple):
    """What current.json says."""

    current: str
    versions: list[str]  # oldest first; the current one is among them


# -- files ----------------------------------------------------------------------------------------


def _sealed(kind: str, body: Mapping[str, Any]) -> bytes:
    """Write a document with its checksum."""
    full = {"format": kind, "format_version": FORMAT_VERSION, **body}
    text = json.dumps(full, sort_keys=True)
    return json.dumps({"crc32": zlib.crc32(text.encode()), "body": full}, sort_keys=True).encode()


def _unsealed(kind: str, content: bytes, where: str) -> dict[str, Any]:
    try:
        document = json.loads(content)
        body: dict[str, Any] = document["body"]
        is_intact = zlib.crc32(json.dumps(body, sort_keys=True).encode()) == document["crc32"]
        found, version = body.pop("format"), body.pop("format_version")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FolderError(f"{where} is damaged: it is not a manifest; build again") from error
    if not is_intact:
        raise FolderError(f"{where} is damaged: its checksum does not fit; build again")
    if found != kind or version != FORMAT_VERSION:
        raise FolderError(
            f"{where} is a {found!r} of format {version}, this matchmill reads a {kind!r} of format"
            f" {FORMAT_VERSION}; build again from the subscriptions"
        )
    return body


def catalogue_bytes(catalogue: Catalogue) -> bytes:
    """Write current.json."""
    return _sealed(_CATALOGUE, catalogue._asdict())


def version_bytes(version: VersionManifest) -> bytes:
    """Write a version's manifest."""
    return _sealed(
        _VERSION,
        {
            **version._asdict(),
            "dimensions": version.dimensions._asdict(),
            "shards": [shard._asdict() for shard in version.shards],
        },
    )


def parse_catalogue(content: bytes, where: str) -> Catalogue:
    """Read current.json from its bytes; FolderError if they are not whole."""
    return Catalogue(**_unsealed(_CATALOGUE, content, where))


def read_version(content: bytes, where: str) -> VersionManifest:
    """Read a version's manifest from its bytes."""
    body = _unsealed(_VERSION, content, where)
    body["rejected"] = [Rejected(*row) for row in body["rejected"]]
    body["dimensions"] = FolderEntry(**body["dimensions"])
    body["shards"] = [FolderEntry(**shard) for shard in body["shards"]]
    version = VersionManifest(**body)
    for entry in (version.dimensions, *version.shards):  # nothing outside is ever touched
        for name in (*entry.folder.split("/"), *entry.arrays):
            if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
                raise FolderError(f"{where} is damaged: {name!r} is no name of a file in it")
    return version


def read_local_version(folder: Path) -> VersionManifest:
    """Read the manifest of a version whose folder this machine has."""
    file = folder / "manifest.json"
    try:
        content = file.read_bytes()
    except OSError as error:
        raise FolderError(
            f"{file} cannot be read ({error.strerror}): the version is incomplete; build again"
        ) from error
    return read_version(content, str(file))


def map_folder(root: Path, name: str, entry: FolderEntry, *, verify: bool) -> dict[str, np.ndarray]:
    """Map the arrays of a folder below root; sizes are compared, with `verify` checksums too."""
    try:
        return map_arrays(root, Manifest(name, entry.arrays, [], {}), verify=verify)
    except FolderError as error:
        text = str(error).partition("; restore")[0]
        raise FolderError(
            f"{text}; restore it from a copy, match with an earlier version, or build again"
        ) from error


# -- a folder of this machine ---------------------------------------------------------------------


def spare_name(name: str) -> str:
    """Name the copy that is written before a file that no rename can replace."""
    return f"{name}.next"


def is_sharded_engine(root: Path) -> bool:
    """Tell whether a folder holds what `matchmill.spark.build` published."""
    return any((root / name).is_file() for name in (SHARDED_MANIFEST, spare_name(SHARDED_MANIFEST)))


def version_folder(root: Path) -> Path:
    """Return the folder of the current version; FolderError if current.json cannot be read."""
    problem: Exception | None = None
    for name in (SHARDED_MANIFEST, spare_name(SHARDED_MANIFEST)):
        try:
            catalogue = parse_catalogue((root / name).read_bytes(), str(root / name))
        except (OSError, FolderError) as error:
            problem = problem or error
            continue
        if not VERSION_NAME.fullmatch(catalogue.current):
            raise FolderError(f"{root / name} is damaged: it names no version; build again")
        return root / "versions" / catalogue.current
    if isinstance(problem, FolderError):
        raise problem
    raise FolderError(f"{root / SHARDED_MANIFEST} cannot be read: {problem}") from problem
