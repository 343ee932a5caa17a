import test from "ava";
import {
  API_SCOPES,
  type ApiScope,
  allowedByRole,
  covers,
  scopesOfRole,
  withImplied,
  withoutImplied,
} from "../../resources/access/scopes.ts";

test("a write scope includes its read scope, and no scope includes another", (t) => {
  const included: Record<ApiScope, ApiScope[]> = {
    "links:read": ["links:read"],
    "links:write": ["links:read", "links:write"],
    "domains:read": ["domains:read"],
    "domains:write": ["domains:read", "domains:write"],
    "webhooks:read": ["webhooks:read"],
    "webhooks:write": ["webhooks:read", "webhooks:write"],
  };
  for (const granted of API_SCOPES) {
    t.deepEqual([...withImplied([granted])].sort(), included[granted]);
    for (const required of API_SCOPES)
      t.is(covers(new Set([granted]), [required]), included[granted].includes(required), granted + required);
  }
  t.false(covers(new Set(["links:read"]), ["links:read", "webhooks:read"]), "all of them are required");
  t.true(covers(new Set(), []));
});

test("a scope that another one includes can be left out", (t) => {
  t.deepEqual(withoutImplied(["openid", "links:read", "links:write"]), ["openid", "links:write"]);
  t.deepEqual(withoutImplied(["links:read", "webhooks:write"]), ["links:read", "webhooks:write"]);
});

test("a member's apps have scopes of links only, and keep those that aren't of the API", (t) => {
  t.deepEqual(scopesOfRole("member"), ["links:read", "links:write"]);
  for (const role of ["owner", "admin"] as const) t.deepEqual(scopesOfRole(role), [...API_SCOPES]);
  t.deepEqual(allowedByRole(["openid", "links:write", "webhooks:read"], "member"), ["openid", "links:write"]);
  t.deepEqual(allowedByRole(["openid", ...API_SCOPES], "owner"), ["openid", ...API_SCOPES]);
  t.deepEqual(allowedByRole(API_SCOPES, undefined), [...API_SCOPES]);
});
