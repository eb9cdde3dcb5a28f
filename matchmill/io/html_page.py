"""The frame of our HTML pages: one file that holds all it needs, style included; no script."""

from __future__ import annotations

from html import escape

__all__ = ["page_of"]

_STYLE = """\
:root { color-scheme: light dark; --ink: #1d2126; --dim: #5c6670; --back: #fff; --line: #d9dee3;
  --card: #f6f7f9; --bad: #b3261e; --good: #14693a; --link: #1f5fa8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7ea; --dim: #9aa4ae; --back: #14171a;
  --line: #333a41; --card: #1c2024; --bad: #ff8a80; --good: #7ddba3; --link: #8ab8ee; } }
body { color: var(--ink); background: var(--back); font: 16px/1.5 system-ui, sans-serif;
  max-width: 68rem; margin: 0 auto; padding: 1rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; } h2 { margin-top: 3rem; border-bottom: 1px solid var(--line); }
h3 { margin: 2.2rem 0 .3rem; } h4 { margin: 1.2rem 0 .3rem; font-size: .95rem; }
a { color: var(--link); } .dim { color: var(--dim); } .bad { color: var(--bad); }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .86rem; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid var(--line); text-align: right;
  white-space: nowrap; font-variant-numeric: tabular-nums; }
th { color: var(--dim); font-weight: 600; } .label { text-align: left; }
.best { color: var(--good); font-weight: 700; }
figure { margin: 1rem 0; } figure svg { display: block; max-width: 100%; height: auto; }
figcaption, .note { color: var(--dim); font-size: .86rem; }
.problems { background: var(--card); border-left: 3px solid var(--bad); padding: .5rem 1rem;
  font-size: .9rem; } .problems ul { margin: .2rem 0; padding-left: 1.2rem; }
details { margin: .8rem 0; font-size: .9rem; } summary { cursor: pointer; color: var(--dim); }
pre { background: var(--card); padding: .8rem; overflow-x: auto; font-size: .8rem; }
"""


def page_of(title: str, body: str) -> str:
    """Wrap a body into a whole page with the style that all our pages share."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{_STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )
