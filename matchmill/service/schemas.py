"""The forms of requests and answers, as JSON Schema."""

from __future__ import annotations

from matchmill.service.settings import ServiceSettings
from matchmill.service.validation import Schema

__all__ = ["ANSWERS", "COMPONENTS", "IDENTIFIER", "SCOPES", "SEQ", "Forms", "ref"]

SCOPES = ("subscribe", "publish", "read", "admin")

_INT64 = 2**63 - 1


def fields(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    """An object with these fields and no others."""
    return {
        "type": "object",
        "properties": required | (optional or {}),
        "required": list(required),
        "additionalProperties": False,
    }


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


_TEXT: Schema = {"type": "string"}
_NUMBER: Schema = {"type": "integer"}
_EVENT: Schema = {
    "type": "object",
    "additionalProperties": True,
    "description": "attributes and their values; nested objects become dotted names",
}
_MOMENT: Schema = {"type": "string", "format": "date-time"}
_ANY: Schema = {"type": "object", "additionalProperties": True}
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
        valid: Schema = {
            "type": "integer",
            "minimum": 1,
            "maximum": settings.max_valid_seconds,
            "description": "how long it lasts from now on",
        }
        self.expression: Schema = {
            "type": "string",
            "minLength": 1,
            "maxLength": settings.max_expression_length,
            "description": "an expression, or a JSON pattern as text",
        }
        self.subscription = fields(
            {"expression": self.expression},
            {
                "id": IDENTIFIER,
                "valid_seconds": valid,
                "webhook": fields({"url": {"type": "string", "minLength": 1, "maxLength": 2000}}),
                "max_per_minute": {"type": "integer", "minimum": 1, "maximum": 1_000_000},
            },
        )
        # What is wrong with one of many is told for that one, so here only the list is checked.
        many: Schema = {"type": "array", "minItems": 1, "maxItems": settings.max_items}
        self.subscriptions = fields({"subscriptions": many | {"items": _ANY}})
        self.renewal = fields({}, {"valid_seconds": valid})
        self.event = fields({"event": _EVENT}, {"event_id": IDENTIFIER})
        self.events = fields({"events": many | {"items": _ANY}})
        self.test = fields({"event": _EVENT})
        self.explain = fields({"event": _EVENT}, {"id": IDENTIFIER, "expression": self.expression})
        self.check = fields({"expression": {"type": "string", "maxLength": 1_000_000}})
        self.backtest = fields(
            {"expression": self.expression},
            {"last": {"type": "integer", "minimum": 1, "maximum": 10_000, "default": 1_000}},
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


_PROBLEM = fields(
    {"code": _TEXT, "message": _TEXT, "hint": _TEXT},
    {
        "field": _TEXT,
        "position": fields(
            {"offset": _NUMBER, "line": _NUMBER, "column": _NUMBER, "length": _NUMBER}
        ),
    },
)
_LISTED = {
    "id": _TEXT,
    "expression": _TEXT,
    "created_at": _MOMENT,
    "expires_at": _MOMENT,
    "pending": _NUMBER,
}
_MATCH = fields({"seq": _NUMBER, "event_id": _TEXT, "event": _EVENT, "matched_at": _MOMENT})
_DIGEST = fields(
    {
        "seq": _NUMBER,
        "digest": fields({"count": _NUMBER, "first_at": _MOMENT, "last_at": _MOMENT}),
    }
)
_FAILED: dict[str, Schema] = {"tries": _NUMBER, "reason": _TEXT, "failed_at": _MOMENT}
_KEY = {"key_id": _TEXT, "name": _TEXT, "scopes": _list(_TEXT), "created_at": _MOMENT}
_MADE = fields({"id": _TEXT, "ticket": _TEXT, "expires_at": _MOMENT}, {"webhook_secret": _TEXT})
_PUBLISHED = fields({"event_id": _TEXT, "matched": _NUMBER})
_REFUSED = fields({"error": ref("Problem")}, {"id": _TEXT, "event_id": _TEXT})

COMPONENTS: dict[str, Schema] = {
    "Problem": _PROBLEM,
    "Error": fields({"error": ref("Problem")}),
    "Match": _MATCH,
    "Digest": _DIGEST,
}

ANSWERS: dict[str, Schema] = {
    "made": _MADE,
    "made_many": fields(
        {
            "results": _list({"anyOf": [_MADE, _REFUSED]}),
            "accepted": _NUMBER,
            "rejected": _NUMBER,
        }
    ),
    "listed": fields({"subscriptions": _list(fields(_LISTED))}, {"next": _TEXT}),
    "subscription": fields(
        _LISTED
        | {
            "webhook": {"anyOf": [fields({"url": _TEXT}), {"type": "null"}]},
            "max_per_minute": {"anyOf": [_NUMBER, {"type": "null"}]},
            "dropped": _NUMBER,
            "dead_letters": _NUMBER,
        }
    ),
    "renewed": fields({"expires_at": _MOMENT}),
    "published": _PUBLISHED,
    "published_many": fields({"results": _list({"anyOf": [_PUBLISHED, _REFUSED]})}),
    "tested": fields({"matches": _list(_TEXT)}),
    "explained": fields(
        {"matches": {"type": "boolean"}, "tree": {"type": "object"}, "text": _TEXT}
    ),
    "checked": {
        "anyOf": [
            fields({"ok": {"type": "boolean"}, "normalized": _TEXT}),
            fields({"ok": {"type": "boolean"}, "error": ref("Problem")}),
        ]
    },
    "backtested": fields({"events": _NUMBER, "matched": _NUMBER, "sample": _list(_TEXT)}),
    "matches": fields(
        {
            "matches": _list({"anyOf": [ref("Match"), ref("Digest")]}),
            "next": _NUMBER,
            "dropped": _NUMBER,
        }
    ),
    "dead_letters": fields(
        {
            "dead_letters": _list(
                {
                    "anyOf": [
                        fields(_MATCH["properties"] | _FAILED),
                        fields(_DIGEST["properties"] | _FAILED),
                    ]
                }
            )
        }
    ),
    "retried": fields({"retried": _NUMBER}),
    "stats": {"type": "object"},
    "key": fields(_KEY | {"key": _TEXT}),
    "keys": fields({"keys": _list(fields(_KEY))}),
}
