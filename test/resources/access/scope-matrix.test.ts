import test from "ava";
import type { OpenApiDocument } from "../../../resources/openapi/document.ts";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { challengeOf } from "../../harness/clients/challenge.ts";
import { tokensFor } from "../../harness/clients/flow.ts";
import { ALL_ERAS, connectMcp, modernRequest, postMcp } from "../../harness/clients/mcp.ts";
import { bearer, startTestService } from "../../harness/service.ts";

const SCOPES = ["links:read", "links:write", "webhooks:read", "webhooks:write"];

const service = await startTestService();
const app = await service.createOrganization();
const mcp = `${service.url}/mcp`;

/** A token for each set of scopes. The one without scopes is a user's, because client credentials get at least one. */
const tokens = new Map<string, string>();
for (let set = 1; set < 2 ** SCOPES.length; set++) {
  const scope = SCOPES.filter((_, bit) => (set >> bit) & 1).join(" ");
  tokens.set(scope, await service.token(app, { scope }));
}
const user = await service.createUser([app.id]);
const parameters = { scope: "openid" };
tokens.set("openid", (await tokensFor(service, app, user, { parameters })).access_token);

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

const owner = await connectMcp(mcp, tokens.get(SCOPES.join(" ")) as string);
const { tools } = await owner.listTools();
await owner.close();
test.after.always(() => service.close());

/** Returns the scope that the documented rule requires, independently of the code. */
function requiredFor(method: string, path: string): string {
  const family = path.startsWith("/v1/webhooks") ? "webhooks" : "links";
  return `${family}:${method === "GET" ? "read" : "write"}`;
}

/** A write scope includes its read scope. No other scope includes another. */
function covers(granted: string, required: string): boolean {
  const scopes = granted.split(" ");
  return scopes.includes(required) || scopes.includes(required.replace(":read", ":write"));
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

  test(`${id} requires ${required} and no other scope`, async (t) => {
    t.deepEqual(declared, [required]);
    for (const [scope, token] of tokens) {
      const reply = await apiAt(service.url, token).send(method, requestPath);
      if (covers(scope, required)) {
        t.true(reply.status !== 401 && reply.status !== 403, `${scope}: ${reply.status}`);
        continue;
      }
      isProblem(t, reply, { status: 403, code: "insufficient_scope" });
      t.like(challengeOf(reply), { error: "insufficient_scope", scope: `${scope} ${required}`.trim() });
    }
    const anonymous = await apiAt(service.url).send(method, requestPath);
    isProblem(t, anonymous, { status: 401, code: "missing_token" });
    t.is(challengeOf(anonymous)?.scope, required);
  });
}

/** Returns the scope that the name of a tool implies; `whoami` requires none. */
function requiredForTool(name: string): string | undefined {
  if (name === "whoami") return undefined;
  const family = name.includes("webhook") ? "webhooks" : "links";
  return `${family}:${/^(get|list)_/.test(name) ? "read" : "write"}`;
}

const mayCall = (scope: string, name: string) => {
  const required = requiredForTool(name);
  return required === undefined || covers(scope, required);
};

for (const [scope, token] of tokens) {
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
  test(`${name} requires ${required ?? "any token"}: otherwise it is a 403 that names it and the scopes of the token`, async (t) => {
    // With the required scope, the call fails because of its input, so nothing changes.
    const { message, headers } = modernRequest("tools/call", { name, arguments: { unknown: true } });
    for (const [scope, token] of tokens) {
      const reply = await postMcp(mcp, message, { ...headers, ...bearer(token) });
      if (mayCall(scope, name)) {
        t.is(reply.status, 200, scope);
        t.true(reply.rpc?.result?.isError, "its input is rejected");
        continue;
      }
      isProblem(t, reply, { status: 403, code: "insufficient_scope" });
      t.like(challengeOf(reply), { error: "insufficient_scope", scope: `${scope} ${required}`.trim() });
    }
  });
}
