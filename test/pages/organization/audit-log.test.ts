import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import path from "node:path";
import test from "ava";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { tokensFor } from "../../harness/clients/authorization.ts";
import {
  type AuditEntry,
  auditOf,
  createTeam,
  createTeamWithClient,
  openAs,
} from "../../harness/clients/dashboard.ts";
import { follow } from "../../harness/clients/pages.ts";
import type { Page } from "../../harness/clients/test-browser.ts";
import { Program, temporaryFolder } from "../../harness/program.ts";
import { providerSettings } from "../../harness/providers/identity-provider.ts";
import { startTestService } from "../../harness/service.ts";

export const databases = "all";

// The changes never ask the identity provider.
const service = await startTestService(providerSettings("http://localhost:1"));

const { client, ...team } = await createTeamWithClient(service);
const api = apiAt(service.url, await service.token(client));
const { id: linkId } = await api.createLink({
  title: '=1+1 "quoted", with a comma',
  tags: ["one", "two"],
  metadata: { snake_case: 1, camelCase: null, text: "ü" },
  expires_at: "2030-01-01T00:00:00Z",
});
await api.send("PATCH", `/v1/links/${linkId}`, { json: { title: "-2" } });
await api.send("POST", "/v1/domains", { json: { host: "go.audit.localhost" } });
await api.createLink({ domain: "go.audit.localhost" });
for (const name of ["=A1", "'quoted", "+1"])
  await team.owner.api.send("PATCH", team.base, { json: { name } });
const csv = (await team.owner.api.get(`${team.base}/audit.csv`)).text;

const linesOf = (text: string) => text.trim().split("\n").length;

type Log = { data: AuditEntry[]; next_cursor: string | null };

test("the log is filtered by event, actor and time", async (t) => {
  const team = await createTeam(service);
  await team.admin.api.send("PATCH", team.base, { json: { name: "By the admin" } });
  const all = await auditOf(team);
  const at = async (query: string) => (await auditOf(team, query)).map(({ id }) => id);
  const by = (actor: string) => all.filter((one) => one.actor === actor).map(({ id }) => id);
  t.deepEqual(await at(`&actor=${team.admin.id}`), by(team.admin.id));
  t.deepEqual(await at(`&actor=${team.admin.username.toUpperCase()}`), by(team.admin.id));
  t.deepEqual(await at("&actor=operator"), by("operator"));
  t.deepEqual(await at("&actor=unknown"), []);
  t.is((await at("&from=2001-01-01&to=2999-01-01")).length, all.length);
  t.deepEqual(await at("&to=2001-01-01"), []);
  t.deepEqual(await at("&from=2999-01-01T00:00:00Z"), []);
});

test("a filter by the username of another organization's user doesn't tell its ID", async (t) => {
  const team = await createTeam(service);
  const { owner, member, stranger, base } = team;
  for (const { username } of [stranger, member]) {
    await owner.api.get(`${base}/audit.csv?actor=${username}`);
    const [exported] = await auditOf(team, "&type=audit_log.exported");
    t.is(exported?.data.actor, username === member.username ? member.id : stranger.username);
  }
});

test("links and authorizations are recorded with their app, which filters JSON, CSV and the page", async (t) => {
  const { client, ...team } = await createTeamWithClient(service);
  const { base, owner, member } = team;
  const { id } = client;
  await apiAt(service.url, await service.token(client)).createLink();
  const app = await service.createOrganization("The app");
  const { access_token } = await tokensFor(service, app, member, { organizationId: id });
  for (let count = 0; count < 3; count++) await apiAt(service.url, access_token).createLink();
  await member.api.send("POST", `${base}/links`, { json: { url: "https://example.com/" } });

  const byApp = await auditOf(team, `&client_id=${app.clientId}`);
  t.is(byApp.length, 3);
  const ofApp = { type: "link.created", actor: member.id, via: app.clientId, via_name: "The app" };
  for (const entry of byApp) t.like(entry, ofApp);
  const [byClient, ...others] = await auditOf(team, `&client_id=${client.clientId}`);
  t.like(byClient, { type: "link.created", actor: client.clientId, actor_name: "Team" });
  t.deepEqual(others, []);
  t.deepEqual(await auditOf(team, "&client_id=lgc_unknown"), []);
  const [granted] = await auditOf(team, "&type=authorization.granted");
  t.like(granted, { actor: member.id, via: null });
  t.true(granted?.summary.includes("The app"));

  const { text } = await owner.api.get(`${base}/audit.csv?client_id=${app.clientId}`);
  t.is(linesOf(text), 4);
  const [exported] = await service.storage.audit.list(id, { types: ["audit_log.exported"] }, 1);
  t.deepEqual(exported?.data, { client_id: app.clientId });

  const { browser, page: apps } = await openAs(service, owner, `${base}/apps`);
  const link = apps.html.querySelectorAll("main a").find((one) => one.text.startsWith("View activity"));
  const page = await browser.open(new URL(link?.attributes.href ?? "", apps.url).href);
  t.is(page.html.querySelector("[name=client_id] [selected]")?.text, "The app");
  t.is(page.html.querySelectorAll("tbody tr").length, 1);
  const parts = await follow(browser, page, "created 3 links");
  t.is(parts.html.querySelectorAll("tbody tr").length, 3);
  t.truthy(page.html.querySelector(`main a[href="${base}/audit.csv?client_id=${app.clientId}"]`));
  const none = await browser.open(`${service.url}${base}/audit?actor=unknown&from=&to=`);
  t.regex(none.text, /No events found/);
  t.notRegex((await openAs(service, member, `${base}/apps`)).page.text, /View activity/);
});

test("a bulk action is one line of the page, which leads to its entries; JSON has each of them", async (t) => {
  const { client, ...team } = await createTeamWithClient(service);
  const api = apiAt(service.url, await service.token(client));
  const links = await Promise.all(Array.from({ length: 30 }, () => api.createLink()));
  const json = { ids: links.map(({ id }) => id), action: "archive" };
  await team.owner.api.send("POST", `${team.base}/links/selection`, { json });
  const { browser, page } = await openAs(service, team.owner, `${team.base}/audit?category=links`);
  const rows = (shown: Page) => shown.html.querySelectorAll("td[data-head=Event]").map(({ text }) => text);
  t.deepEqual(rows(page), ["archived 30 links", "created 30 links"]);
  const first = await follow(browser, page, "archived 30 links");
  const next = await follow(browser, first, "Next");
  t.is(next.html.querySelector(".pages a")?.text, "First page");
  const shown = [...rows(first), ...rows(next)];
  t.is(rows(first).length, 25);
  t.deepEqual(shown.toSorted(), links.map(({ slug }) => `archived link /${slug}`).toSorted());
  t.is((await auditOf(team, "&type=link.updated")).length, 30);
  const csv = first.html.querySelector("main a[href*='audit.csv']")?.attributes.href ?? "";
  t.is(linesOf((await team.owner.api.get(csv)).text), 31);
});

test("the log is paginated, and a cursor of another list and an invalid filter are rejected", async (t) => {
  const team = await createTeam(service);
  const all = (await auditOf(team)).map(({ id }) => id);
  const read = async (query: string) =>
    (await team.owner.api.get<Log>(`${team.base}/audit?limit=1${query}`)).body;
  const first = await read("");
  const encoded = encodeURIComponent(String(first.next_cursor));
  const second = await read(`&cursor=${encoded}`);
  t.deepEqual(
    [...first.data, ...second.data].map(({ id }) => id),
    all.slice(0, 2),
  );
  const theirs = `/dashboard/organizations/${team.other.id}/audit`;
  for (const reply of [
    await team.stranger.api.send("GET", `${theirs}?cursor=${encoded}`),
    await team.owner.api.send("GET", `${team.base}/audit?type=plan.changed&cursor=${encoded}`),
    await team.owner.api.send("GET", `${team.base}/audit?cursor=AAAA${encoded}`),
  ])
    isProblem(t, reply, { status: 422, code: "invalid_cursor", fields: ["cursor"] });
  const filtered = await team.owner.api.send("GET", `${team.base}/audit.csv?type=link.clicked`);
  isProblem(t, filtered, { status: 422, code: "invalid_type", fields: ["type"] });
});

test("the export contains every entry and escapes formulas", async (t) => {
  const team = await createTeam(service);
  for (const name of ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", '"quoted", with a comma'])
    await team.owner.api.send("PATCH", team.base, { json: { name } });
  const user = await service.createUser([team.organization.id], `=hyperlink${Date.now()}`, "owner");
  await service.storage.organizationSettings.change(team.organization.id, { name: "+2" }, { id: user.id });
  const { headers, text } = await team.owner.api.get(`${team.base}/audit.csv`);
  t.is(headers.get("content-type"), "text/csv; charset=utf-8");
  t.regex(headers.get("content-disposition") ?? "", /^attachment; filename="[a-z\d-]+-audit-log-/);
  t.is(linesOf(text), (await auditOf(team)).length + 1);
  t.true(text.startsWith("created_at,actor,actor_name"));
  t.false(/(^|,)"?[=+\-@\t]/m.test(text), text);
  t.true(text.includes(`'${user.username}`));
  const renamed = await team.owner.api.get(`${team.base}/audit.csv?type=organization.renamed`);
  t.is(linesOf(renamed.text), 7);
});

type Chained = { seq: number; hash: string; previous_hash: string };
type ChainedLog = { data: Chained[]; head: Omit<Chained, "previous_hash"> };

const folder = temporaryFolder("audit");

/** Runs the published script on an export. */
function verify(csv: string, ...hash: string[]) {
  const file = path.join(folder, `${randomUUID()}.csv`);
  writeFileSync(file, csv);
  return new Program(process.execPath, ["docs/verify-audit-log.mjs", file, ...hash]).ended;
}

test("an export is proven offline, and contains the hash that the page showed", async (t) => {
  const { page } = await openAs(service, team.owner, `${team.base}/audit`);
  const { head, data } = (await team.owner.api.get<ChainedLog>(`${team.base}/audit?limit=100`)).body;
  t.true(page.text.includes("Proof of completeness"));
  t.is(data[0]?.hash, head.hash);
  for (const [index, entry] of data.entries()) {
    t.is(entry.seq, head.seq - index);
    t.is(entry.previous_hash, data[index + 1]?.hash ?? "0".repeat(64));
  }
  const later = (await team.owner.api.get(`${team.base}/audit.csv`)).text;
  const { code, stdout, stderr } = await verify(later, head.hash);
  t.is(code, 0, stderr);
  t.regex(stdout, /Entries 1 to \d+ are unchanged/);
  t.is((await verify(csv, head.hash)).code, 1, "this export was made before");
});

const TAMPERING: Record<string, (text: string) => string> = {
  "a changed actor": (text) => text.replace(/^([^,]*),usr_[^,]*/m, "$1,usr_other"),
  "another actor in every line and record": (text) => text.replaceAll(team.owner.id, "usr_other"),
  "a changed time": (text) => text.replace(/^20\d\d-/m, "1999-"),
  "a changed type": (text) => text.replace(",link.created,", ",link.deleted,"),
  "changed data": (text) => text.replace('""to"":""growth""', '""to"":""premium""'),
  "changed data of a link": (text) => text.replace('""redirect_type"":302', '""redirect_type"":301'),
  "another domain of a link": (text) => text.replace('""domain"":""go.', '""domain"":""no.'),
  "a changed record": (text) => text.replace('""seq"":3', '""seq"":4'),
  "a deleted line": (text) => text.replace(/^.*,plan\.changed,.*\n/m, ""),
  "a line that is there twice": (text) => text.replace(/^(.*,plan\.changed,.*\n)/m, "$1$1"),
};

test("an export that was tampered with is rejected", async (t) => {
  t.is((await verify(csv)).code, 0);
  for (const [what, tamper] of Object.entries(TAMPERING)) {
    const tampered = tamper(csv);
    t.not(tampered, csv, what);
    t.true(linesOf(tampered) > 5, what);
    t.is((await verify(tampered)).code, 1, what);
  }
});
