import { InsufficientScopeError } from "@modelcontextprotocol/client";
import test from "ava";
import { apiAt, isProblem, type Reply } from "../../harness/clients/api.ts";
import { shareApi } from "../../harness/clients/authorization.ts";
import { challengeOf } from "../../harness/clients/challenge.ts";
import { ALL_ERAS, connectUntilEnd, postMcp } from "../../harness/clients/mcp.ts";
import { postAsClient } from "../../harness/clients/oauth.ts";
import { bearer, OPERATOR } from "../../harness/service.ts";

const allowed = { ALLOWED_ORIGINS: "https://inspector.example.com" };
const { service, app, token: full, api } = await shareApi(allowed);
const reader = await service.token(app, { scope: "links:read" });

const url = service.urls.mcp;
const OFFERED = {
  scope: "links:read links:write",
  resource_metadata: `${service.url}/.well-known/oauth-protected-resource/mcp`,
};
const LIST = { jsonrpc: "2.0", id: 1, method: "tools/list" };
const MESSAGES = [
  ...["initialize", "tools/list", "tools/call", "server/discover"].map((method) => ({ ...LIST, method })),
  { jsonrpc: "2.0", method: "notifications/initialized" },
  "{",
];

test("every request without a token is a 401 that names the metadata and the basic scopes", async (t) => {
  const isChallenged = (reply: Reply<unknown>) => {
    isProblem(t, reply, { status: 401, code: "missing_token" });
    t.deepEqual(challengeOf(reply), OFFERED);
  };
  for (const message of MESSAGES) isChallenged(await postMcp(url, message));
  for (const method of ["GET", "DELETE", "PUT", "PATCH", "OPTIONS"])
    isChallenged(await apiAt(service.url).send(method, "/mcp"));
});

for (const era of ALL_ERAS)
  test(`${era}: a call beyond the scopes of the token is a step-up challenge for the SDK`, async (t) => {
    const client = await connectUntilEnd(t, url, reader, era);
    const args = { url: "https://example.com/" };
    const error = await t.throwsAsync(client.callTool({ name: "create_link", arguments: args }));
    t.true(error instanceof InsufficientScopeError);
    t.is((error as InsufficientScopeError).requiredScope, "links:read links:write");
  });

test("every call in a batch requires its scope", async (t) => {
  const params = { name: "create_link", arguments: { url: "https://example.com/batch" } };
  const batch = [LIST, { jsonrpc: "2.0", id: 2, method: "tools/call", params }];
  const reply = await postMcp(url, batch, bearer(reader));
  isProblem(t, reply, { status: 403, code: "insufficient_scope" });
});

test("what rejects every request of the caller says what to do next, or makes the client authorize again", async (t) => {
  const own = await service.createOrganization();
  const ownToken = await service.token(own);
  const client = await connectUntilEnd(t, url, ownToken);
  const call = () => client.callTool({ name: "list_links", arguments: {} });
  await service.storage.organizations.setPlan(own.id, "free", OPERATOR);
  const error = await t.throwsAsync(call());
  const problem = JSON.parse(/\{.*\}/s.exec(error?.message ?? "")?.[0] ?? "{}");
  t.is(problem.status, 403);
  t.regex(problem.next, /^Ask an owner of the organization/);
  await postAsClient(service, "revoke", own, { token: ownToken });
  t.is((await t.throwsAsync(call()))?.name, "UnauthorizedError");
});

test("a read-only token cannot create a link by malformed or duplicate messages", async (t) => {
  const params = { name: "create_link", arguments: { url: "https://example.com/detour" } };
  const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params };
  const twice = JSON.stringify(call).replace('"method"', '"method":"ping","method"');
  for (const [body, headers] of [
    [call, { "content-type": "text/plain" }],
    [call, { "content-type": "application/json; charset=utf-16" }],
    [call, { "mcp-session-id": "session-of-another-client" }],
    [call, { "mcp-method": "tools/list" }],
    [{ ...call, params: { ...params, name: ["create_link"] } }, {}],
    [{ ...call, params: { ...params, name: "CREATE_LINK" } }, {}],
    [{ ...call, method: "TOOLS/CALL" }, {}],
    [twice, {}],
    [[[call]], {}],
  ] as const) {
    const { rpc } = await postMcp(url, body, { ...headers, ...bearer(reader) });
    t.is(rpc?.result, undefined, JSON.stringify(headers));
  }
  const { body } = await api.get<{ data: unknown[] }>("/v1/links?search=detour");
  t.deepEqual(body.data, []);
});

const FOREIGN = [
  ...["https://evil.example", "null", "file://", "*", "http://inspector.example.com"],
  ...["https://inspector.example.com.evil.example", "https://inspector.example.com:8443"],
  ...[service.url.replace("localhost", "127.0.0.1"), service.url.replace("http:", "https:")],
];

test("an allowed origin may call, and any other is rejected with 403, with or without a token", async (t) => {
  const askFrom = async (origin: string) => [
    await postMcp(url, LIST, { origin, ...bearer(full) }),
    await postMcp(url, LIST, { origin }),
  ];
  for (const origin of [service.url, "https://inspector.example.com"]) {
    const statuses = (await askFrom(origin)).map(({ status }) => status);
    t.deepEqual(statuses, [200, 401], origin);
  }
  for (const origin of FOREIGN)
    for (const reply of await askFrom(origin))
      isProblem(t, reply, { status: 403, code: "origin_not_allowed" });
});
