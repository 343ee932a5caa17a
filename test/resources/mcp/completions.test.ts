import { InsufficientScopeError } from "@modelcontextprotocol/client";
import test from "ava";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { ALL_ERAS, connectMcp, modernRequest, postMcp } from "../../harness/clients/mcp.ts";
import { bearer, startTestService } from "../../harness/service.ts";

const service = await startTestService({ RATE_LIMIT: "on" });
const url = `${service.url}/mcp`;
const [app, other] = [await service.createOrganization(), await service.createOrganization()];
const token = await service.token(app);
const api = apiAt(service.url, token);
await api.send("POST", "/v1/links/bulk", {
  json: {
    links: Array.from({ length: 100 }, (_, n) => ({ url: "https://example.com/", slug: `many-${n}` })),
  },
});
await api.createLink({ slug: "many-more", tags: ["Mail", "mailing list", "sale"] });
await api.createLink({ slug: "few_1", tags: ["Mail"] });
await apiAt(service.url, await service.token(other)).createLink({ slug: "few_2", tags: ["mail of others"] });
test.after.always(() => service.close());

const SLUG = { ref: { type: "ref/resource", uri: "linkgate://links/{slug}" }, name: "slug" } as const;
const PAGE = { ref: { type: "ref/resource", uri: "linkgate://docs/{+path}" }, name: "path" } as const;
const TAG = { ref: { type: "ref/prompt", name: "weekly_report" }, name: "tag" } as const;
const CAMPAIGN = { ref: { type: "ref/prompt", name: "create_campaign" }, name: "campaign" } as const;

for (const era of ALL_ERAS) {
  for (const [what, { ref, name }, value, values] of [
    ["slugs", SLUG, "few", ["few_1"]],
    ["slugs in another case", SLUG, "FEW", []],
    ["what can't be a slug", SLUG, "few%", []],
    ["tags", TAG, "ma", ["Mail", "mailing list"]],
    ["tags in another case", TAG, "SA", ["sale"]],
    ["all tags", TAG, "", ["Mail", "mailing list", "sale"]],
    ["pages", PAGE, "operate/mon", ["operate/monitoring"]],
    ["another variable", { ...SLUG, name: "id" }, "", []],
    ["another argument", { ...TAG, name: "urls" }, "", []],
    ["the name of a campaign", CAMPAIGN, "", []],
  ] as const) {
    test(`${era}: ${what} with the value ${JSON.stringify(value)} are completed to ${values.length}`, async (t) => {
      const client = await connectMcp(url, token, era);
      const { completion } = await client.complete({ ref, argument: { name, value } });
      t.deepEqual(completion, { values: [...values], hasMore: false });
      await client.close();
    });
  }

  test(`${era}: at most 100 slugs are returned, and it is said that there are more`, async (t) => {
    const client = await connectMcp(url, token, era);
    for (const [value, length, hasMore] of [
      ["many", 100, true],
      ["", 100, true],
      ["many-", 100, true],
      ["many-9", 11, false],
    ] as const) {
      const { completion } = await client.complete({ ref: SLUG.ref, argument: { name: "slug", value } });
      t.is(new Set(completion.values).size, length, value);
      t.is(completion.hasMore, hasMore, value);
      t.is(completion.total, undefined, "a bounded search doesn't know it");
    }
    await client.close();
  });

  for (const ref of [
    { type: "ref/resource", uri: "linkgate://links/few_1" },
    { type: "ref/resource", uri: "linkgate://webhooks/{id}" },
    { type: "ref/prompt", name: "unknown" },
    { type: "ref/prompt", name: "__proto__" },
    { type: "ref/prompt", name: "linkgate://links/{slug}" },
  ] as const) {
    test(`${era}: ${JSON.stringify(ref)} can't be completed`, async (t) => {
      const client = await connectMcp(url, token, era);
      const error = await t.throwsAsync(client.complete({ ref, argument: { name: "slug", value: "" } }));
      t.is((error as { code?: number } | undefined)?.code, -32602);
      await client.close();
    });
  }

  for (const [what, { ref, name }] of [
    ["slugs", SLUG],
    ["tags", TAG],
  ] as const) {
    test(`${era}: completing ${what} without links:read gets a step-up challenge`, async (t) => {
      const client = await connectMcp(url, await service.token(app, { scope: "webhooks:read" }), era);
      const error = await t.throwsAsync(client.complete({ ref, argument: { name, value: "" } }));
      t.true(error instanceof InsufficientScopeError);
      t.is((error as InsufficientScopeError).requiredScope, "webhooks:read links:read");
      await client.close();
    });
  }
}

test("completions count as requests of the organization", async (t) => {
  const own = await service.createOrganization();
  const ownToken = await service.token(own);
  const params = { ref: SLUG.ref, argument: { name: "slug", value: "" } };
  const { message, headers } = modernRequest("completion/complete", params);
  const first = await postMcp(url, message, { ...headers, ...bearer(ownToken) });
  t.is(first.status, 200);
  const caller = apiAt(service.url, ownToken);
  while ((await caller.get("/v1/organization")).status === 200);
  const refused = await postMcp(url, message, { ...headers, ...bearer(ownToken) });
  isProblem(t, refused, { status: 429, code: "rate_limited" });
});
