import test from "ava";
import { browserOf, createTeam } from "../../harness/clients/dashboard.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService({
  SHORT_URL: "https://go.example",
  MCP_URL: "https://mcp.example/mcp",
});
const team = await createTeam(service);
const client = await service.storage.clients.findByOrganization(team.organization.id);
const QUICK_START = `${service.url}/docs/quick-start`;

test.after.always(() => service.close());

for (const role of ["owner", "admin"] as const) {
  test(`the examples of an ${role} have the client ID of the organization`, async (t) => {
    const { browser } = await browserOf(service, team[role]);
    const { text, html, headers } = await browser.open(QUICK_START);
    t.true(text.includes(client?.clientId as string));
    t.notRegex(text, /lgc_…/);
    t.regex(html.querySelector("main .hint")?.text ?? "", /^Examples use the client ID of Team\.$/);
    t.is(headers.get("cache-control"), "private, no-store");
    t.is(headers.get("etag"), null);
  });
}

test("a page of a signed-in user is never cached, also without a client ID in it", async (t) => {
  for (const role of ["owner", "member", "stranger"] as const) {
    const { browser } = await browserOf(service, team[role]);
    const { headers } = await browser.open(`${service.url}/docs/errors/slug_taken`);
    t.is(headers.get("cache-control"), "private, no-store", role);
  }
});

test("the examples of a member, and of a visitor, have placeholders", async (t) => {
  const { browser } = await browserOf(service, team.member);
  const pages = [(await browser.open(QUICK_START)).text, await (await fetch(QUICK_START)).text()];
  for (const text of pages) {
    t.regex(text, /lgc_…/);
    t.false(text.includes(client?.clientId as string));
    t.notRegex(text, /Examples use/);
  }
});

test("a page without examples of the client says nothing about it", async (t) => {
  const { browser } = await browserOf(service, team.owner);
  const { html } = await browser.open(`${service.url}/docs/errors/slug_taken`);
  t.is(html.querySelector("main .hint"), null);
});

test("a page that was cached for visitors isn't shown to a signed-in user", async (t) => {
  t.regex((await fetch(QUICK_START)).headers.get("vary") ?? "", /\bCookie\b/);
});

test("the examples have the addresses of this server: of the API, of MCP and of short links", async (t) => {
  const quickStart = await (await fetch(`${QUICK_START}.md`)).text();
  t.true(quickStart.includes(`${service.url}/oauth/token`));
  t.true(quickStart.includes("https://go.example/spring"));
  const example = await (await fetch(`${service.url}/docs/api/list-links.md`)).text();
  t.true(example.includes(`curl ${service.url}/v1/links`));
  const mcp = await (await fetch(`${service.url}/docs/mcp`)).text();
  t.true(mcp.includes("https://mcp.example/mcp"));
  t.notRegex(quickStart + mcp, /localhost:3000/);
});
