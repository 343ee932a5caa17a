import test from "ava";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { challengeOf } from "../../harness/clients/challenge.ts";
import { startTestService } from "../../harness/service.ts";

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
