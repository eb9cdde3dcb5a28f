"""A model as an operator: which language is a text written in?

The classifier comes with its weights, 97 languages in a few megabytes:

    pip install 'py3langid>=0.4'
    python examples/languages.py

On the command line: matchmill match alerts.csv posts.jsonl --operators languages
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import matchmill as mm


@lru_cache(maxsize=1)
def identifier() -> Any:
    """Return the model, which is loaded at the first call."""
    try:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier
    except ImportError as error:
        raise mm.MissingDependencyError("this needs py3langid: pip install py3langid") from error
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


@mm.operator(cost_ms=0.5, timeout=30.0)  # the first call loads the model
def language(event: Mapping[str, Any], code: Any, certainty: Any) -> Any:
    """Bind both in `language(?code, ?certainty)`; with a literal code, bind its certainty."""
    text = event.get("text")
    if not isinstance(text, str):
        return None
    ranked = [(found, float(chance)) for found, chance in identifier().rank(text)]
    if isinstance(code, mm.Variable):
        return ranked[:1]
    return [chance for found, chance in ranked if found == code]


@language.batch
def languages(events: Sequence[Mapping[str, Any]], code: Any, certainty: Any) -> list[Any]:
    """Classify all texts at once, as a model on a graphics card would."""
    return [language(event, code, certainty) for event in events]


SUBSCRIPTIONS = {
    "german posts": "language('de', ?p) and ?p > 0.9",
    "french posts on sports": "topic = 'sports' and language('fr', ?p) and ?p > 0.9",
    "not english": "language(?code, ?p) and ?code != 'en' and ?p > 0.5",
}
POSTS = [
    {"topic": "sports", "text": "Le match de demain est annulé à cause de la pluie."},
    {"topic": "news", "text": "Der Zug nach Hamburg fährt heute leider nicht."},
    {"topic": "news", "text": "The weather will be fine for the rest of the week."},
]


def main() -> None:
    """Match three posts and print what was found."""
    engine = mm.Engine(SUBSCRIPTIONS)
    for post, found in zip(POSTS, engine.match_many(POSTS), strict=True):
        print(f"{post['text'][:40]:<42} {sorted(map(str, found))}")
    for stats in engine.stats().operators:
        print(f"{stats.name}: {stats}")


if __name__ == "__main__":
    main()
