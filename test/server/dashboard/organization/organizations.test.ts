import test from "ava";
import type { HTMLElement } from "node-html-parser";
import { OPERATOR } from "../../../../resources/events/types.ts";
import { limitsOf } from "../../../../resources/plans.ts";
import { apiAt, BROWSER, isMissing, isProblem, type LinkBody } from "../../../harness/clients/api.ts";
import { browserOf, createColleague, createTeam } from "../../../harness/clients/dashboard.ts";
import { tokensFor } from "../../../harness/clients/flow.ts";
import { isAcceptedByApi, postAsClient } from "../../../harness/clients/oauth.ts";
import { isMarked, typedIn } from "../../../harness/clients/pages.ts";
import type { Page } from "../../../harness/clients/test-browser.ts";
import { startTestService, type TestOrganization } from "../../../harness/service.ts";

export const databases = "all";

const service = await startTestService();

test.after.always(() => service.close());

test("a user who creates an organization becomes its owner", async (t) => {
  const { api } = await createColleague(service, undefined);
  const created = await api.send<{ organization: { id: string } }>("POST", "/dashboard/organizations", {
    json: { name: "  Acme & Söhne " },
  });
  t.is(created.status, 201);
  const { id } = created.body.organization;
  t.deepEqual(created.body, { organization: { id, name: "Acme & Söhne", plan: "free" } } as never);
  const { body } = await api.send<{ organizations: object[] }>("GET", "/dashboard/me");
  t.deepEqual(body.organizations, [{ id, name: "Acme & Söhne", plan: "free", role: "owner" }]);
});

const WRONG_NAMES: [what: string, json: object, code: string, fields: string[]][] = [
  ["no name", {}, "invalid_name", ["name"]],
  ["an empty name", { name: "" }, "invalid_name", ["name"]],
  ["a blank name", { name: "   " }, "invalid_name", ["name"]],
  ["a name of 101 characters", { name: "a".repeat(101) }, "invalid_name", ["name"]],
  ["a name that is not a string", { name: 7 }, "invalid_name", ["name"]],
  ["a plan", { name: "Acme", plan: "premium" }, "unknown_field", ["plan"]],
  ["an id", { name: "Acme", id: "org_1" }, "unknown_field", ["id"]],
];

for (const [what, json, code, fields] of WRONG_NAMES) {
  test(`creating an organization with ${what} is rejected`, async (t) => {
    const { api } = await createColleague(service, undefined);
    const reply = await api.send("POST", "/dashboard/organizations", { json });
    isProblem(t, reply, { status: 422, code, fields });
  });
}

test("a user can create, rename and delete an organization in a browser", async (t) => {
  const user = await service.createUser([]);
  const { browser, page: welcome } = await browserOf(service, user);
  t.regex(welcome.text, /Create your first organization/);
  const created = await browser.press(welcome, "Create organization", { name: "First" });
  t.is(created.status, 200);
  t.is(created.html.querySelector("h1")?.text, "First");
  t.regex(created.text, /Organization created/);

  const settings = await browser.open(`${created.url.split("?")[0]}/settings`);
  const rejected = await browser.press(settings, "Rename organization", { name: " " });
  t.is(rejected.status, 422);
  t.truthy(rejected.html.querySelector("[role=alert]"));
  t.regex(rejected.html.querySelector(".field .error")?.text ?? "", /^Must be 1 to 100 characters long\.$/);
  const renamed = await browser.press(settings, "Rename organization", { name: "<b>Second</b>" });
  t.regex(renamed.text, /Organization renamed/);
  t.is(renamed.html.querySelector("header .name")?.text, "<b>Second</b>");
  t.false(renamed.text.includes("<b>Second"));

  const deletion = await browser.open(renamed.url.replace(/settings.*/, "delete"));
  t.is((await browser.press(deletion, "Delete organization", { name: "second" })).status, 422);
  const end = await browser.press(deletion, "Delete organization", { name: "<b>Second</b>" });
  t.is(end.status, 200);
  t.regex(end.text, /Create your first organization/);
});

test("the dashboard opens the only organization, or the last viewed one, or a list to choose from", async (t) => {
  const user = await service.createUser([(await service.createOrganization("One")).id]);
  const { browser, page: only } = await browserOf(service, user);
  t.is(only.html.querySelector("h1")?.text, "One");
  const other = await service.createOrganization("Two");
  await service.storage.organizations.addMember(other.id, user.id, "member", OPERATOR);
  t.is((await browser.open(`${service.url}/dashboard`)).html.querySelector("h1")?.text, "One");

  const { browser: elsewhere, page: choice } = await browserOf(service, user);
  t.is(choice.html.querySelector("h1")?.text, "Your organizations");
  const names = choice.html.querySelectorAll("main h2 a");
  t.deepEqual(names.map(({ text }) => text).sort(), ["One", "Two"]);
  const chosen = names.find(({ text }) => text === "Two")?.attributes.href;
  await elsewhere.open(service.url + chosen);
  t.is((await elsewhere.open(`${service.url}/dashboard`)).html.querySelector("h1")?.text, "Two");
});

test("an organization is shown with its limits and usage, and can be renamed", async (t) => {
  const { base, owner, member, organization } = await createTeam(service);
  await member.api.send("POST", `${base}/links`, { json: { url: "https://example.com/" } });
  const { body } = await member.api.send<{ organization: object }>("GET", base);
  t.deepEqual(body.organization, {
    ...organization,
    role: "member",
    fallback_url: null,
    limits: limitsOf("growth"),
    usage: {
      ...(await service.storage.links.usage(organization.id)),
      links: 1,
      webhooks: 0,
      deliveries_today: 0,
    },
  });
  const renamed = await owner.api.send<object>("PATCH", base, { json: { name: "New name" } });
  t.deepEqual(renamed.body, { organization: { ...organization, name: "New name" } });
  for (const json of [{ name: " " }, { name: "a".repeat(101) }, { name: "New", plan: "premium" }]) {
    t.is((await owner.api.send("PATCH", base, { json })).status, 422);
  }
});

test("the overview shows top links, activity to managers, and steps that can be dismissed", async (t) => {
  const { base, admin, member } = await createTeam(service);
  const { browser, page: empty } = await browserOf(service, admin);
  const stepsOf = ({ html }: Page) => html.querySelectorAll(".checklist li").map(({ text }) => text.trim());
  t.deepEqual(stepsOf(empty), [
    "Create your first link",
    "Connect an AI client or app",
    "Invite a colleague (done)",
  ]);
  const { body: link } = await member.api.send<LinkBody>("POST", `${base}/links`, {
    json: { url: "https://example.com/", title: "Most clicked" },
  });
  for (let clicks = 0; clicks < 3; clicks++)
    await fetch(link.short_url, { redirect: "manual", headers: { "user-agent": BROWSER } });

  const page = await browser.open(service.url + base);
  t.is(stepsOf(page)[0], "Create your first link (done)");
  t.is(page.html.querySelector(".shares td a")?.text, "Most clicked");
  t.is(page.html.querySelector(".figure")?.text, "3");
  t.regex(page.html.querySelector(".activity")?.text ?? "", /created link/);
  t.notRegex(page.html.querySelector(".activity")?.text ?? "", /signed in/);
  t.deepEqual(stepsOf(await browser.press(page, "Dismiss")), []);
  t.deepEqual(stepsOf(await browser.open(service.url + base)), []);

  const { page: others } = await browserOf(service, member);
  t.is(others.html.querySelector(".activity"), null);
  t.notRegex(others.html.querySelector("aside")?.text ?? "", /Webhooks/);
});

test("the overview combines what one change of many links recorded", async (t) => {
  const { base, owner } = await createTeam(service);
  const { browser } = await browserOf(service, owner);
  const ids: string[] = [];
  for (let index = 0; index < 13; index++) {
    const json = { url: "https://example.com/" };
    ids.push((await owner.api.send<LinkBody>("POST", `${base}/links`, { json })).body.id);
  }
  for (const action of ["archive", "restore"])
    await owner.api.send("POST", `${base}/links/selection`, { json: { ids, action } });
  await owner.api.send("PATCH", `${base}/links/${ids[0]}`, { json: { title: "New" } });
  const page = await browser.open(service.url + base);
  const lines = page.html.querySelectorAll(".activity li > span:first-child").map(({ text }) => text);
  t.deepEqual(
    lines.slice(0, 4).map((line) => line.replace(/^\S+ /, "").replace(/\/\S+/, "/slug")),
    ["updated link /slug (title)", "restored 13 links", "archived 13 links", "created 13 links"],
  );
});

test("the overview says that a change has more links than it read", async (t) => {
  const { base, owner } = await createTeam(service);
  const { browser } = await browserOf(service, owner);
  const rows = Array.from({ length: 101 }, () =>
    owner.api.send<LinkBody>("POST", `${base}/links`, { json: { url: "https://example.com/" } }),
  );
  const ids = (await Promise.all(rows)).map(({ body }) => body.id);
  await owner.api.send("POST", `${base}/links/selection`, { json: { ids, action: "archive" } });
  const page = await browser.open(service.url + base);
  t.regex(page.html.querySelector(".activity li")?.text ?? "", /archived 100\+ links/);
});

test("the fallback URL of an organization is set, shown, audited and removed", async (t) => {
  const { base, admin, member } = await createTeam(service);
  const { body: link } = await member.api.send<LinkBody>("POST", `${base}/links`, {
    json: { url: "https://example.com/" },
  });
  await member.api.send("PATCH", `${base}/links/${link.id}`, { json: { archived: true } });
  const target = async () => (await fetch(link.short_url, { redirect: "manual" })).headers.get("location");
  const { browser } = await browserOf(service, admin);
  const page = await browser.open(`${service.url}${base}/settings`);

  const saved = await browser.press(page, "Save fallback URL", { fallback_url: " example.org/sorry " });
  t.regex(saved.text, /Fallback URL saved/);
  t.is(typedIn(saved, "fallback_url"), "https://example.org/sorry");
  t.is(await target(), "https://example.org/sorry");

  const rejected = await browser.press(saved, "Save fallback URL", { fallback_url: link.short_url });
  t.is(rejected.status, 422);
  isMarked(t, rejected, "fallback_url", /must not point to this service/i);
  t.is(typedIn(rejected, "fallback_url"), link.short_url);
  t.is(typedIn(rejected, "name"), typedIn(saved, "name"));

  const removed = await browser.press(saved, "Save fallback URL", { fallback_url: "" });
  t.is(typedIn(removed, "fallback_url"), "");
  t.is(await target(), null);
  const audit = (await browser.open(`${service.url}${base}/audit`)).html.text;
  t.regex(audit, /changed the fallback URL of unavailable links to https:\/\/example\.org\/sorry/);
  t.regex(audit, /removed the fallback URL of unavailable links/);

  for (const fallback_url of ["example.org", "", 7]) {
    const reply = await admin.api.send("PUT", `${base}/fallback-url`, { json: { fallback_url } });
    isProblem(t, reply, { status: 422, code: "invalid_fallback_url", fields: ["fallback_url"] });
  }
  const json = { fallback_url: "https://example.com/" };
  t.deepEqual((await admin.api.send<object>("PUT", `${base}/fallback-url`, { json })).body, json);
  const others = (await browserOf(service, member)).browser;
  t.false((await others.open(`${service.url}${base}/settings`)).text.includes("Save fallback URL"));
});

test("the settings are shown as JSON, and on a page to each role what it may change", async (t) => {
  const { base, organization, ...team } = await createTeam(service);
  const { body } = await team.member.api.get<object>(`${base}/settings`);
  t.deepEqual(body, {
    name: organization.name,
    fallback_url: null,
    allowed_clients: "known",
    member_apps: "any",
    approved_apps: [],
    enterprise_authorization: false,
    require_second_factor: false,
  });
  const managed = ["Name", "Unavailable links", "Second factor", "Apps", "Leave organization"];
  const titles = {
    owner: [...managed, "Delete organization"],
    admin: managed,
    member: ["Apps", "Leave organization"],
  };
  for (const role of ["owner", "admin", "member"] as const) {
    const { browser } = await browserOf(service, team[role]);
    const { html } = await browser.open(`${service.url}${base}/settings`);
    t.deepEqual(
      html.querySelectorAll("main h2").map(({ text }) => text),
      titles[role],
    );
    const overview = await browser.open(service.url + base);
    t.notRegex(overview.text, /Rename organization|Leave organization|Delete organization/);
  }
});

test("a user can switch between organizations, and returns to the last viewed one", async (t) => {
  const names = ["First", "Second", "Third"];
  const user = await service.createUser([]);
  for (const name of names) {
    await service.storage.organizations.create(name, "free", { id: user.id }, user.id);
  }
  const { browser, page } = await browserOf(service, user);
  const menu = page.html.querySelector("header .sheet");
  const links = menu?.querySelectorAll("a") ?? [];
  const nameOf = (link: HTMLElement | null | undefined) => (link?.querySelector("bdi") ?? link)?.text;
  t.deepEqual(links.map(nameOf), [...names, "New organization"]);
  for (const name of ["Third", "Second"]) {
    const href = links.find((link) => nameOf(link) === name)?.attributes.href;
    await browser.open(service.url + href);
    const home = await browser.open(`${service.url}/dashboard`);
    t.is(home.html.querySelector("h1")?.text, name);
    t.is(nameOf(home.html.querySelector("header [aria-current]")), name);
  }
});

test("a member who leaves in a browser loses access immediately", async (t) => {
  const { base, member } = await createTeam(service);
  const { browser } = await browserOf(service, member);
  const form = await browser.open(`${service.url}${base}/members/me/delete`);
  const left = await browser.press(form, "Leave organization");
  t.regex(left.text, /Create your first organization/);
  t.is((await browser.open(service.url + base)).status, 404);
});

test("the title of a page names the page, then the organization, and says if there is an error", async (t) => {
  const { base, owner } = await createTeam(service);
  const { browser } = await browserOf(service, owner);
  const titleOf = ({ html }: Page) => html.querySelector("title")?.text;
  const overview = await browser.open(service.url + base);
  t.is(titleOf(overview), "Overview · Team · linkgate");
  t.is(overview.html.querySelector("h1")?.text, "Team");
  t.is(titleOf(await browser.open(`${service.url}${base}/members`)), "Members · Team · linkgate");
  const settings = await browser.open(`${service.url}${base}/settings`);
  const rejected = await browser.press(settings, "Rename organization", { name: "" });
  t.is(titleOf(rejected), "Error: Settings · Team · linkgate");
});

test("a member sees no sections or forms for managers", async (t) => {
  const { base, member } = await createTeam(service);
  const { browser, page } = await browserOf(service, member);
  const sections = page.html.querySelectorAll(".sections a").map(({ text }) => text);
  t.deepEqual(sections, ["Overview", "Links", "Analytics", "Connect", "Apps", "Members", "Plan", "Settings"]);
  for (const path of ["", "/members", "/plan", "/settings"]) {
    const { html } = await browser.open(service.url + base + path);
    const forms = html.querySelectorAll("main form").map(({ attributes }) => attributes.action);
    t.deepEqual(forms, path === "" ? [`${base}/checklist`] : [], path);
  }
});

/** Creates a team with a client, a link and authorized apps. */
async function createFullTeam() {
  const team = await createTeam(service, "free");
  const { id } = team.organization;
  const change = await service.storage.organizations.setPlan(id, "growth", OPERATOR);
  const own = { id, name: "Team", ...change?.client } as TestOrganization;
  const token = await service.token(own);
  const link = await apiAt(service.url, token).createLink();
  const foreign = await service.createOrganization();
  const visitor = await service.createUser([foreign.id]);
  // Another organization's app acts for this one, and this one's app for another.
  const inward = await tokensFor(service, foreign, team.member, { organizationId: id });
  const outward = await tokensFor(service, own, visitor);
  return { ...team, own, token, link, inward: inward.access_token, outward: outward.access_token };
}

test("deleting an organization immediately revokes its tokens and stops its links", async (t) => {
  const { base, owner, member, own, token, link, inward, outward } = await createFullTeam();
  for (const one of [token, inward, outward]) t.true(await isAcceptedByApi(service, one));
  t.is((await fetch(link.short_url, { redirect: "manual" })).status, 302);

  t.is((await owner.api.send("DELETE", base)).status, 204);

  for (const one of [token, inward, outward]) t.false(await isAcceptedByApi(service, one));
  const refused = await postAsClient(service, "token", own, { grant_type: "client_credentials" });
  t.is(refused.status, 401);
  t.is(refused.body.error, "invalid_client");
  t.is((await fetch(link.short_url, { redirect: "manual" })).status, 410);
  isMissing(t, await owner.api.send("GET", base));
  isMissing(t, await owner.api.send("DELETE", base));
  const { body } = await member.api.send<{ organizations: [] }>("GET", "/dashboard/me");
  t.deepEqual(body.organizations, []);
});

test("the slug of a deleted organization's link can't be used again", async (t) => {
  const { base, owner, link } = await createFullTeam();
  await owner.api.send("DELETE", base);
  const other = apiAt(service.url, await service.token(await service.createOrganization()));
  const reply = await other.send("POST", "/v1/links", {
    json: { url: "https://example.com/", slug: link.slug },
  });
  isProblem(t, reply, { status: 409, code: "slug_taken", fields: ["slug"] });
});

test("a deleted organization isn't listed, and its plan can't be changed", async (t) => {
  const { base, owner, organization } = await createFullTeam();
  await owner.api.send("DELETE", base);
  const { organizations } = service.storage;
  t.is(await organizations.find(organization.id), undefined);
  t.is(await organizations.setPlan(organization.id, "premium", OPERATOR), undefined);
  t.false((await organizations.list()).some(({ id }) => id === organization.id));
});

for (const role of ["admin", "member"] as const) {
  test(`${role === "admin" ? "an" : "a"} ${role} can't delete the organization`, async (t) => {
    const { base, [role]: user, token } = await createFullTeam();
    isProblem(t, await user.api.send("DELETE", base), { status: 403, code: "role_required" });
    t.true(await isAcceptedByApi(service, token));
  });
}

test("deleting with POST requires the exact name, in JSON too", async (t) => {
  const { base, owner, token } = await createFullTeam();
  for (const name of ["team", "Team ", "", undefined]) {
    const reply = await owner.api.send("POST", `${base}/delete`, { json: { name } });
    isProblem(t, reply, { status: 422, code: "invalid_name" });
  }
  t.true(await isAcceptedByApi(service, token));
});
