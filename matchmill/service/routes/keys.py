"""API keys of a tenant: made, listed, revoked. A secret is shown once."""

from __future__ import annotations

from starlette.responses import Response

from matchmill.service.endpoint import Call, answer
from matchmill.service.new_key import make_key
from matchmill.service.problems import Problem
from matchmill.service.responses import key_dict

__all__ = ["add_key", "revoke_key", "show_keys"]


async def add_key(call: Call) -> Response:
    service, asked_by = call.service, call.key
    assert asked_by is not None
    tenant = (asked_by.tenant, asked_by.tenant_name)
    name, scopes = call.body["name"], call.body["scopes"]
    key, secret = await service.write(
        lambda w: make_key(w, service.secret_key, tenant, name, scopes)
    )
    return answer(key_dict(key) | {"key": secret}, 201)


async def show_keys(call: Call) -> Response:
    keys = await call.service.read(lambda r: r.keys(call.tenant))
    return answer({"keys": [key_dict(key) for key in keys]})


async def revoke_key(call: Call) -> Response:
    key_id = call.request.path_params["key_id"]
    if not await call.service.write(lambda w: w.revoke_key(call.tenant, key_id)):
        raise Problem(404, "not_found", "this tenant has no such key", hint="GET /v1/keys")
    call.request.app.state.senders.forget_keys()
    return Response(status_code=204)
