"""The forms of requests and responses, as JSON Schema."""

from __future__ import annotations

from matchmill.language.dialects.registry import DIALECTS, MATCHMILL
from matchmill.service.settings import ServiceSettings
from matchmill.service.validation import Schema

__all__ = ["COMPONENTS", "IDENTIFIER", "RESPONSES", "SCOPES", "SEQ", "Forms", "fields", "ref"]

SCOPES = ("subscribe", "publish", "read", "admin")

_INT64 = 2**63 - 1


def fields(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    """Return the schema of an object with these fields and no others."""
    return {
        "type": "object",
        "properties": required | (optional or {}),
        "required": list(required),
        "additionalProperties": False,
    }


def ref(name: str) -> Schema:
    """Return a reference to one of `COMPONENTS`."""
    return {"$ref": f"#/components/schemas/{name}"}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _or_null(schema: Schema) -> Schema:
    return schema | {"type": [schema["type"], "null"]}


_TEXT: Schema = {"type": "string"}
_NUMBER: Schema = {"type": "integer"}
_EVENT: Schema = {
    "type": "object",
    "additionalProperties": True,
    "description": "attributes and their values; nested objects become dotted names",
}
_MOMENT: Schema = {"type": "string", "format": "date-time"}
IDENTIFIER: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": 200,
    "pattern": r"^(?!\.{1,2}$)[^/\x00-\x1f\x7f]+$",
    "description": "an id without slashes and control characters, and not . or ..",
}
SEQ: Schema = {"type": "integer", "minimum": 0, "maximum": _INT64}


class Forms:
    """The forms of requests; their limits are settings."""

    def __init__(self, settings: ServiceSettings) -> None:
        ttl: Schema = {
            "type": "integer",
            "minimum": 1,
            "maximum": settings.max_ttl_seconds,
            "description": "seconds from now until the subscription expires",
        }
        self.expression: Schema = {
            "type": ["string", "object"],
            "minLength": 1,
            "maxLength": settings.max_expression_length,
            "additionalProperties": True,
            "description": "an expression as text, or a JSON pattern as an object or as text",
        }
        dialect: Schema = {
            "type": "string",
            "enum": list(DIALECTS),
            "default": MATCHMILL,
            "description": "the language of the expression; eventbridge is for JSON patterns",
        }
        webhook = fields({"url": {"type": "string", "minLength": 1, "maxLength": 2000}})
        most: Schema = {"type": "integer", "minimum": 1, "maximum": 1_000_000}
        self.subscription = fields(
            {"expression": self.expression},
            {
                "subscription_id": IDENTIFIER,
                "dialect": dialect,
                "ttl_seconds": ttl,
                "webhook": webhook,
                "max_per_minute": most,
            },
        )
        self.update = fields(
            {},
            {
                "expression": self.expression,
                "dialect": dialect,
                "ttl_seconds": _or_null(ttl),
                "webhook": _or_null(webhook),
                "max_per_minute": _or_null(most),
            },
        )
        self.event = fields({"event": _EVENT}, {"event_id": IDENTIFIER})
        self.match = fields({"event": _EVENT})
        self.explain = fields(
            {"event": _EVENT},
            {"subscription_id": IDENTIFIER, "expression": self.expression, "dialect": dialect},
        )
        self.check = fields(
            {"expression": self.expression | {"minLength": 0, "maxLength": 1_000_000}},
            {
                "events": _list(_EVENT) | {"maxItems": settings.max_batch_items},
                "dialect": dialect,
            },
        )
        self.backtest = fields(
            {"expression": self.expression},
            {
                "last": {"type": "integer", "minimum": 1, "maximum": 10_000, "default": 1_000},
                "dialect": dialect,
            },
        )
        self.acknowledgement = fields({"up_to": SEQ})
        self.key = fields(
            {
                "name": {"type": "string", "minLength": 1, "maxLength": 100}
                | {"pattern": r"^[^\x00-\x1f\x7f]+$", "description": "text on one line"},
                "scopes": {
                    "type": "array",
                    "items": {"type": "string", "enum": list(SCOPES)},
                    "minItems": 1,
                    "maxItems": 4,
                },
            }
        )


_POSITION = fields({"offset": _NUMBER, "line": _NUMBER, "column": _NUMBER, "length": _NUMBER})
_REJECTED = fields({"kind": _TEXT, "row": _NUMBER, "id": _or_null(_TEXT), "reason": _TEXT})
_PROBLEM = fields(
    {
        "type": _TEXT,
        "title": _TEXT,
        "status": _NUMBER,
        "detail": _TEXT,
        "code": _TEXT,
        "hint": _TEXT,
    },
    {"field": _TEXT, "position": _POSITION, "rejected": _list(ref("Rejected"))},
)
_LISTED = {
    "subscription_id": _TEXT,
    "expression": _TEXT,
    "created_at": _MOMENT,
    "expires_at": _MOMENT,
    "n_pending": _NUMBER,
}
_SUBSCRIPTION = _LISTED | {
    "webhook": _or_null(fields({"url": _TEXT})),
    "max_per_minute": _or_null(_NUMBER),
    "n_dropped": _NUMBER,
    "n_dead_letters": _NUMBER,
}
_MATCH = {
    "seq": _NUMBER,
    "event_id": _TEXT,
    "subscription_id": _TEXT,
    "event": _EVENT,
    "matched_at": _MOMENT,
}
_DIGEST = {
    "seq": _NUMBER,
    "subscription_id": _TEXT,
    "digest": fields({"n_matches": _NUMBER, "first_at": _MOMENT, "last_at": _MOMENT}),
}
_FAILED: dict[str, Schema] = {"n_attempts": _NUMBER, "reason": _TEXT, "failed_at": _MOMENT}
_KEY = {"key_id": _TEXT, "name": _TEXT, "scopes": _list(_TEXT), "created_at": _MOMENT}

COMPONENTS: dict[str, Schema] = {
    "Problem": _PROBLEM,
    "Rejected": _REJECTED,
    "Subscription": fields(_SUBSCRIPTION, {"ticket": _TEXT, "webhook_secret": _TEXT}),
    "Published": fields({"event_id": _TEXT, "n_matches": _NUMBER}),
    "Match": fields(_MATCH),
    "Digest": fields(_DIGEST),
}

RESPONSES: dict[str, Schema] = {
    "subscription": ref("Subscription"),
    "subscriptions": fields({"subscriptions": _list(fields(_LISTED))}, {"next_cursor": _TEXT}),
    "published": ref("Published"),
    "match": fields({"matches": _list(fields({"subscription_id": _TEXT}))}),
    "explain": fields(
        {
            "matched": {"type": "boolean"},
            "n_missing": _NUMBER,
            "text": _TEXT,
            "tree": {"type": "object"},
        }
    ),
    "check": fields(
        {
            "rejected": _list(
                fields(
                    _REJECTED["properties"],
                    {"detail": _TEXT, "code": _TEXT, "hint": _TEXT, "position": _POSITION},
                )
            ),
            "warnings": _list(fields({"kind": _TEXT, "message": _TEXT, "suggestion": _TEXT})),
            "n_events": _NUMBER,
        },
        {"normalized": _TEXT},
    ),
    "backtest": fields({"n_events": _NUMBER, "n_matches": _NUMBER, "event_ids": _list(_TEXT)}),
    "matches": fields(
        {"matches": _list({"anyOf": [ref("Match"), ref("Digest")]}), "n_dropped": _NUMBER}
    ),
    "dead_letters": fields(
        {"dead_letters": _list({"anyOf": [fields(_MATCH | _FAILED), fields(_DIGEST | _FAILED)]})}
    ),
    "retried": fields({"n_retried": _NUMBER}),
    "stats": {"type": "object"},
    "key": fields(_KEY | {"key": _TEXT}),
    "keys": fields({"keys": _list(fields(_KEY))}),
}
