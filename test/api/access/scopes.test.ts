import test from "ava";
import type { OpenApiDocument } from "../../../resources/openapi/document.ts";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { tokensFor } from "../../harness/clients/authorization.ts";
import { challengeOf } from "../../harness/clients/challenge.ts";
import { ALL_ERAS, connectMcp, connectUntilEnd, modernRequest, postMcp } from "../../harness/clients/mcp.ts";
import { bearer, startTestService } from "../../harness/service.ts";

const service = await startTestService();
const app = await service.createOrganization();
const SCOPES = ["links", "domains", "webhooks"].flatMap((area) => [`${area}:read`, `${area}:write`]);
const mcp = `${service.url}/mcp`;

/**
 * A token with all scopes, for each scope one with only it and one without it, and a user's without any, because client
 * credentials get at least one.
 */
const tokenByScopes = new Map<string, string>();
const others = SCOPES.map((one) => SCOPES.filter((scope) => scope !== one).join(" "));
for (const scope of [SCOPES.join(" "), ...SCOPES, ...others])
  tokenByScopes.set(scope, await service.token(app, { scope }));
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

// Have the data of links and of all else that webhooks get.
const EVENTS = ["links:read", "webhooks:read"];

/** Returns the scopes that the documented rule requires, independently of the code. */
function requiredFor(method: string, path: string): string[] {
  if (path === "/v1/events") return EVENTS;
  const [, resource = ""] = /^\/v1\/(domains|webhooks)/.exec(path) ?? [];
  const family = resource || "links";
  return [`${family}:${method === "GET" ? "read" : "write"}`];
}

/** A write scope includes its read scope. No other scope includes another. */
function covers(granted: string, required: string[]): boolean {
  const scopes = granted.split(" ");
  return required.every((one) => scopes.includes(one) || scopes.includes(one.replace(":read", ":write")));
}

/** Returns the scope of the challenge: what the token has, and what is required. */
function challengedScope(granted: string, required: string[]): string {
  return [...new Set([...granted.split(" "), ...required])].join(" ").trim();
}

test("only the OpenAPI document needs no token", (t) => {
  const open = operations.filter(({ isOpen }) => isOpen).map(({ path }) => path);
  t.deepEqual(open, ["/v1/openapi.json"]);
});

for (const { id, method, path, declared, isOpen } of operations) {
  if (isOpen) continue;
  const required = requiredFor(method, path);
  const requestPath = path.replaceAll(/\{\w+\}/g, "unknown");

  test(`${id} requires ${required.join(" and ")} and no other scope`, async (t) => {
    t.deepEqual(declared, required);
    for (const [scope, token] of tokenByScopes) {
      const reply = await apiAt(service.url, token).send(method, requestPath);
      if (covers(scope, required)) {
        t.true(reply.status !== 401 && reply.status !== 403, `${scope}: ${reply.status}`);
        continue;
      }
      isProblem(t, reply, { status: 403, code: "insufficient_scope" });
      const { error_description, ...challenge } = challengeOf(reply) ?? {};
      t.truthy(error_description);
      t.deepEqual(challenge, {
        error: "insufficient_scope",
        scope: challengedScope(scope, required),
        resource_metadata: `${service.url}/.well-known/oauth-protected-resource/v1`,
      });
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
  const [resource] = /domain|webhook/.exec(name) ?? ["link"];
  const family = `${resource}s`;
  return [`${family}:${/^(get|list)_/.test(name) ? "read" : "write"}`];
}

const mayCall = (scope: string, name: string) => covers(scope, requiredForTool(name));

for (const [scope, token] of tokenByScopes)
  for (const era of ALL_ERAS)
    test(`${era}: a token with ${scope || "no scope"} lists exactly the tools that it may call`, async (t) => {
      const client = await connectUntilEnd(t, mcp, token, era);
      const shown = (await client.listTools()).tools.map(({ name }) => name);
      const allowed = tools.map(({ name }) => name).filter((name) => mayCall(scope, name));
      t.deepEqual(shown, allowed);
    });

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
      t.like(challengeOf(reply), {
        error: "insufficient_scope",
        scope: challengedScope(scope, required),
        resource_metadata: `${service.url}/.well-known/oauth-protected-resource/mcp`,
      });
    }
  });
}
