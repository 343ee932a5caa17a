import test from "ava";
import type { OpenApiDocument } from "../../resources/openapi/document.ts";
import { apiAt, isProblem } from "../harness/api.ts";
import { challengeOf } from "../harness/challenge.ts";
import { tokensFor } from "../harness/flow.ts";
import { ALL_ERAS, connectMcp, modernRequest, postMcp } from "../harness/mcp.ts";
import { bearer, startTestService } from "../harness/service.ts";

const SCOPES = ["links:read", "links:write", "webhooks:read", "webhooks:write"];

const service = await startTestService();
const app = await service.createOrganization();
const mcp = `${service.url}/mcp`;

/** A token for every set of scopes; one without any is a person's, for clients get at least one. */
const tokens = new Map<string, string>();
for (let set = 1; set < 2 ** SCOPES.length; set++) {
  const scope = SCOPES.filter((_, bit) => (set >> bit) & 1).join(" ");
  tokens.set(scope, await service.token(app, { scope }));
}
const person = await service.createUser([app.id]);
const parameters = { scope: "openid" };
tokens.set("", (await tokensFor(service, app, person, { parameters })).access_token);

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

/** What is needed by the rule that the contract states, whatever the code declares. */
function neededBy(method: string, path: string): string {
  const family = path.startsWith("/v1/webhooks") ? "webhooks" : "links";
  return `${family}:${method === "GET" ? "read" : "write"}`;
}

/** A write scope includes its read scope; nothing else includes anything. */
function covers(granted: string, needed: string): boolean {
  const scopes = granted.split(" ");
  return scopes.includes(needed) || scopes.includes(needed.replace(":read", ":write"));
}

test("sec 90: the document alone needs no token", (t) => {
  t.deepEqual(
    operations.filter(({ isOpen }) => isOpen).map(({ path }) => path),
    ["/v1/openapi.json"],
  );
});

for (const { id, method, path, declared, isOpen } of operations) {
  if (isOpen) continue;
  const needed = neededBy(method, path);
  const address = path.replaceAll(/\{\w+\}/g, "unknown");

  test(`sec 90: ${id} needs ${needed}: with it nothing else is asked for, without it the answer is 403`, async (t) => {
    t.deepEqual(declared, [needed]);
    for (const [scope, token] of tokens) {
      const reply = await apiAt(service.url, token).send(method, address);
      if (covers(scope, needed)) {
        t.true(reply.status !== 401 && reply.status !== 403, `${scope}: ${reply.status}`);
        continue;
      }
      isProblem(t, reply, { status: 403, code: "insufficient_scope" });
      t.like(challengeOf(reply), { error: "insufficient_scope", scope: needed });
    }
    const anybody = await apiAt(service.url).send(method, address);
    isProblem(t, anybody, { status: 401, code: "missing_token" });
    t.is(challengeOf(anybody)?.scope, needed);
  });
}

/** What is needed by the name of a tool; nothing to learn who one is. */
function neededByTool(name: string): string | undefined {
  if (name === "whoami") return undefined;
  const family = name.includes("webhook") ? "webhooks" : "links";
  return `${family}:${/^(get|list)_/.test(name) ? "read" : "write"}`;
}

const mayCall = (scope: string, name: string) => {
  const needed = neededByTool(name);
  return needed === undefined || covers(scope, needed);
};

for (const [scope, token] of tokens) {
  for (const era of ALL_ERAS) {
    test(`sec 90: ${era}: a token with ${scope || "no scope"} is shown the tools that it may call, and no others`, async (t) => {
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
  const needed = neededByTool(name);
  test(`sec 90, 105: ${name} needs ${needed ?? "any token"}: without it the answer is 403 and names it`, async (t) => {
    // What is wrong is the input alone: nothing is changed where the scope is there.
    const { message, headers } = modernRequest("tools/call", { name, arguments: { unknown: true } });
    for (const [scope, token] of tokens) {
      const reply = await postMcp(mcp, message, { ...headers, ...bearer(token) });
      if (mayCall(scope, name)) {
        t.is(reply.status, 200, scope);
        t.true(reply.rpc?.result?.isError, "its input is refused");
        continue;
      }
      isProblem(t, reply, { status: 403, code: "insufficient_scope" });
      t.like(challengeOf(reply), { error: "insufficient_scope", scope: needed });
    }
  });
}
