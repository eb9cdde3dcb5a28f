"""The versions of a sharded engine at a location: which there are, and which is the current one.

`engine/sharded_folder.py` describes the files.
"""

from __future__ import annotations

from uuid import uuid4

from matchmill.engine.sharded_folder import VERSION_NAME, Catalogue, parse_catalogue
from matchmill.spark.published.locations import Location, read_published
from matchmill.storage.array_folder import SHARDED_MANIFEST

__all__ = ["HOLDS", "MANIFEST", "complete_versions", "new_name", "read_catalogue"]

MANIFEST, HOLDS = SHARDED_MANIFEST, "holds"


def read_catalogue(location: Location, *, repairs: bool = False) -> Catalogue | None:
    """Read what is published at a location; None if nothing is."""
    where = f"{location.root}/{MANIFEST}"
    return read_published(
        location,
        MANIFEST,
        lambda content: parse_catalogue(content, where),
        repairs=repairs,
    )


def complete_versions(location: Location) -> list[str]:
    """List the versions that have a manifest, oldest first, named by a catalogue or not."""
    names = [name for name in location.names("versions") if VERSION_NAME.fullmatch(name)]
    return sorted(n for n in names if "manifest.json" in location.names(f"versions/{n}"))


def new_name(catalogue: Catalogue) -> str:
    """Name the next version."""
    last = max((int(name.partition("-")[0]) for name in catalogue.versions), default=0)
    return f"{last + 1:06d}-{uuid4().hex[:12]}"
