import { InsufficientScopeError } from "@modelcontextprotocol/client";
import test from "ava";
import { OPERATOR } from "../../../resources/events.ts";
import { apiAt } from "../../harness/api.ts";
import { ALL_ERAS, connectMcp, refusalOf } from "../../harness/mcp.ts";
import { postForm, startTestService } from "../../harness/service.ts";

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
    json: { url: "https://example.com/hook", events: ["webhook.test"] },
  });
}
test.after.always(() => service.close());

const page = "https://example.com/";

/** What a tool refuses, and what it tells an agent to do then. */
const REFUSALS: [tool: string, args: Record<string, unknown>, code: string, next: RegExp][] = [
  ["create_link", { url: page, slug: "taken" }, "slug_taken", /^Choose another slug, or leave it out/],
  ["update_link", { id: link.id, slug: "docs" }, "invalid_slug", /^Correct the field/],
  ["create_link", { url: page, external_id: "mine" }, "external_id_taken", /^Change that link, or choose/],
  ["create_link", { url: "mailto:a@b.example" }, "invalid_url", /^Correct the field/],
  ["create_link", { link: page }, "invalid_request", /^Correct what the detail/],
  ["create_link", { url: page, colour: "red" }, "unknown_field", /^Leave the field out/],
  ["create_links", { links: [] }, "invalid_links", /^Correct the field/],
  ["get_link", { id: "lnk_unknown" }, "not_found", /^List what there is/],
  ["delete_link", { id: "lnk_unknown" }, "not_found", /^List what there is/],
  ["get_link_analytics", { id: "lnk_unknown" }, "not_found", /^List what there is/],
  ["list_links", { cursor: "made-up" }, "invalid_cursor", /^Correct the field/],
  ["create_webhook", { url: "http://localhost/", events: [] }, "invalid_request", /^Correct what the detail/],
  [
    "create_webhook",
    { url: "https://10.0.0.1/", events: ["webhook.test"] },
    "invalid_url",
    /^Correct the field/,
  ],
  ["get_webhook", { id: "whk_unknown" }, "not_found", /^List what there is/],
  ["test_webhook", { id: webhook.id }, "webhook_disabled", /^Enable the webhook/],
];

type Own = Awaited<ReturnType<typeof service.createOrganization>>;

/** What befalls a caller between two calls, so that the whole request is refused. */
const FALLS: [
  name: string,
  happen: (own: Own, token: string) => Promise<unknown>,
  status: number,
  next: RegExp,
][] = [
  [
    "a plan that ended",
    (own) => service.storage.organizations.setPlan(own.id, "free", OPERATOR),
    403,
    /^Ask an owner of the organization/,
  ],
  [
    "a limit that is used up",
    async (_, ownToken) => {
      const caller = apiAt(service.url, ownToken);
      while ((await caller.get("/v1/organization")).status === 200);
    },
    429,
    /^Wait \d+ seconds/,
  ],
];

for (const era of ALL_ERAS) {
  for (const [tool, args, code, next] of REFUSALS) {
    test(`${era}: ${tool} with ${JSON.stringify(args)} is refused with ${code}, and says what to do`, async (t) => {
      const client = await connectMcp(url, token, era);
      const refusal = refusalOf(await client.callTool({ name: tool, arguments: args }));
      t.is(refusal?.code, code);
      t.regex(refusal?.next ?? "", next);
      t.truthy(refusal?.detail);
      await client.close();
    });
  }

  test(`${era}: a webhook too many is refused, and says what to do`, async (t) => {
    const client = await connectMcp(url, fullToken, era);
    const args = { url: "https://example.com/hook", events: ["webhook.test"] };
    const refusal = refusalOf(await client.callTool({ name: "create_webhook", arguments: args }));
    t.is(refusal?.code, "webhook_limit");
    t.regex(refusal?.next ?? "", /^Delete one/);
    await client.close();
  });

  test(`${era}: a key that was used for something else is refused, and says what to do`, async (t) => {
    const client = await connectMcp(url, token, era);
    const call = (to: string) =>
      client.callTool({ name: "create_link", arguments: { url: to, idempotency_key: `key-${era}` } });
    t.is(refusalOf(await call(page)), undefined);
    const refusal = refusalOf(await call("https://example.org/"));
    t.is(refusal?.code, "idempotency_key_reused");
    t.regex(refusal?.next ?? "", /^Take a new key/);
    await client.close();
  });

  test(`${era}: a tool beyond the token's scopes is a step-up that the client can read`, async (t) => {
    const client = await connectMcp(url, await service.token(app, { scope: "links:read" }), era);
    const error = await t.throwsAsync(client.callTool({ name: "create_link", arguments: { url: page } }));
    t.true(error instanceof InsufficientScopeError);
    t.is((error as InsufficientScopeError).requiredScope, "links:write");
    await client.close();
  });

  for (const [name, happen, status, next] of FALLS) {
    test(`${era}: ${name} says what to do`, async (t) => {
      const own = await service.createOrganization();
      const ownToken = await service.token(own);
      const client = await connectMcp(url, ownToken, era);
      await happen(own, ownToken);
      const error = await t.throwsAsync(client.callTool({ name: "list_links", arguments: {} }));
      const told = /\{.*\}/s.exec(error?.message ?? "")?.[0] ?? "{}";
      const problem = JSON.parse(told) as { status?: number; next?: string };
      t.is(problem.status, status, error?.message);
      t.regex(problem.next ?? "", next);
      await client.close();
    });
  }
}

test("a token that was revoked sends the client back to its authorization", async (t) => {
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
