"""`ShardedEngine`: an engine that workers match with, in one version, and how it is opened."""

from __future__ import annotations

import os
import re
import weakref
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from matchmill.engine.engine import Engine
from matchmill.engine.sharded_folder import (
    VERSION_NAME,
    Catalogue,
    FolderEntry,
    VersionManifest,
    read_version,
)
from matchmill.errors import FolderError, InputError
from matchmill.io.reports import Rejected
from matchmill.settings import Settings
from matchmill.spark.published.locations import (
    Location,
    local_folder,
    location_of,
    spare_name,
)
from matchmill.spark.published.saved_engine import id_type_of, is_saved_engine, state_of
from matchmill.spark.published.versions import HOLDS, MANIFEST, complete_versions, read_catalogue
from matchmill.spark.published.worker_files import WorkerFiles
from matchmill.storage.array_folder import read_manifest

__all__ = ["ShardStats", "ShardedEngine", "ShardedStats", "needed_versions", "open"]


class ShardStats(NamedTuple):
    """Figures of one shard."""

    n_subscriptions: int
    n_bytes: int
    encode_seconds: float
    build_seconds: float


@dataclass(frozen=True, slots=True)
class ShardedStats:
    """Figures of a sharded engine.

    Examples
    --------
    >>> engine.stats().to_dict()["n_shards"]  # doctest: +SKIP
    4
    """

    n_subscriptions: int
    n_rejected: int
    n_shards: int
    n_bytes: int
    index: str
    shards: list[ShardStats]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON.

        Examples
        --------
        >>> engine.stats().to_dict()["index"]  # doctest: +SKIP
        'auto'
        """
        return asdict(self) | {"shards": [shard._asdict() for shard in self.shards]}


class ShardedEngine:
    """Match events in Spark's workers with one version of an engine.

    `matchmill.spark.build` and `matchmill.spark.open` return it. As long as this object lives,
    builds in this process do not remove its version.

    Examples
    --------
    >>> engine = ms.open("alerts.mill")  # doctest: +SKIP
    >>> len(engine), engine.version  # doctest: +SKIP
    (200000, '000003-9f31c2a07e55')
    """

    def __init__(
        self,
        location: Location,
        manifest: VersionManifest,
        verify: bool,
        saved_version: str | None = None,
    ) -> None:
        self._location = location
        self._files: WorkerFiles | None = None
        self._saved_version = saved_version
        self.manifest = manifest
        self.verify = verify
        _open.add(self)

    @property
    def path(self) -> str:
        """The folder, or the Hadoop path, of the engine."""
        return self._location.root

    @property
    def version(self) -> str:
        """The name of the version."""
        return self.manifest.name

    @property
    def is_saved_engine(self) -> bool:
        """Whether `Engine.save` made the folder, and not a build by Spark."""
        return self._saved_version is not None

    @property
    def id_type(self) -> str:
        """Spark's name of the type of subscription ids: bigint or string."""
        return "bigint" if self.manifest.id_type == "int" else "string"

    @property
    def rejected(self) -> Sequence[Rejected]:
        """The first subscriptions that could not be read; `stats().n_rejected` counts them all."""
        return self.manifest.rejected

    @property
    def settings(self) -> Settings:
        """The settings that the engine was built with."""
        return Settings(**self.manifest.settings)

    def __len__(self) -> int:
        """Count the subscriptions."""
        return self.manifest.n_subscriptions

    def stats(self) -> ShardedStats:
        """Return figures of the engine and of each shard.

        Examples
        --------
        >>> engine.stats().n_shards  # doctest: +SKIP
        4
        """
        m = self.manifest
        shards = [
            ShardStats(
                shard.n_subscriptions,
                shard.n_bytes,
                shard.meta.get("encode_seconds", 0.0),
                shard.meta.get("build_seconds", 0.0),
            )
            for shard in m.shards
        ]
        return ShardedStats(
            m.n_subscriptions, m.n_rejected, len(shards), m.n_bytes, m.index_name, shards
        )

    def worker_files(self, operators: Sequence[str] = ()) -> WorkerFiles:
        """Return how workers find the engine.

        Parameters
        ----------
        operators
            Modules that register operators, for an engine that does not name them itself.

        Examples
        --------
        >>> ms.open("alerts.mill").worker_files()  # doctest: +SKIP
        """
        if self._saved_version is not None:
            return WorkerFiles(self.path, None, self._saved_version, tuple(operators))
        if self._files is None:
            self._files = self._location.worker_files(f"versions/{self.version}")
        return self._files

    def hold(self, name: str) -> None:
        """Keep this version until `release(name)`, even after this process has ended.

        A stream that starts again needs the version that it has begun a batch with. A name holds
        one version.

        Parameters
        ----------
        name
            Letters, digits, `_`, `.` and `-`.

        Examples
        --------
        >>> engine.hold("nightly-report")  # doctest: +SKIP
        """
        self._location.publish(self._hold_file(name), self.version.encode())
        catalogue = read_catalogue(self._location)
        if catalogue is None or self.version not in catalogue.versions:
            self.release(name)
            raise FolderError(
                f"version {self.version} of {self.path} has been removed meanwhile; open the engine"
                " again"
            )

    def release(self, name: str) -> None:
        """End what `hold` began.

        Parameters
        ----------
        name
            The name that `hold` was called with.

        Examples
        --------
        >>> engine.release("nightly-report")  # doctest: +SKIP
        """
        file = self._hold_file(name)
        self._location.remove(spare_name(file))
        self._location.remove(file)

    def _hold_file(self, name: str) -> str:
        if self.is_saved_engine:
            raise InputError(
                f"{self.path} is a saved engine, which has no versions to hold; matchmill.spark."
                "build makes an engine with versions"
            )
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name):
            raise InputError(f"the name of a hold has letters, digits, _, . and -, not {name!r}")
        return f"{HOLDS}/{name}"

    def __repr__(self) -> str:
        """Describe the engine in one line."""
        m = self.manifest
        what = "saved by Engine.save" if self.is_saved_engine else f"version {m.name}"
        return (
            f"<matchmill.spark.ShardedEngine: {m.n_subscriptions:,} subscriptions in"
            f" {len(m.shards)} shards, index {m.index_name}, {what}, in {self.path}>"
        )


_open: weakref.WeakSet[ShardedEngine] = weakref.WeakSet()


def needed_versions(location: Location) -> set[str]:
    """Name the versions of an engine that are open in this process, or held."""
    is_open = {engine.version for engine in list(_open) if engine.path == location.root}
    found = (location.read(f"{HOLDS}/{name}") for name in location.names(HOLDS))
    held = {content.decode(errors="replace") for content in found if content is not None}
    if not all(map(VERSION_NAME.fullmatch, held)):  # cut short: it may be any of them
        return set(location.names("versions"))
    return is_open | held


def open(
    path: str | os.PathLike[str],
    *,
    version: str | None = None,
    verify: bool = False,
    spark: Any = None,
) -> ShardedEngine:
    """Open an engine that `build` has made, or one that `Engine.save` has.

    Parameters
    ----------
    path
        The folder, or a path that Hadoop knows.
    version
        A version that is still kept; by default the current one.
    verify
        Let workers compare all files with their checksums when they open them. Sizes are always
        compared.
    spark
        The session; needed for paths that only Hadoop knows.

    Returns
    -------
    ShardedEngine
        A saved engine is matched as one shard, in the state that it has now.

    Examples
    --------
    >>> engine = ms.open("alerts.mill")  # doctest: +SKIP
    >>> ms.match(engine, events)  # doctest: +SKIP
    """
    location = location_of(path, spark)
    catalogue = read_catalogue(location)
    if catalogue is None and (names := complete_versions(location)):
        if version is None:
            raise FolderError(
                f"{location.root}/{MANIFEST} is missing, but there are the versions"
                f" {', '.join(names)}: restore it, open one of them with version=…, or build"
            )
        catalogue = Catalogue(names[-1], names)
    if catalogue is None:
        folder = local_folder(path)
        if folder is not None and is_saved_engine(folder):
            return _open_saved(location, folder, version, verify)
        raise FolderError(
            f"{location.root} holds no engine: there is neither {MANIFEST} of matchmill.spark.build"
            " nor manifest.json of Engine.save; build one there"
        )
    name = catalogue.current if version is None else version
    if name not in catalogue.versions:
        raise InputError(
            f"{location.root} has no version {name!r}; there are: {', '.join(catalogue.versions)}"
        )
    where = f"versions/{name}/manifest.json"
    content = location.read(where)
    if content is None:
        raise FolderError(f"{location.root}/{where} is missing: restore it, or build again")
    return ShardedEngine(location, read_version(content, f"{location.root}/{where}"), verify)


def _open_saved(
    location: Location, folder: Path, version: str | None, verify: bool
) -> ShardedEngine:
    """Open a saved engine as one shard, in the state that it has now."""
    if version is not None:
        raise InputError(f"{folder} is a saved engine, which has no versions; leave out version=…")
    state = state_of(folder)
    manifest = read_manifest(folder)
    with Engine.open(folder, read_only=True) as engine:
        n, id_type, settings = len(engine), id_type_of(engine), manifest.meta["settings"]
    shard = FolderEntry(manifest.data, n, manifest.arrays, {})
    nothing = FolderEntry(manifest.data, 0, {}, {})
    described = VersionManifest(
        manifest.data, manifest.meta["index"], id_type, n, 0, [], settings, [],
        list(manifest.meta.get("operators", ())), None, 1, nothing, [shard],
    )  # fmt: skip
    return ShardedEngine(location, described, verify, state)
