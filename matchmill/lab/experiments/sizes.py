"""How many subscriptions a figure of the paper has and how many were measured, in words.

Nobody writes by hand that sizes are the paper's: it follows from the specification, which has the
paper's sizes, and from the figures, which have those that ran.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from matchmill.errors import InputError
from matchmill.lab.experiments.results import Results

__all__ = ["range_text", "sizes_text"]


def range_text(sizes: Sequence[int]) -> str:
    """Write `100,000 to 1,000,000`, or the one size that there is."""
    least, most = min(sizes), max(sizes)
    return f"{most:,}" if least == most else f"{least:,} to {most:,}"


def sizes_text(results: Results, why: str) -> str:
    """Compare what was measured with what the paper has; `why` where they differ."""
    measured = {
        json.loads(s.columns["workload"])["n_subscriptions"]
        for s in results.summaries()
        if s.status == "ok"
    }
    if not measured:
        return "Nothing was measured."
    ours, paper = sorted(measured), results.experiment.paper_subscriptions
    if not paper:
        return f"{range_text(ours)} subscriptions; the paper does not say how many it has."
    if max(ours) == max(paper):
        as_paper = "as in the paper" if min(ours) == min(paper) else f"paper: {range_text(paper)}"
        return f"{range_text(ours)} subscriptions, {as_paper}."
    if not why:
        raise InputError(
            f"{results.experiment.name}: the paper has {range_text(paper)} subscriptions and "
            f"{range_text(ours)} were measured: say why, as `why_this_size`"
        )
    return (
        f"Subscriptions: the paper {range_text(paper)}, here {range_text(ours)}, "
        f"because {why.strip().rstrip('.')}."
    )
