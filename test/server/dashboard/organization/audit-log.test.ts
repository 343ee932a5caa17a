import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "ava";
import { AUDIT_EVENTS, WEBHOOK_EVENTS } from "../../../../resources/events/delivered-events.ts";
import { OPERATOR } from "../../../../resources/events/types.ts";
import { AUDITED_CHANGES, joinByInvitation } from "../../../harness/audited-changes.ts";
import { apiAt, isProblem } from "../../../harness/clients/api.ts";
import { browserOf, createTeam } from "../../../harness/clients/dashboard.ts";
import { tokensFor } from "../../../harness/clients/flow.ts";
import { ROOT } from "../../../harness/program.ts";
import { providerSettings } from "../../../harness/providers/identity-provider.ts";
import { startTestService, type TestOrganization } from "../../../harness/service.ts";

export const databases = "all";

// The changes never ask the identity provider.
const service = await startTestService(providerSettings("http://localhost:1"));

const folder = mkdtempSync(path.join(tmpdir(), "linkgate-audit-"));

const team = await createTeam(service, "free");
const { id } = team.organization;
const change = await service.storage.organizations.setPlan(id, "growth", OPERATOR);
const api = apiAt(service.url, await service.token({ id, name: "", ...change?.client } as TestOrganization));
const { id: linkId } = await api.createLink({
  title: '=1+1 "quoted", with a comma',
  tags: ["one", "two"],
  metadata: { snake_case: 1, camelCase: null, text: "ü" },
  expires_at: "2030-01-01T00:00:00Z",
});
await api.send("PATCH", `/v1/links/${linkId}`, { json: { title: "-2" } });
for (const name of ["=A1", "'quoted", "+1"])
  await team.owner.api.send("PATCH", team.base, { json: { name } });
const csv = (await team.owner.api.get(`${team.base}/audit.csv`)).text;

test.after.always(() => service.close());
test.after.always(() => rmSync(folder, { recursive: true }));

type Entry = {
  id: string;
  type: string;
  created_at: string;
  actor: string;
  actor_name: string | null;
  via: string | null;
  via_name: string | null;
  address: string | null;
  subject: string | null;
  summary: string;
  data: Record<string, unknown>;
};
type Log = { data: Entry[]; next_cursor: string | null };
type Team = Awaited<ReturnType<typeof createTeam>>;

const read = async ({ base, owner }: Team, query = "") =>
  (await owner.api.send<Log>("GET", `${base}/audit?limit=100${query}`)).body;

for (const [type, change] of Object.entries(AUDITED_CHANGES)) {
  test(`${type} is recorded once, with its actor and IP address`, async (t) => {
    const team = await createTeam(service);
    await change(team, service);
    const [entry, ...more] = (await read(team)).data.filter((one) => one.type === type);
    t.is(more.length, 0);
    t.is(entry?.actor, team.owner.id);
    t.is(entry?.actor_name, team.owner.username);
    t.regex(entry?.address ?? "", /^(::1|(::ffff:)?127\.0\.0\.1)$/);
    t.true(Math.abs(Date.parse(entry?.created_at ?? "") - Date.now()) < 60_000);
    t.true((entry?.summary.length ?? 0) > 5);
    t.is((await read(team, `&type=${type}`)).data.length, 1);
  });
}

test("a user who accepts an invitation is recorded with their role", async (t) => {
  const team = await createTeam(service);
  const guest = await joinByInvitation(team, service);
  const [entry] = (await read(team)).data;
  t.like(entry, { type: "member.added", actor: guest.id, data: { user_id: guest.id, role: "member" } });
});

test("rejected requests leave no entries", async (t) => {
  const team = await createTeam(service);
  const before = (await read(team)).data;
  const { base, owner, admin } = team;
  await owner.api.send("PUT", `${base}/plan`, { json: { plan: "gold" } });
  await owner.api.send("DELETE", `${base}/members/me`);
  await admin.api.send("DELETE", `${base}/members/${owner.id}`);
  await owner.api.send("PUT", `${base}/client/redirect-uris`, { json: { redirect_uris: ["javascript:x"] } });
  t.deepEqual((await read(team)).data, before);
});

test("links and authorizations are recorded with their client", async (t) => {
  const team = await createTeam(service, "free");
  const { id } = team.organization;
  const change = await service.storage.organizations.setPlan(id, "growth", OPERATOR);
  const own = { id, name: "Team", ...change?.client } as TestOrganization;
  await apiAt(service.url, await service.token(own)).createLink({ slug: `audit-${Date.now()}` });
  const app = await service.createOrganization("The app");
  const { access_token } = await tokensFor(service, app, team.member, { organizationId: id });
  await apiAt(service.url, access_token).createLink();

  const [byApp, granted, byClient] = (await read(team, "&category=changes")).data;
  t.like(byApp, { type: "link.created", actor: team.member.id, via: app.clientId, via_name: "The app" });
  t.like(granted, { type: "authorization.granted", actor: team.member.id, via: null });
  t.true(granted?.summary.includes("The app"));
  t.like(byClient, { type: "link.created", actor: own.clientId, actor_name: "Team" });
});

test("the log is filtered by event, actor and time", async (t) => {
  const team = await createTeam(service);
  await team.admin.api.send("PATCH", team.base, { json: { name: "By the admin" } });
  const all = (await read(team)).data;
  const at = (query: string) => read(team, query).then(({ data }) => data.map(({ id }) => id));
  const by = (actor: string) => all.filter((one) => one.actor === actor).map(({ id }) => id);
  t.deepEqual(await at(`&actor=${team.admin.id}`), by(team.admin.id));
  t.deepEqual(await at(`&actor=${team.admin.username.toUpperCase()}`), by(team.admin.id));
  t.deepEqual(await at("&actor=operator"), by("operator"));
  t.deepEqual(await at("&actor=unknown"), []);
  const days = all.map(({ created_at }) => created_at.slice(0, 10)).toSorted();
  t.is((await at(`&from=${days.at(0)}&to=${days.at(-1)}`)).length, all.length);
  t.deepEqual(await at("&to=2001-01-01"), []);
  t.deepEqual(await at("&from=2999-01-01T00:00:00Z"), []);
});

test("a filter by the username of another organization's user doesn't tell its ID", async (t) => {
  const team = await createTeam(service);
  const { owner, member, stranger, base } = team;
  for (const { username } of [stranger, member]) {
    for (const path of ["audit?format=csv&", "audit.csv?"])
      await owner.api.get(`${base}/${path}actor=${username}`);
    const exported = (await read(team, "&type=audit_log.exported")).data;
    t.deepEqual(
      exported.slice(0, 2).map(({ data }) => data.actor),
      Array(2).fill(username === member.username ? member.id : stranger.username),
    );
  }
});

test("the log is filtered by app, in JSON, as CSV and on the page", async (t) => {
  const team = await createTeam(service, "free");
  const { base, owner, member, organization } = team;
  const { id } = organization;
  const change = await service.storage.organizations.setPlan(id, "growth", OPERATOR);
  const own = { id, name: "Team", ...change?.client } as TestOrganization;
  await apiAt(service.url, await service.token(own)).createLink();
  const app = await service.createOrganization("The app");
  const { access_token } = await tokensFor(service, app, member, { organizationId: id });
  for (let count = 0; count < 3; count++) await apiAt(service.url, access_token).createLink();
  await member.api.send("POST", `${base}/links`, { json: { url: "https://example.com/" } });

  const byApp = (await read(team, `&client_id=${app.clientId}`)).data;
  t.deepEqual(
    byApp.map(({ type, actor, via }) => [type, actor, via]),
    Array(3).fill(["link.created", member.id, app.clientId]),
  );
  const byClient = (await read(team, `&client_id=${own.clientId}`)).data;
  t.deepEqual(
    byClient.map(({ type, actor }) => [type, actor]),
    [["link.created", own.clientId]],
  );
  t.deepEqual((await read(team, "&client_id=lgc_unknown")).data, []);

  const { text } = await owner.api.get(`${base}/audit.csv?client_id=${app.clientId}`);
  t.is(lines(text), 4);
  const [exported] = await service.storage.audit.list(id, { types: ["audit_log.exported"] }, 1);
  t.deepEqual(exported?.data, { client_id: app.clientId });

  const { browser } = await browserOf(service, owner);
  const apps = await browser.open(`${service.url}${base}/apps`);
  const link = apps.html.querySelectorAll("main a").find((one) => one.text.startsWith("View activity"));
  const page = await browser.open(new URL(link?.attributes.href ?? "", apps.url).href);
  t.is(page.html.querySelector("[name=client_id] [selected]")?.text, "The app");
  t.is(page.html.querySelector("td summary")?.text, "created 3 links");
  t.is(page.html.querySelectorAll("tbody tr").length, 1);
  t.deepEqual(
    page.html.querySelectorAll("td li").map((one) => one.text.split(" ").slice(0, 2).join(" ")),
    Array(3).fill("created link"),
  );
  const file = page.html.querySelectorAll("main a").find((one) => one.text === "Export CSV");
  t.is(file?.attributes.href, `${base}/audit.csv?client_id=${app.clientId}`);
  const { browser: other } = await browserOf(service, member);
  t.notRegex((await other.open(`${service.url}${base}/apps`)).text, /View activity/);
});

test("the page shows fewer than three changes of links in a row, and other changes, one by one", async (t) => {
  const team = await createTeam(service);
  const { base, owner, admin } = team;
  const create = ({ api }: typeof owner) =>
    api.send("POST", `${base}/links`, { json: { url: "https://example.com/" } });
  for (const user of [owner, owner, admin, owner, admin, admin, admin, admin]) await create(user);
  for (const name of ["1", "2", "3"]) await owner.api.send("PATCH", base, { json: { name } });
  const { browser } = await browserOf(service, owner);
  const { html } = await browser.open(`${service.url}${base}/audit?category=changes&limit=11`);
  const events = html
    .querySelectorAll("td[data-head=Event]")
    .map((cell) => (cell.querySelector("summary") ?? cell).text.trim().split(" ").slice(0, 3).join(" "));
  t.deepEqual(events.slice(0, 4), [...Array(3).fill("renamed the organization"), "created 4 links"]);
  t.is(events.length, 8);
  t.true(events.slice(4).every((event) => event.startsWith("created link /")));
});

/** Returns the ids of the entries on each page. */
async function pagesOf({ base, owner }: Team, limit: number): Promise<string[][]> {
  const pages: string[][] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const query: string = cursor && `&cursor=${encodeURIComponent(cursor)}`;
    const { body } = await owner.api.send<Log>("GET", `${base}/audit?limit=${limit}${query}`);
    pages.push(body.data.map(({ id }) => id));
    cursor = body.next_cursor;
  }
  return pages;
}

test("large entries fill a page before the limit, and the cursor leads to the rest", async (t) => {
  const team = await createTeam(service, "free");
  const { id } = team.organization;
  const change = await service.storage.organizations.setPlan(id, "growth", OPERATOR);
  const api = apiAt(
    service.url,
    await service.token({ id, name: "", ...change?.client } as TestOrganization),
  );
  const metadata = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [index, "é".repeat(500)]));
  for (let count = 0; count < 12; count++) await api.createLink({ metadata });
  const pages = await pagesOf(team, 100);
  const counts = pages.map((ids) => ids.length);
  t.true(counts.length > 1 && counts.every((count) => count > 0), counts.join());
  t.deepEqual(pages.flat(), (await pagesOf(team, 1)).flat());
});

test("the log is paginated, and a cursor is rejected for another list", async (t) => {
  const team = await createTeam(service);
  const all = (await read(team)).data.map(({ id }) => id);
  t.deepEqual((await pagesOf(team, 1)).flat(), all);

  const { body } = await team.owner.api.send<Log>("GET", `${team.base}/audit?limit=1`);
  const encoded = encodeURIComponent(String(body.next_cursor));
  const theirs = `/dashboard/organizations/${team.other.id}/audit`;
  for (const reply of [
    await team.stranger.api.send("GET", `${theirs}?cursor=${encoded}`),
    await team.owner.api.send("GET", `${team.base}/audit?type=plan.changed&cursor=${encoded}`),
    await team.owner.api.send("GET", `${team.base}/audit?cursor=AAAA${encoded}`),
  ]) {
    isProblem(t, reply, { status: 422, code: "invalid_cursor", fields: ["cursor"] });
  }
});

const INVALID: [query: string, field: string][] = [
  ["type=link.clicked", "type"],
  ["type=everything", "type"],
  ["from=yesterday", "from"],
  ["to=2026-13-01", "to"],
  ["limit=0", "limit"],
  ["limit=101", "limit"],
  ["limit=many", "limit"],
  ["format=xml", "format"],
];

for (const [query, field] of INVALID) {
  test(`?${query} is rejected`, async (t) => {
    const { base, owner } = await createTeam(service);
    const reply = await owner.api.send("GET", `${base}/audit?${query}`);
    isProblem(t, reply, { status: 422, code: `invalid_${field}`, fields: [field] });
  });
}

test("the export contains every entry and escapes formulas", async (t) => {
  const team = await createTeam(service);
  for (const name of ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", '"quoted", with a comma']) {
    await team.owner.api.send("PATCH", team.base, { json: { name } });
  }
  for (const path of ["/audit.csv", "/audit?format=csv"]) {
    const { status, headers, text } = await team.owner.api.send("GET", team.base + path);
    t.is(status, 200);
    t.is(headers.get("content-type"), "text/csv; charset=utf-8");
    t.regex(headers.get("content-disposition") ?? "", /^attachment; filename="audit-org_/);
    const lines = text.replace("\uFEFF", "").trim().split("\n");
    t.is(lines.length, (await read(team)).data.length + 1);
    t.true(lines[0]?.startsWith("created_at,actor,actor_name"));
    t.false(/(^|,)"?[=+\-@\t]/m.test(text), text);
  }
  const { text } = await team.owner.api.send("GET", `${team.base}/audit.csv?type=organization.renamed`);
  t.is(text.trim().split("\n").length, 6);
});

test("a username that looks like a formula is escaped in the export", async (t) => {
  const team = await createTeam(service);
  const user = await service.createUser([], `=hyperlink${Date.now()}`);
  await service.storage.organizations.addMember(team.organization.id, user.id, "owner", OPERATOR);
  await service.storage.organizationSettings.change(
    team.organization.id,
    { name: "Renamed" },
    { id: user.id },
  );
  const { text } = await team.owner.api.send("GET", `${team.base}/audit.csv`);
  t.true(text.includes(`'${user.username}`));
});

test("the page filters and paginates the log", async (t) => {
  const team = await createTeam(service);
  for (let count = 0; count < 26; count++) {
    await service.storage.organizationSettings.change(
      team.organization.id,
      { name: `Name ${count}` },
      OPERATOR,
    );
  }
  const { browser } = await browserOf(service, team.owner);
  const page = await browser.open(`${service.url}${team.base}/audit`);
  t.is(page.html.querySelectorAll("tbody tr").length, 25);
  const href = page.html.querySelector(".pages a")?.attributes.href ?? "";
  const next = await browser.open(new URL(href, page.url).href);
  t.true(next.html.querySelectorAll("tbody tr").length > 0);
  t.is(next.html.querySelector(".pages a")?.text, "First page");
  const none = await browser.open(
    `${service.url}${team.base}/audit?type=client.created&actor=unknown&from=&to=`,
  );
  t.regex(none.text, /No events found/);
  t.is(none.html.querySelector("option[selected]")?.attributes.value, "client.created");
  const file = none.html.querySelectorAll("main a").find(({ text }) => text === "Export CSV");
  t.is(
    file?.attributes.href,
    `${team.base}/audit.csv?type=client.created&actor=unknown`,
    "the export has the same filter",
  );
});

test("the filter names each audited event in words, in groups", async (t) => {
  const team = await createTeam(service);
  const { browser } = await browserOf(service, team.owner);
  const { html } = await browser.open(`${service.url}${team.base}/audit`);
  const groups = html.querySelectorAll("select[name=type] optgroup");
  t.deepEqual(
    groups.map(({ attributes }) => attributes.label),
    [
      ...["Sign-ins and sessions", "Members and invitations", "Apps, clients and tokens"],
      ...["Links", "Webhooks", "Organization and plan"],
    ],
  );
  const options = groups.flatMap((group) => group.querySelectorAll("option"));
  const audited = [...AUDIT_EVENTS, ...WEBHOOK_EVENTS].filter(
    (type) => type !== "link.clicked" && type !== "webhook.test",
  );
  t.deepEqual(options.map(({ attributes }) => attributes.value).toSorted(), audited.toSorted());
  const names = options.map(({ text }) => text);
  t.is(new Set(names).size, names.length);
  t.deepEqual(
    names.filter((name) => !/^[A-Z][A-Za-z0-9.,\- ]+$/.test(name)),
    [],
  );
  t.is(html.querySelector("[value='client.secret_rotated']")?.text, "Rotated or created a client secret");
  const signIns = groups[0]?.querySelectorAll("option").map(({ text }) => text) ?? [];
  t.true(signIns.includes("Signed out"), signIns.join());
});

type Head = { seq: number; hash: string };
type ChainedLog = {
  data: { seq: number; hash: string; previous_hash: string; record: string }[];
  head: Head;
};

/** Runs the published script on an export. Resolves to its exit code and output. */
function verify(csv: string, ...hash: string[]): Promise<{ code: number; text: string }> {
  const file = path.join(folder, `${Math.random()}.csv`);
  writeFileSync(file, csv);
  const script = path.join(ROOT, "docs/verify-audit-log.mjs");
  return new Promise((resolve) =>
    execFile(process.execPath, [script, file, ...hash], (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), text: stdout + stderr }),
    ),
  );
}

test("an export is proven offline, and contains the hash that the page showed", async (t) => {
  const { browser } = await browserOf(service, team.owner);
  const page = await browser.open(`${service.url}${team.base}/audit`);
  const { head, data } = (await team.owner.api.get<ChainedLog>(`${team.base}/audit?limit=100`)).body;
  t.true(page.text.includes("Proof of completeness"));
  t.is(data[0]?.hash, head.hash);
  for (const [index, entry] of data.entries()) {
    t.is(entry.seq, head.seq - index);
    t.is(entry.previous_hash, data[index + 1]?.hash ?? "0".repeat(64));
  }
  const later = (await team.owner.api.get(`${team.base}/audit.csv`)).text;
  const { code, text } = await verify(later, head.hash);
  t.is(code, 0, text);
  t.regex(text, /Entries 1 to \d+ are unchanged/);
  t.is((await verify(csv, head.hash)).code, 1, "this export was made before");
});

test("an export is itself recorded", async (t) => {
  await team.owner.api.get(`${team.base}/audit.csv?type=plan.changed&from=2020-01-01`);
  const [entry] = await service.storage.audit.list(id, { types: ["audit_log.exported"] }, 1);
  t.like(entry, {
    actor: team.owner.id,
    data: { types: ["plan.changed"], from: "2020-01-01T00:00:00.000Z" },
  });
});

const lines = (text: string) => text.trim().split("\n").length;

const TAMPERING: Record<string, (text: string) => string> = {
  "a changed actor": (text) => text.replace(/^([^,]*),usr_[^,]*/m, "$1,usr_other"),
  "another actor in every line and record": (text) => text.replaceAll(team.owner.id, "usr_other"),
  "a changed time": (text) => text.replace(/^20\d\d-/m, "1999-"),
  "a changed type": (text) => text.replace(",link.created,", ",link.deleted,"),
  "changed data": (text) => text.replace('""to"":""growth""', '""to"":""premium""'),
  "changed data of a link": (text) => text.replace('""redirect_type"":302', '""redirect_type"":301'),
  "a changed record": (text) => text.replace('""seq"":3', '""seq"":4'),
  "a deleted line": (text) => text.replace(/^.*,plan\.changed,.*\n/m, ""),
  "a line that is there twice": (text) => text.replace(/^(.*,plan\.changed,.*\n)/m, "$1$1"),
};

for (const [what, tamper] of Object.entries(TAMPERING)) {
  test(`an export with ${what} is rejected`, async (t) => {
    t.is((await verify(csv)).code, 0);
    const tampered = tamper(csv);
    t.not(tampered, csv);
    t.true(lines(tampered) > 5);
    t.is((await verify(tampered)).code, 1);
  });
}
