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

const ROLES = { owner: true, admin: true, member: false, stranger: false };

test("the examples have the client ID for managers of the organization, and no page of a user is cached", async (t) => {
  const id = client?.clientId as string;
  for (const [role, isManager] of Object.entries(ROLES) as [keyof typeof ROLES, boolean][]) {
    const { browser } = await browserOf(service, team[role]);
    const { text, html, headers } = await browser.open(QUICK_START);
    t.is(text.includes(id), isManager, role);
    if (role !== "stranger") t.is(/lgc_…/.test(text), !isManager, role);
    const hint = isManager ? "Examples use the client ID of Team." : undefined;
    if (role !== "stranger") t.is(html.querySelector("main .hint")?.text, hint);
    const other = await browser.open(`${service.url}/docs/errors/slug_taken`);
    t.is(other.html.querySelector("main .hint"), null, "it has no such examples");
    for (const page of [headers, other.headers]) {
      t.is(page.get("cache-control"), "private, no-store", role);
      t.is(page.get("etag"), null);
      t.truthy(page.get("content-encoding"), "compressed: it has no secret");
    }
  }
  const visited = await (await fetch(QUICK_START)).text();
  t.regex(visited, /lgc_…/);
  t.false(visited.includes(id));
  t.notRegex(visited, /Examples use/);
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
