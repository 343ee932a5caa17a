import { InsufficientScopeError } from "@modelcontextprotocol/client";
import test from "ava";
import { PROMPTS } from "../../../resources/mcp/prompts.ts";
import { ALL_ERAS, connectMcp } from "../../harness/clients/mcp.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const url = `${service.url}/mcp`;
const app = await service.createOrganization();
const token = await service.token(app);
test.after.always(() => service.close());

const DAY_MS = 24 * 60 * 60 * 1000;
const dayBefore = (days: number) => new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10);

const EXAMPLES: Record<string, Record<string, string>> = {
  create_campaign: { urls: "https://example.com/a", campaign: "Spring" },
  weekly_report: {},
  clean_up_links: {},
};

for (const era of ALL_ERAS) {
  const textOf = async (name: string, args: Record<string, string>) => {
    const client = await connectMcp(url, token, era);
    const { messages } = await client.getPrompt({ name, arguments: args });
    await client.close();
    const [{ role, content }] = messages as [{ role: string; content: { type: string; text: string } }];
    return role === "user" && content.type === "text" ? content.text : "";
  };

  for (const [scope, names] of [
    [undefined, ["create_campaign", "weekly_report", "clean_up_links"]],
    ["links:write", ["create_campaign", "weekly_report", "clean_up_links"]],
    ["links:read", ["weekly_report"]],
    ["webhooks:write", []],
  ] as const) {
    test(`${era}: a token with ${scope ?? "all scopes"} lists the prompts whose tools it may call`, async (t) => {
      const client = await connectMcp(url, await service.token(app, scope ? { scope } : {}), era);
      const { prompts } = await client.listPrompts();
      t.deepEqual(
        prompts.map(({ name }) => name),
        [...names],
      );
      await client.close();
    });
  }

  test(`${era}: every prompt and every argument is described`, async (t) => {
    const client = await connectMcp(url, token, era);
    const { prompts } = await client.listPrompts();
    for (const { name, title, description, arguments: args } of prompts) {
      t.truthy(title && description && args?.every((one) => one.description), name);
    }
    const required = prompts.map(({ name, arguments: args = [] }) => [
      name,
      args.filter((one) => one.required).map((one) => one.name),
    ]);
    t.deepEqual(Object.fromEntries(required), {
      create_campaign: ["urls", "campaign"],
      weekly_report: [],
      clean_up_links: [],
    });
    await client.close();
  });

  test(`${era}: a prompt names only tools that its scopes allow, and arguments that they have`, async (t) => {
    for (const [name, args] of Object.entries(EXAMPLES)) {
      const { scopes = [] } = PROMPTS.find((prompt) => prompt.name === name) ?? {};
      const client = await connectMcp(url, await service.token(app, { scope: scopes.join(" ") }), era);
      const { tools } = await client.listTools();
      const known = new Set(
        tools.flatMap((tool) => [tool.name, ...Object.keys(tool.inputSchema.properties ?? {})]),
      );
      const results = ["next_cursor", "last_clicked_at", "utm_campaign", "utm_source", "utm_medium"];
      const named = (await textOf(name, args)).match(/\b[a-z]+(?:_[a-z]+)+\b/g) ?? [];
      t.true(named.length > 0);
      t.deepEqual(
        named.filter((word) => !known.has(word) && !results.includes(word)),
        [],
        name,
      );
      await client.close();
    }
  });

  test(`${era}: create_campaign contains the URLs and the parameters, and asks for those that are missing`, async (t) => {
    const given = { urls: "https://example.com/a\nhttps://example.com/b#c", campaign: "Spring Sale" };
    const text = await textOf("create_campaign", { ...given, source: "newsletter" });
    t.true(text.includes(given.urls));
    t.regex(text, /the tag "Spring Sale"/);
    t.regex(text, /utm_source: newsletter\n/);
    t.regex(text, /utm_medium: not given\n\s+Ask me once/);
    const full = await textOf("create_campaign", { ...given, source: "newsletter", medium: "email" });
    t.notRegex(full, /not given|Ask me once/);
  });

  test(`${era}: weekly_report names the seven days before today, and the seven before them`, async (t) => {
    const days = [7, 1, 14, 8].map(dayBefore);
    for (const args of [{}, { tag: "mail" }]) {
      const text = await textOf("weekly_report", args);
      for (const day of days) t.true(text.includes(day), day);
      t.is(text.includes('the tag "mail"'), "tag" in args);
      t.is(text.includes("get_analytics"), !("tag" in args), "it has no filter by tag");
    }
  });

  test(`${era}: clean_up_links asks before it archives, and never deletes`, async (t) => {
    t.true((await textOf("clean_up_links", {})).includes(dayBefore(90)));
    const text = await textOf("clean_up_links", { days: "30" });
    t.true(text.includes(dayBefore(30)));
    t.regex(text, /Change nothing before I answer/);
    t.notRegex(text, /delete_link/);
  });

  for (const [name, args, message] of [
    ["create_campaign", {}, /urls: must be a text, campaign: must be a text/],
    ["create_campaign", { urls: " ", campaign: "x" }, /urls: must not be empty/],
    ["create_campaign", { ...EXAMPLES.create_campaign, source: "" }, /source: must not be empty/],
    ["weekly_report", { tag: "" }, /tag: must not be empty/],
    ["clean_up_links", { days: "0" }, /days: must be a whole number from 1 to 9999/],
    ["clean_up_links", { days: "a few" }, /days: must be a whole number from 1 to 9999/],
    ["unknown", {}, /Prompt unknown not found/],
    ["", {}, /not found/],
    ["__proto__", {}, /disabled/],
  ] as const) {
    test(`${era}: ${name || "an empty name"} with ${JSON.stringify(args)} is refused with the reason`, async (t) => {
      const client = await connectMcp(url, token, era);
      const error = await t.throwsAsync(client.getPrompt({ name, arguments: args }), { message });
      t.is((error as { code?: number } | undefined)?.code, -32602);
      await client.close();
    });
  }

  for (const [name, args] of Object.entries(EXAMPLES)) {
    test(`${era}: ${name} without its scope gets a step-up challenge`, async (t) => {
      const client = await connectMcp(url, await service.token(app, { scope: "webhooks:read" }), era);
      const error = await t.throwsAsync(client.getPrompt({ name, arguments: args }));
      t.true(error instanceof InsufficientScopeError);
      const needed = name === "weekly_report" ? "links:read" : "links:write";
      t.is((error as InsufficientScopeError).requiredScope, `webhooks:read ${needed}`);
      await client.close();
    });
  }
}
