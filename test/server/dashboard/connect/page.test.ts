import test from "ava";
import { parse } from "node-html-parser";
import { OPERATOR } from "../../../../resources/events/types.ts";
import type { ConnectBody } from "../../../harness/clients/connect.ts";
import { browserOf, createTeam } from "../../../harness/clients/dashboard.ts";
import { startTestService } from "../../../harness/service.ts";

const service = await startTestService();
const team = await createTeam(service);
const path = `${team.base}/connect`;
test.after.always(() => service.close());

/** Opens the page as a browser without JavaScript. */
async function open(user = team.owner, query = "") {
  const { browser } = await browserOf(service, user);
  const page = await browser.open(`${service.url}${path}${query}`);
  // By default, the parser treats preformatted elements as plain text.
  return { ...page, html: parse(page.text, { blockTextElements: { script: true } }) };
}

test("every tab is a link that shows the steps of its host, with a copy button for each code", async (t) => {
  const { hosts } = (await team.owner.api.send<ConnectBody>("GET", path)).body;
  const { browser } = await browserOf(service, team.owner);
  const first = await browser.open(service.url + path);
  const tabs = first.html.querySelectorAll(".tabs a").map(({ attributes }) => attributes.href);
  t.deepEqual(tabs, [...hosts.map(({ id }) => `?host=${id}`), "?host=scripts"]);
  for (const { id, name, steps, detail, available } of hosts) {
    const page = await browser.open(`${service.url}${path}?host=${id}`);
    const html = parse(page.text, { blockTextElements: { script: true } });
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
    t.deepEqual(
      links,
      steps.flatMap(({ link }) => link?.href ?? []),
      id,
    );
  }
});

for (const query of ["", "?host=nothing", "?host=claude-code&host=zed"]) {
  test(`“${query}” shows the first host that can connect`, async (t) => {
    const { status, html } = await open(team.owner, query);
    t.is(status, 200);
    t.is(html.querySelector(".tabs [aria-current]")?.text, "Claude Code");
  });
}

test("the page says which account and organization to use, and where to revoke access", async (t) => {
  const { html } = await open(team.member);
  t.regex(html.querySelector(".steps")?.text ?? "", new RegExp(`Sign in as ${team.member.username}.*Team`));
  t.truthy(html.querySelector(`main a[href="${team.base}/apps"]`));
});

const SCOPES = { owner: 4, admin: 4, member: 2 };

for (const role of ["owner", "admin", "member"] as const) {
  test(`an app of ${role === "member" ? "a" : "an"} ${role} may have ${SCOPES[role]} scopes`, async (t) => {
    const { scopes } = (await team[role].api.send<ConnectBody>("GET", path)).body;
    t.is(scopes.length, SCOPES[role]);
    const { html } = await open(team[role]);
    t.true(html.querySelectorAll("nav.sections a").some(({ text }) => text === "Connect"));
    const facts = html.querySelectorAll("main dt code").map(({ text }) => text);
    t.deepEqual(
      facts,
      scopes.map(({ name }) => name),
    );
    for (const { description } of scopes) t.true(html.querySelector("main")?.text.includes(description));
  });
}

test("scripts are sent to the quick starts, members to their owners", async (t) => {
  const asOwner = await open(team.owner, "?host=scripts");
  const asMember = await open(team.member, "?host=scripts");
  for (const quickStart of ["/client/quick-start", "/workload-identity"]) {
    const link = `main a[href="${team.base}${quickStart}"]`;
    t.truthy(asOwner.html.querySelector(link), quickStart);
    t.is(asMember.html.querySelector(link), null, quickStart);
  }
  t.regex(asMember.text, /Owners and admins find quick starts/);
});

test("on the Free plan, the page says that a paid plan is needed", async (t) => {
  const { base, owner } = await createTeam(service, "free");
  const { browser } = await browserOf(service, owner);
  const page = await browser.open(`${service.url}${base}/connect`);
  t.is(page.status, 200);
  t.regex(page.text, /AI clients need a paid plan/);
  t.truthy(page.html.querySelector(`main a[href="${base}/plan"]`));
  t.is(page.html.querySelector(".tabs"), null);
});

test("the page says that an organization requires DPoP", async (t) => {
  const { organization, base, owner } = await createTeam(service);
  await service.storage.organizationSettings.change(organization.id, { requiresDpop: true }, OPERATOR);
  const { browser } = await browserOf(service, owner);
  const page = await browser.open(`${service.url}${base}/connect?host=codex`);
  t.deepEqual(
    page.html.querySelectorAll("main .alert:not(.security)").map(({ text }) => text.split(/[:,]/)[0]),
    ["Team requires DPoP", "Team requires DPoP"],
  );
});

test("the overview and the quick start lead to the page", async (t) => {
  const { browser } = await browserOf(service, team.owner);
  for (const from of ["", "/client/quick-start"]) {
    const page = await browser.open(service.url + team.base + from);
    t.truthy(page.html.querySelector(`main a[href="${path}"]`), from);
  }
});
