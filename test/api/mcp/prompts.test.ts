import { InsufficientScopeError } from "@modelcontextprotocol/client";
import test from "ava";
import { PROMPTS } from "../../../resources/mcp/prompts.ts";
import { newApi } from "../../harness/clients/api.ts";
import { shareApi } from "../../harness/clients/authorization.ts";
import { ALL_ERAS, connectUntilEnd } from "../../harness/clients/mcp.ts";

const { service, app, token, api } = await shareApi();
const url = `${service.url}/mcp`;
const links = Array.from({ length: 100 }, (_, n) => ({ url: "https://example.com/", slug: `many-${n}` }));
await api.send("POST", "/v1/links/bulk", { json: { links } });
await api.createLink({ slug: "many-more", tags: ["Mail", "mailing list", "sale"] });
await api.createLink({ slug: "few_1", tags: ["Mail"] });
await (await newApi(service)).createLink({ slug: "few_2", tags: ["mail of others"] });

const EXAMPLES: Record<string, Record<string, string>> = {
  create_campaign: { urls: "https://example.com/a", campaign: "Spring" },
  weekly_report: {},
  clean_up_links: {},
};
const codeOf = (error: Error | undefined) => (error as { code?: number } | undefined)?.code;

for (const era of ALL_ERAS) {
  test(`${era}: a token lists the prompts whose tools it may call, with every argument described`, async (t) => {
    for (const [scope, names] of [
      ["links:write", ["create_campaign", "weekly_report", "clean_up_links"]],
      ["links:read", ["weekly_report"]],
      ["webhooks:write", []],
    ] as const) {
      const client = await connectUntilEnd(t, url, await service.token(app, { scope }), era);
      const { prompts } = await client.listPrompts();
      const listed = prompts.map(({ name }) => name);
      t.deepEqual(listed, [...names]);
      for (const { name, title, description, arguments: args = [] } of prompts) {
        t.truthy(title && description && args.every((one) => one.description), name);
        const required = args.filter((one) => one.required).map((one) => one.name);
        t.deepEqual(required, Object.keys(EXAMPLES[name] ?? {}));
      }
    }
  });

  test(`${era}: a prompt names only tools that its scopes allow, and arguments that they have`, async (t) => {
    for (const [name, args] of Object.entries(EXAMPLES)) {
      const { scopes = [] } = PROMPTS.find((prompt) => prompt.name === name) ?? {};
      const allowed = await service.token(app, { scope: scopes.join(" ") });
      const client = await connectUntilEnd(t, url, allowed, era);
      const { tools } = await client.listTools();
      const known = tools.flatMap((tool) => [tool.name, ...Object.keys(tool.inputSchema.properties ?? {})]);
      known.push("next_cursor", "last_clicked_at", "utm_campaign", "utm_source", "utm_medium");
      const { messages } = await client.getPrompt({ name, arguments: args });
      t.is(messages[0]?.role, "user");
      const named = JSON.stringify(messages[0]?.content).match(/\b[a-z]+(?:_[a-z]+)+\b/g) ?? [];
      t.true(named.length > 0);
      for (const word of named) t.true(known.includes(word), `${name}: ${word}`);
    }
  });

  test(`${era}: an unknown prompt, or wrong arguments, are refused with the reason`, async (t) => {
    const client = await connectUntilEnd(t, url, token, era);
    for (const [name, args, message] of [
      ["create_campaign", {}, /urls: must be a text, campaign: must be a text/],
      ["unknown", {}, /Prompt unknown not found/],
      ["__proto__", {}, /disabled/],
    ] as const) {
      const error = await t.throwsAsync(client.getPrompt({ name, arguments: args }), { message });
      t.is(codeOf(error), -32602);
    }
  });
}

const SLUG = { ref: { type: "ref/resource", uri: "linkgate://links/{+slug}" }, name: "slug" } as const;
const PAGE = { ref: { type: "ref/resource", uri: "linkgate://docs/{+path}" }, name: "path" } as const;
const TAG = { ref: { type: "ref/prompt", name: "weekly_report" }, name: "tag" } as const;
const CAMPAIGN = { ref: { type: "ref/prompt", name: "create_campaign" }, name: "campaign" } as const;

const COMPLETIONS = [
  [SLUG, "few", ["few_1"]],
  [SLUG, "FEW", []],
  [TAG, "ma", ["Mail", "mailing list"]],
  [TAG, "", ["Mail", "mailing list", "sale"]],
  [PAGE, "operate/mon", ["operate/monitoring"]],
  [{ ...SLUG, name: "id" }, "", []],
  [{ ...TAG, name: "urls" }, "", []],
  [CAMPAIGN, "", []],
] as const;

for (const era of ALL_ERAS) {
  test(`${era}: slugs and tags of the organization, and pages, are completed, and nothing else`, async (t) => {
    const client = await connectUntilEnd(t, url, token, era);
    for (const [{ ref, name }, value, values] of COMPLETIONS) {
      const { completion } = await client.complete({ ref, argument: { name, value } });
      t.deepEqual(completion, { values: [...values], hasMore: false }, `${name} ${value}`);
    }
  });

  test(`${era}: at most 100 slugs are returned, and it is said that there are more`, async (t) => {
    const client = await connectUntilEnd(t, url, token, era);
    for (const [value, length, hasMore] of [
      ["many", 100, true],
      ["", 100, true],
      ["many-9", 11, false],
    ] as const) {
      const { completion } = await client.complete({ ref: SLUG.ref, argument: { name: "slug", value } });
      t.is(new Set(completion.values).size, length, value);
      t.is(completion.hasMore, hasMore, value);
      t.is(completion.total, undefined, "a bounded search doesn't know it");
    }
  });

  test(`${era}: what is no template or prompt can't be completed`, async (t) => {
    const client = await connectUntilEnd(t, url, token, era);
    for (const ref of [
      { type: "ref/resource", uri: "linkgate://links/few_1" },
      { type: "ref/prompt", name: "__proto__" },
      { type: "ref/prompt", name: "linkgate://links/{+slug}" },
    ] as const) {
      const error = await t.throwsAsync(client.complete({ ref, argument: { name: "slug", value: "" } }));
      t.is(codeOf(error), -32602);
    }
  });

  test(`${era}: a prompt, and completing slugs or tags, without the scope gets a step-up challenge`, async (t) => {
    const client = await connectUntilEnd(t, url, await service.token(app, { scope: "webhooks:read" }), era);
    const complete = ({ ref, name }: typeof SLUG | typeof TAG) =>
      client.complete({ ref, argument: { name, value: "" } });
    const prompt = (name: string) => client.getPrompt({ name, arguments: EXAMPLES[name] ?? {} });
    for (const [call, scope] of [
      [() => complete(SLUG), "links:read"],
      [() => complete(TAG), "links:read"],
      [() => prompt("weekly_report"), "links:read"],
      [() => prompt("create_campaign"), "links:write"],
      [() => prompt("clean_up_links"), "links:write"],
    ] as const) {
      const error = await t.throwsAsync<InsufficientScopeError>(call, { instanceOf: InsufficientScopeError });
      t.is(error?.requiredScope, `webhooks:read ${scope}`);
    }
  });
}
