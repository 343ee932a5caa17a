import { InsufficientScopeError } from "@modelcontextprotocol/client";
import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { apiAt } from "../../harness/clients/api.ts";
import { ALL_ERAS, connectMcp, refusalOf } from "../../harness/clients/mcp.ts";
import { postForm, startTestService } from "../../harness/service.ts";
import { uniqueUrl } from "../../harness/webhooks.ts";

const service = await startTestService({ RATE_LIMIT: "on" });
const url = `${service.url}/mcp`;
const app = await service.createOrganization();
const token = await service.token(app);
const api = apiAt(service.url, token);
const link = await api.createLink({ slug: "taken", external_id: "mine" });
const { body: webhook } = await api.send<{ id: string }>("POST", "/v1/webhooks", {
  json: { url: "https://example.com/hook", events: ["webhook.test"], enabled: false },
});
const full = await service.createOrganization();
const fullToken = await service.token(full);
for (let webhooks = 0; webhooks < 20; webhooks++) {
  await apiAt(service.url, fullToken).send("POST", "/v1/webhooks", {
    json: { url: uniqueUrl(), events: ["webhook.test"] },
  });
}
test.after.always(() => service.close());

const page = "https://example.com/";

/** Failing calls, with the code and the next step in the result. */
const ERRORS: [tool: string, args: Record<string, unknown>, code: string, next: RegExp][] = [
  ["create_link", { url: page, slug: "taken" }, "slug_taken", /^Choose another slug, or omit it/],
  ["update_link", { id: link.id, slug: "docs" }, "invalid_slug", /^Fix the field/],
  ["create_link", { url: page, external_id: "mine" }, "external_id_taken", /^Update that link, or choose/],
  ["create_link", { url: "mailto:a@b.example" }, "invalid_url", /^Fix the field/],
  ["create_link", { link: page }, "invalid_request", /^Fix what `detail`/],
  ["create_link", { url: page, colour: "red" }, "unknown_field", /^Remove the field/],
  ["create_links", { links: [] }, "invalid_links", /^Fix the field/],
  ["get_link", { id: "lnk_unknown" }, "not_found", /^List the existing resources/],
  ["delete_link", { id: "lnk_unknown" }, "not_found", /^List the existing resources/],
  ["get_link_analytics", { id: "lnk_unknown" }, "not_found", /^List the existing resources/],
  ["list_links", { cursor: "invented" }, "invalid_cursor", /^Fix the field/],
  ["create_webhook", { url: "http://localhost/", events: [] }, "invalid_request", /^Fix what `detail`/],
  ["create_webhook", { url: "https://10.0.0.1/", events: ["webhook.test"] }, "invalid_url", /^Fix the field/],
  ["get_webhook", { id: "whk_unknown" }, "not_found", /^List the existing resources/],
  ["test_webhook", { id: webhook.id }, "webhook_disabled", /^Enable the webhook/],
];

type Own = Awaited<ReturnType<typeof service.createOrganization>>;

/** Changes after which every request of the caller is rejected. */
const CHANGES: [
  name: string,
  change: (own: Own, token: string) => Promise<unknown>,
  status: number,
  next: RegExp,
][] = [
  [
    "a call after a downgrade to the Free plan",
    (own) => service.storage.organizations.setPlan(own.id, "free", OPERATOR),
    403,
    /^Ask an owner of the organization/,
  ],
  [
    "a call over the rate limit",
    async (_, ownToken) => {
      const caller = apiAt(service.url, ownToken);
      while ((await caller.get("/v1/organization")).status === 200);
    },
    429,
    /^Wait \d+ seconds/,
  ],
];

for (const era of ALL_ERAS) {
  for (const [tool, args, code, next] of ERRORS) {
    test(`${era}: ${tool} with ${JSON.stringify(args)} fails with ${code} and a next step`, async (t) => {
      const client = await connectMcp(url, token, era);
      const failure = refusalOf(await client.callTool({ name: tool, arguments: args }));
      t.is(failure?.code, code);
      t.regex(failure?.next ?? "", next);
      t.truthy(failure?.detail);
      await client.close();
    });
  }

  test(`${era}: a webhook over the limit fails with a next step`, async (t) => {
    const client = await connectMcp(url, fullToken, era);
    const args = { url: "https://example.com/hook", events: ["webhook.test"] };
    const failure = refusalOf(await client.callTool({ name: "create_webhook", arguments: args }));
    t.is(failure?.code, "webhook_limit");
    t.regex(failure?.next ?? "", /^Delete a webhook/);
    await client.close();
  });

  test(`${era}: a reused idempotency key fails with a next step`, async (t) => {
    const client = await connectMcp(url, token, era);
    const call = (to: string) =>
      client.callTool({ name: "create_link", arguments: { url: to, idempotency_key: `key-${era}` } });
    t.is(refusalOf(await call(page)), undefined);
    const failure = refusalOf(await call("https://example.org/"));
    t.is(failure?.code, "idempotency_key_reused");
    t.regex(failure?.next ?? "", /^Use a new key/);
    await client.close();
  });

  test(`${era}: a tool call that exceeds the token's scopes gets a step-up challenge`, async (t) => {
    const client = await connectMcp(url, await service.token(app, { scope: "links:read" }), era);
    const error = await t.throwsAsync(client.callTool({ name: "create_link", arguments: { url: page } }));
    t.true(error instanceof InsufficientScopeError);
    t.is((error as InsufficientScopeError).requiredScope, "links:read links:write");
    await client.close();
  });

  for (const [name, change, status, next] of CHANGES) {
    test(`${era}: the error of ${name} includes the next step`, async (t) => {
      const own = await service.createOrganization();
      const ownToken = await service.token(own);
      const client = await connectMcp(url, ownToken, era);
      await change(own, ownToken);
      const error = await t.throwsAsync(client.callTool({ name: "list_links", arguments: {} }));
      const json = /\{.*\}/s.exec(error?.message ?? "")?.[0] ?? "{}";
      const problem = JSON.parse(json) as { status?: number; next?: string };
      t.is(problem.status, status, error?.message);
      t.regex(problem.next ?? "", next);
      await client.close();
    });
  }
}

test("a revoked token makes the client authorize again", async (t) => {
  const own = await service.createOrganization();
  const ownToken = await service.token(own);
  const client = await connectMcp(url, ownToken);
  await postForm(`${service.url}/oauth/revoke`, {
    token: ownToken,
    client_id: own.clientId,
    client_secret: own.clientSecret,
  });
  const error = await t.throwsAsync(client.callTool({ name: "list_links", arguments: {} }));
  t.is(error?.name, "UnauthorizedError");
});
