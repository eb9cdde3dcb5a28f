"""A published index: versions beside each other, and one file that says which is current.

    INDEX/MANIFEST.json                      the current version, and those that are kept
    INDEX/holds/NAME                         a version that somebody needs, over restarts
    INDEX/versions/000007-3f9a…/             one version
        manifest.json                        counts, and size and checksum of each array
        dimensions-…/*.npy                   shared by all shards: an event is encoded once
        shards/3-…/*.npy                     one shard, to be mapped

A build writes a new folder and then replaces MANIFEST.json in one step; whatever it does not name
is rubbish of a build that was cut short, and removed by the next one. Names of versions are unique
everywhere, since Spark copies them to workers by name.
"""

from __future__ import annotations

import json
import os
import re
import weakref
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from matchmill.errors import FolderError, InputError
from matchmill.settings import Settings
from matchmill.spark.published.locations import Place, place_of
from matchmill.spark.published.worker_files import Shipped

__all__ = [
    "HOLDS",
    "MANIFEST",
    "Catalogue",
    "FolderEntry",
    "PublishedIndex",
    "Refusal",
    "VersionManifest",
    "catalogue_bytes",
    "needed_versions",
    "new_name",
    "open_index",
    "read_catalogue",
    "read_local_version",
    "version_bytes",
]

MANIFEST, HOLDS = "MANIFEST.json", "holds"
FORMAT_VERSION = 4
_CATALOGUE, _VERSION = "matchmill published index", "matchmill index version"


class Refusal(NamedTuple):
    """A subscription that was set aside, and why."""

    id: str | int | None
    reason: str


class FolderEntry(NamedTuple):
    """A folder of arrays: its name in the version, and what is known of each file."""

    folder: str
    n_subscriptions: int
    arrays: dict[str, dict[str, int]]
    meta: dict[str, Any]

    @property
    def n_bytes(self) -> int:
        return sum(entry["bytes"] for entry in self.arrays.values())


class VersionManifest(NamedTuple):
    """All that is known of a version besides its arrays."""

    name: str
    index_name: str
    id_type: str  # str or int
    n_subscriptions: int
    n_refused: int
    refused: list[Refusal]  # the first of them
    settings: dict[str, Any]
    operator_modules: list[str]
    operators: list[str]
    n_hash: int  # a subscription is in the shard pmod(xxhash64(id), n_hash)
    dimensions: FolderEntry
    shards: list[FolderEntry]

    @property
    def n_bytes(self) -> int:
        return self.dimensions.n_bytes + sum(shard.n_bytes for shard in self.shards)


class Catalogue(NamedTuple):
    """What MANIFEST.json says."""

    current: str
    versions: list[str]  # oldest first; the current one is among them


# -- files ----------------------------------------------------------------------------------------


def _sealed(kind: str, body: Mapping[str, Any]) -> bytes:
    """A document with its checksum."""
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
        raise FolderError(f"{where} is damaged: it is not a manifest; build anew") from error
    if not is_intact:
        raise FolderError(f"{where} is damaged: its checksum does not fit; build anew")
    if found != kind or version != FORMAT_VERSION:
        raise FolderError(
            f"{where} is a {found!r} of format {version}, this matchmill reads a {kind!r} of format"
            f" {FORMAT_VERSION}; build anew from the subscriptions"
        )
    return body


def catalogue_bytes(catalogue: Catalogue) -> bytes:
    return _sealed(_CATALOGUE, catalogue._asdict())


def version_bytes(version: VersionManifest) -> bytes:
    return _sealed(
        _VERSION,
        {
            **version._asdict(),
            "dimensions": version.dimensions._asdict(),
            "shards": [shard._asdict() for shard in version.shards],
        },
    )


def read_catalogue(place: Place) -> Catalogue | None:
    """What is published at a place; None if nothing is."""
    content = place.read(MANIFEST)
    if content is None:
        return None
    return Catalogue(**_unsealed(_CATALOGUE, content, f"{place.root}/{MANIFEST}"))


def _read_version(content: bytes, where: str) -> VersionManifest:
    """A version's manifest from its bytes."""
    body = _unsealed(_VERSION, content, where)
    body["refused"] = [Refusal(*refusal) for refusal in body["refused"]]
    body["dimensions"] = FolderEntry(**body["dimensions"])
    body["shards"] = [FolderEntry(**shard) for shard in body["shards"]]
    version = VersionManifest(**body)
    for entry in (version.dimensions, *version.shards):  # nothing outside is ever touched
        for name in (*entry.folder.split("/"), *entry.arrays):
            if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
                raise FolderError(f"{where} is damaged: {name!r} is no name of a file in it")
    return version


def read_local_version(folder: Path) -> VersionManifest:
    """The manifest of a version whose folder this machine has."""
    file = folder / "manifest.json"
    try:
        content = file.read_bytes()
    except OSError as error:
        raise FolderError(
            f"{file} cannot be read ({error.strerror}): the version is incomplete; build anew"
        ) from error
    return _read_version(content, str(file))


def new_name(catalogue: Catalogue | None) -> str:
    """The name of the next version."""
    last = 0 if catalogue is None else max(int(name[:6]) for name in catalogue.versions)
    return f"{last + 1:06d}-{uuid4().hex[:12]}"


# -- readers --------------------------------------------------------------------------------------


class PublishedIndex:
    """One version of a published index. As long as this object lives, builds in this process do
    not remove that version; `open_index` has the current one."""

    def __init__(self, place: Place, manifest: VersionManifest, verify: bool) -> None:
        self._place = place
        self._shipped: Shipped | None = None
        self.manifest = manifest
        self.verify = verify
        _open.add(self)

    @property
    def path(self) -> str:
        return self._place.root

    @property
    def version(self) -> str:
        return self.manifest.name

    @property
    def id_type(self) -> str:
        """Spark's name of the type of subscription ids."""
        return "bigint" if self.manifest.id_type == "int" else "string"

    @property
    def refused(self) -> Sequence[Refusal]:
        """The first subscriptions that could not be read; `manifest.n_refused` counts them all."""
        return self.manifest.refused

    @property
    def settings(self) -> Settings:
        return Settings(**self.manifest.settings)

    def __len__(self) -> int:
        return self.manifest.n_subscriptions

    def shipped(self) -> Shipped:
        """How workers find it."""
        if self._shipped is None:
            self._shipped = self._place.shipped(f"versions/{self.version}")
        return self._shipped

    def hold(self, name: str) -> None:
        """Keep this version until `release(name)`, also after this process has ended: a stream that
        starts again has to find the version that it has begun a batch with. A name holds one
        version."""
        self._place.publish(_hold_file(name), self.version.encode())
        catalogue = read_catalogue(self._place)
        if catalogue is None or self.version not in catalogue.versions:
            self.release(name)
            raise FolderError(
                f"version {self.version} of {self.path} has been removed meanwhile; open the index"
                " again"
            )

    def release(self, name: str) -> None:
        """End what `hold` began."""
        self._place.remove(_hold_file(name))

    def __repr__(self) -> str:
        m = self.manifest
        return (
            f"<PublishedIndex: {self.path}, version {m.name}, {m.n_subscriptions:,} subscriptions"
            f" in {len(m.shards)} shards, index {m.index_name}>"
        )


_open: weakref.WeakSet[PublishedIndex] = weakref.WeakSet()


def _hold_file(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name):
        raise InputError(f"the name of a hold is of letters, digits, _, . and -, not {name!r}")
    return f"{HOLDS}/{name}"


def needed_versions(place: Place) -> set[str]:
    """The versions of an index that are open in this process, or held."""
    is_open = {index.version for index in list(_open) if index.path == place.root}
    held = (place.read(f"{HOLDS}/{name}") for name in place.folders(HOLDS))
    return is_open | {content.decode() for content in held if content is not None}


def open_index(
    path: str | os.PathLike[str],
    version: str | None = None,
    *,
    spark: Any = None,
    verify: bool = False,
) -> PublishedIndex:
    """A published index, in its current version or in one that is still kept.

    `verify` has workers read all files against their checksums when they open them; sizes are
    always compared. `spark` is needed for paths that only Hadoop knows.
    """
    place = place_of(path, spark)
    catalogue = read_catalogue(place)
    if catalogue is None:
        raise FolderError(
            f"{place.root} holds no published index: there is no {MANIFEST}; build one there"
        )
    name = catalogue.current if version is None else version
    if name not in catalogue.versions:
        raise InputError(
            f"{place.root} has no version {name!r}; there are: {', '.join(catalogue.versions)}"
        )
    where = f"versions/{name}/manifest.json"
    content = place.read(where)
    if content is None:
        raise FolderError(f"{place.root}/{where} is missing: restore it, or build anew")
    return PublishedIndex(place, _read_version(content, f"{place.root}/{where}"), verify)
