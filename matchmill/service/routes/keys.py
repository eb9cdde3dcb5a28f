"""API keys of a tenant: made, listed, revoked. A secret is shown once."""

from __future__ import annotations

from starlette.responses import Response

from matchmill.service.endpoint import Call, json_response
from matchmill.service.problems import Problem
from matchmill.service.responses import key_dict
from matchmill.service.secrets import make_key

__all__ = ["add_key", "list_keys", "revoke_key"]


async def add_key(call: Call) -> Response:
    """Make a key of the caller's tenant."""
    service, asked_by = call.service, call.key
    assert asked_by is not None
    tenant = (asked_by.tenant, asked_by.tenant_name)
    name, scopes = call.body["name"], call.body["scopes"]
    key, secret = await call.write(lambda w: make_key(w, service.secret_key, tenant, name, scopes))
    return json_response(key_dict(key) | {"key": secret}, 201)


async def list_keys(call: Call) -> Response:
    """List the keys of the tenant."""
    keys = await call.read(lambda r: r.keys(call.tenant))
    return json_response({"keys": [key_dict(key) for key in keys]})


async def revoke_key(call: Call) -> Response:
    """Revoke a key of the tenant."""
    key_id = call.request.path_params["key_id"]
    if not await call.write(lambda w: w.revoke_key(call.tenant, key_id)):
        raise Problem(404, "not_found", "this tenant has no such key", hint="GET /v1/keys")
    call.request.app.state.authentication.forget_keys()
    await call.service.end_revoked(call.tenant)
    return Response(status_code=204)
