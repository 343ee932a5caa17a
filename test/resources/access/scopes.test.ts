import test from "ava";
import type { OpenApiDocument } from "../../../resources/openapi/document.ts";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { challengeOf } from "../../harness/clients/challenge.ts";
import { tokensFor } from "../../harness/clients/flow.ts";
import { ALL_ERAS, connectMcp, modernRequest, postMcp } from "../../harness/clients/mcp.ts";
import { bearer, startTestService } from "../../harness/service.ts";

const service = await startTestService();
const app = await service.createOrganization();
const owner = apiAt(service.url, await service.token(app));
const API_SCOPES = ["links:read", "links:write", "webhooks:read", "webhooks:write"];
const grants = Array.from({ length: 2 ** API_SCOPES.length - 1 }, (_, n) =>
  API_SCOPES.filter((_scope, bit) => ((n + 1) >> bit) & 1),
);
const tokens = new Map<string, string>();
for (const scopes of grants) {
  const scope = scopes.join(" ");
  tokens.set(scope, await service.token(app, { scope }));
}

const SCOPES = ["links:read", "links:write", "webhooks:read", "webhooks:write"];
const mcp = `${service.url}/mcp`;

/** A token for each set of scopes. The one without scopes is a user's, because client credentials get at least one. */
const tokenByScopes = new Map<string, string>();
for (let set = 1; set < 2 ** SCOPES.length; set++) {
  const scope = SCOPES.filter((_, bit) => (set >> bit) & 1).join(" ");
  tokenByScopes.set(scope, await service.token(app, { scope }));
}
const user = await service.createUser([app.id]);
const parameters = { scope: "openid" };
tokenByScopes.set("openid", (await tokensFor(service, app, user, { parameters })).access_token);

const { body: document } = await apiAt(service.url).get<OpenApiDocument>("/v1/openapi.json");
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, { operationId, security }]) => ({
    id: operationId,
    method: method.toUpperCase(),
    path,
    declared: security.flatMap(({ oauth2 }) => oauth2),
    isOpen: security.length === 0,
  })),
);

const mcpOwner = await connectMcp(mcp, tokenByScopes.get(SCOPES.join(" ")) as string);
const { tools } = await mcpOwner.listTools();
await mcpOwner.close();

test.after.always(() => service.close());

type Route = { method: string; path: string; needs: string; success: number; json?: object };
const routes: Route[] = [
  {
    method: "POST",
    path: "/v1/links",
    needs: "links:write",
    success: 201,
    json: { url: "https://example.com" },
  },
  { method: "GET", path: "/v1/links", needs: "links:read", success: 200 },
  { method: "HEAD", path: "/v1/links", needs: "links:read", success: 200 },
  { method: "GET", path: "/v1/links/{id}", needs: "links:read", success: 200 },
  { method: "HEAD", path: "/v1/links/{id}", needs: "links:read", success: 200 },
  { method: "PATCH", path: "/v1/links/{id}", needs: "links:write", success: 200, json: { title: "x" } },
  { method: "DELETE", path: "/v1/links/{id}", needs: "links:write", success: 204 },
  { method: "GET", path: "/v1/organization", needs: "links:read", success: 200 },
];

/** A write scope includes its read scope. No other scope includes another. */
function covers(granted: string[], needed: string): boolean {
  return granted.includes(needed) || granted.includes(needed.replace(":read", ":write"));
}

for (const { method, path, needs, success, json } of routes) {
  for (const [scope, token] of tokens) {
    const isAllowed = covers(scope.split(" "), needs);
    const name = `${method} ${path} with ${scope}`;
    test(`${name} is ${isAllowed ? "allowed" : "rejected"}`, async (t) => {
      const { id } = await owner.createLink();
      const before = await owner.get(`/v1/links/${id}`);
      const reply = await apiAt(service.url, token).send(method, path.replace("{id}", id), { json });
      if (isAllowed) {
        t.is(reply.status, success, reply.text);
        return;
      }
      t.is(reply.status, 403);
      t.deepEqual((await owner.get(`/v1/links/${id}`)).body, before.body);
    });
  }

  test(`${method} ${path} without the required scope gets a challenge that names it and what the token has`, async (t) => {
    const token = tokens.get("webhooks:read webhooks:write");
    const reply = await apiAt(service.url, token).send(method, path.replace("{id}", "lnk_x"), { json });
    const { error_description, ...challenge } = challengeOf(reply) ?? {};
    t.deepEqual(challenge, {
      error: "insufficient_scope",
      scope: `webhooks:read webhooks:write ${needs}`,
      resource_metadata: `${service.url}/.well-known/oauth-protected-resource/v1`,
    });
    t.truthy(error_description);
    if (method !== "HEAD") isProblem(t, reply, { status: 403, code: "insufficient_scope" });
  });

  test(`${method} ${path} without a token is rejected`, async (t) => {
    const reply = await apiAt(service.url).send(method, path.replace("{id}", "lnk_x"), { json });
    t.is(reply.status, 401);
    t.is(challengeOf(reply)?.scope, needs);
  });
}

test("the scope is checked before the body and before the link", async (t) => {
  const api = apiAt(service.url, tokens.get("links:read"));
  const { id } = await owner.createLink();
  for (const [method, path, options] of [
    ["POST", "/v1/links", { body: "{", headers: { "content-type": "application/json" } }],
    ["POST", "/v1/links", { body: "x", headers: { "content-type": "text/plain" } }],
    ["PATCH", "/v1/links/lnk_unknown", { json: {} }],
    ["DELETE", "/v1/links/lnk_unknown", {}],
    ["DELETE", `/v1/links/${id}`, { headers: { "if-match": '"99"' } }],
  ] as const) {
    isProblem(t, await api.send(method, path, options), { status: 403, code: "insufficient_scope" });
  }
});

// Have the data of links and of all else that webhooks get.
const EVENTS = ["links:read", "webhooks:read"];

/** Returns the scopes that the documented rule requires, independently of the code. */
function requiredFor(method: string, path: string): string[] {
  if (path === "/v1/events") return EVENTS;
  const family = path.startsWith("/v1/webhooks") ? "webhooks" : "links";
  return [`${family}:${method === "GET" ? "read" : "write"}`];
}

function includesScopes(granted: string, required: string[]): boolean {
  return required.every((scope) => covers(granted.split(" "), scope));
}

/** Returns the scope of the challenge: what the token has, and what is required. */
function challengedScope(granted: string, required: string[]): string {
  return [...new Set([...granted.split(" "), ...required])].join(" ").trim();
}

test("only the OpenAPI document needs no token", (t) => {
  t.deepEqual(
    operations.filter(({ isOpen }) => isOpen).map(({ path }) => path),
    ["/v1/openapi.json"],
  );
});

for (const { id, method, path, declared, isOpen } of operations) {
  if (isOpen) continue;
  const required = requiredFor(method, path);
  const requestPath = path.replaceAll(/\{\w+\}/g, "unknown");

  test(`${id} requires ${required.join(" and ")} and no other scope`, async (t) => {
    t.deepEqual(declared, required);
    for (const [scope, token] of tokenByScopes) {
      const reply = await apiAt(service.url, token).send(method, requestPath);
      if (includesScopes(scope, required)) {
        t.true(reply.status !== 401 && reply.status !== 403, `${scope}: ${reply.status}`);
        continue;
      }
      isProblem(t, reply, { status: 403, code: "insufficient_scope" });
      t.like(challengeOf(reply), { error: "insufficient_scope", scope: challengedScope(scope, required) });
    }
    const anonymous = await apiAt(service.url).send(method, requestPath);
    isProblem(t, anonymous, { status: 401, code: "missing_token" });
    t.is(challengeOf(anonymous)?.scope, required.join(" "));
  });
}

/** Returns the scopes that the name of a tool implies; `whoami` requires those of `GET /v1/organization`. */
function requiredForTool(name: string): string[] {
  if (name === "whoami") return ["links:read"];
  if (name === "list_events") return EVENTS;
  const family = name.includes("webhook") ? "webhooks" : "links";
  return [`${family}:${/^(get|list)_/.test(name) ? "read" : "write"}`];
}

const mayCall = (scope: string, name: string) => includesScopes(scope, requiredForTool(name));

for (const [scope, token] of tokenByScopes) {
  for (const era of ALL_ERAS) {
    test(`${era}: a token with ${scope || "no scope"} lists exactly the tools that it may call`, async (t) => {
      const client = await connectMcp(mcp, token, era);
      const shown = (await client.listTools()).tools.map(({ name }) => name);
      t.deepEqual(
        shown,
        tools.map(({ name }) => name).filter((name) => mayCall(scope, name)),
      );
      await client.close();
    });
  }
}

for (const { name } of tools) {
  const required = requiredForTool(name);
  test(`${name} requires ${required.join(" and ")}: otherwise it is a 403 that names it and the scopes of the token`, async (t) => {
    // With the required scope, the call fails because of its input, so nothing changes.
    const { message, headers } = modernRequest("tools/call", { name, arguments: { unknown: true } });
    for (const [scope, token] of tokenByScopes) {
      const reply = await postMcp(mcp, message, { ...headers, ...bearer(token) });
      if (mayCall(scope, name)) {
        t.is(reply.status, 200, scope);
        t.true(reply.rpc?.result?.isError, "its input is rejected");
        continue;
      }
      isProblem(t, reply, { status: 403, code: "insufficient_scope" });
      t.like(challengeOf(reply), { error: "insufficient_scope", scope: challengedScope(scope, required) });
    }
  });
}
