"""Until when is it certain that what has expired, has expired? What ended later is not deleted.

No clock is believed when something is to be deleted for good. A store counts the time for which
it was *served*, in elapsed time, which does not jump and stands still while no process serves. It
notes the least time that the wall clock showed in each part of the last `window` of that time:

    served      ├─ part ─┼─ part ─┼─ part ─┼─ part ─┤ now
    wall clock    12:00    13:00    40 days   15:00        horizon: 12:00, the least of all
                                    later

Whatever ends before the horizon has looked expired for the whole of the window, whenever anybody
looked. A clock that is wrong for less than the window therefore deletes nothing, nor does one that
is wrong when the service is started; and nothing is deleted until a whole window was served.

With several processes the greatest count is right, since all of them count the same time.
"""

from __future__ import annotations

import json
from typing import NamedTuple

__all__ = ["Horizon"]

_PARTS = 16


class Horizon(NamedTuple):
    """How long a store was served, and the least wall clock by part of the last window."""

    served: int
    least: dict[int, int]  # part of the served time → the least time that the clock showed

    @classmethod
    def read(cls, text: str | None) -> Horizon:
        """Return what `text` says; without one, that of a store that was never served."""
        if text is None:
            return cls(0, {})
        known = json.loads(text)
        return cls(known["served"], {int(part): wall for part, wall in known["least"]})

    def text(self) -> str:
        """Return this as `read` reads it."""
        return json.dumps({"served": self.served, "least": sorted(self.least.items())})

    def after(self, served: int, wall: int, window: int) -> Horizon:
        """Return this when so much was served, and the clock shows a time."""
        served = max(served, self.served)
        size = _size(window)
        part = served // size
        # All parts of the window, and the last one before it.
        begins = max((one for one in self.least if one < part - _PARTS), default=0)
        least = {one: least for one, least in self.least.items() if one >= begins}
        least[part] = min(wall, least.get(part, wall))
        return Horizon(served, least)

    def moment(self, window: int) -> int | None:
        """Return the horizon; None if no whole window was served."""
        first = self.served // _size(window) - _PARTS
        if not self.least or min(self.least) >= first:
            return None
        return min(self.least.values())


def _size(window: int) -> int:
    return max(1, window // _PARTS)
