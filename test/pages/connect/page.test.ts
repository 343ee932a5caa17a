import test from "ava";
import { parse } from "node-html-parser";
import type { Guide } from "../../../server/dashboard/connect/guides.ts";
import { browserOf, createTeam, createTeamWithClient, openAs } from "../../harness/clients/dashboard.ts";
import { textsOn } from "../../harness/clients/pages.ts";
import { OPERATOR, startTestService } from "../../harness/service.ts";

type ConnectBody = { scopes: { name: string; description: string }[]; hosts: Guide[] };

const service = await startTestService({ CIMD: "off" });
const { client: app, ...team } = await createTeamWithClient(service);
const { base } = team;
const path = `${base}/connect`;
const { clientId } = app;
const known = await startTestService();

const connectOf = async (user = team.owner) => (await user.api.get<ConnectBody>(path)).body;

test("every tab shows the steps of its host, with a copy button for each code, and whether DPoP is required", async (t) => {
  const { organization, base, owner, member } = await createTeam(known);
  const { hosts } = (await owner.api.get<ConnectBody>(`${base}/connect`)).body;
  const { browser } = await browserOf(known, owner);
  const open = async (query: string) => {
    const page = await browser.open(`${known.url}${base}/connect${query}`);
    // By default, the parser treats preformatted elements as plain text.
    return parse(page.text, { blockTextElements: { script: true } });
  };
  const tabs = (await open("")).querySelectorAll(".tabs a").map(({ attributes }) => attributes.href);
  t.deepEqual(tabs, [...hosts.map(({ id }) => `?host=${id}`), "?host=scripts"]);
  for (const { id, name, steps, detail, available } of hosts) {
    const html = await open(`?host=${id}`);
    t.is(html.querySelector(".tabs [aria-current=page]")?.attributes.href, `?host=${id}`);
    t.is(html.querySelector("main h2")?.text, name);
    t.is(html.querySelector("main .alert:not(.security)")?.text, detail?.replaceAll("`", ""));
    if (!available) continue;
    const codes = steps.flatMap(({ code }) => code ?? []);
    const shown = html.querySelectorAll(".steps pre code").map(({ text }) => text);
    t.deepEqual(shown, codes, id);
    const copied = html.querySelectorAll("[data-copy]").map(({ attributes }) => attributes["data-copy"]);
    t.deepEqual(copied, codes, id);
    const links = html.querySelectorAll(".steps a").map(({ attributes }) => attributes.href);
    const hrefs = steps.flatMap(({ link }) => link?.href ?? []);
    t.deepEqual(links, hrefs, id);
  }
  for (const query of ["", "?host=nothing", "?host=claude-code&host=zed"])
    t.is((await open(query)).querySelector(".tabs [aria-current]")?.text, "Claude Code", query);
  const { html } = (await openAs(known, member, `${base}/connect`)).page;
  t.regex(html.querySelector(".steps")?.text ?? "", new RegExp(`Sign in as ${member.username}.*Team`));
  t.truthy(html.querySelector(`main a[href="${base}/apps"]`), "where to revoke access");
  await known.storage.organizationSettings.change(organization.id, { requiresDpop: true }, OPERATOR);
  t.is((await open("?host=codex")).text.match(/Team requires DPoP[,:]/g)?.length, 2);
});

const SCOPES = { owner: 6, admin: 6, member: 2 };

test("the page has the scopes of the role, and quick starts for managers", async (t) => {
  for (const role of ["owner", "admin", "member"] as const) {
    const { scopes } = await connectOf(team[role]);
    t.is(scopes.length, SCOPES[role]);
    const { browser, page } = await openAs(service, team[role], path);
    const names = scopes.map(({ name }) => name);
    t.deepEqual(textsOn(page, "main dt code"), names);
    t.true(textsOn(page, "main code").includes(service.urls.mcpRead));
    for (const { description } of scopes) t.true(page.html.querySelector("main")?.text.includes(description));
    const scripts = await browser.open(`${service.url}${path}?host=scripts`);
    for (const quickStart of ["/client/quick-start", "/workload-identity"]) {
      const link = scripts.html.querySelector(`main a[href="${base}${quickStart}"]`);
      t.is(link !== null, role !== "member", quickStart);
    }
  }
});

test("members, and organizations whose client has no secret, see no client ID", async (t) => {
  const asMember = await team.member.api.get<ConnectBody>(path);
  t.false(asMember.text.includes(clientId));
  t.false((await openAs(service, team.member, `${path}?host=cursor`)).page.text.includes(clientId));
  const { organization, base, owner } = await createTeam(service);
  t.true(await service.storage.clients.removeSecrets(organization.id, OPERATOR));
  const { hosts } = (await owner.api.get<ConnectBody>(`${base}/connect`)).body;
  t.true(hosts.every(({ own_client }) => own_client === null));
});
