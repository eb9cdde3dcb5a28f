"""From files to matches, as a config says: `matchmill pipeline run CONFIG`.

    config.toml ─► ingest ─► statistics ─► build ─► match ─► stream ─► summary.html, summary.json

Reading and checking a config needs no Spark; only the steps do.
"""

from __future__ import annotations
