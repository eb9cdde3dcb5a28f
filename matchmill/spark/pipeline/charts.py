"""Plain bar charts as SVG, drawn without any library: they use the page's colours and fonts."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

__all__ = ["columns_chart", "rows_chart"]

_BAR = "#3b82d0"
_MAX_COLUMNS = 60
_WIDTH, _HEIGHT = 860, 180


def rows_chart(rows: Sequence[tuple[str, float, str]], title: str) -> str:
    """Draw one bar per row: (name, value, the value as text)."""
    most = max((value for _, value, _ in rows), default=0) or 1
    height = 24 * len(rows) + 8
    parts = []
    for i, (name, value, text) in enumerate(rows):
        width = max(1.0, value / most * 380)
        y = 24 * i + 4
        parts.append(
            f'<text x="150" y="{y + 14}" text-anchor="end">{escape(name)}</text>'
            f'<rect x="158" y="{y}" width="{width:.1f}" height="18" rx="2" fill="{_BAR}"/>'
            f'<text x="{164 + width:.1f}" y="{y + 14}">{escape(text)}</text>'
        )
    return _svg(_WIDTH, height, parts, title)


def columns_chart(columns: Sequence[tuple[str, float, str]], title: str) -> str:
    """Draw one column per value: (name, value, the value as text, which a pointer shows).

    Of very many some are shown, in order of size, the smallest and the largest among them.
    """
    shown = _some(columns)
    most = max((value for _, value, _ in shown), default=0) or 1
    step = min(64.0, (_WIDTH - 20) / max(1, len(shown)))
    parts = []
    for i, (name, value, text) in enumerate(shown):
        height = max(1.0, value / most * (_HEIGHT - 50))
        x, y = 10 + step * i, _HEIGHT - 26 - height
        parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{step * 0.84:.1f}" height="{height:.1f}"'
            f' rx="2" fill="{_BAR}"><title>{escape(f"{name}: {text}")}</title></rect>'
        )
        if step > 26:
            middle = x + step * 0.42
            parts.append(
                f'<text x="{middle:.1f}" y="{_HEIGHT - 10}" text-anchor="middle">{escape(name)}'
                f'</text><text x="{middle:.1f}" y="{y - 5:.1f}" text-anchor="middle">{escape(text)}'
                "</text>"
            )
    return _svg(_WIDTH, _HEIGHT, parts, title)


def _some(columns: Sequence[tuple[str, float, str]]) -> list[tuple[str, float, str]]:
    if len(columns) <= _MAX_COLUMNS:
        return list(columns)
    ordered = sorted(columns, key=lambda column: column[1])
    places = [round(i * (len(ordered) - 1) / (_MAX_COLUMNS - 1)) for i in range(_MAX_COLUMNS)]
    return [ordered[place] for place in places]


def _svg(width: int, height: int, parts: Sequence[str], title: str) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img"'
        f' aria-label="{escape(title, quote=True)}" font-size="11.5" font-family="system-ui,'
        f' sans-serif" fill="currentColor">{"".join(parts)}</svg>'
    )
