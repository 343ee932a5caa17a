import test from "ava";
import { OPERATOR } from "../../../resources/events.ts";
import { isProblem } from "../../harness/api.ts";
import { browserOf, createColleague, createTeam } from "../../harness/dashboard.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());

test("a person makes an organization and owns it", async (t) => {
  const { api } = await createColleague(service, undefined);
  const made = await api.send<{ organization: { id: string } }>("POST", "/dashboard/organizations", {
    json: { name: "  Acme & Söhne " },
  });
  t.is(made.status, 201);
  const { id } = made.body.organization;
  t.deepEqual(made.body, { organization: { id, name: "Acme & Söhne", plan: "free" } } as never);
  const { body } = await api.send<{ organizations: object[] }>("GET", "/dashboard/me");
  t.deepEqual(body.organizations, [{ id, name: "Acme & Söhne", plan: "free", role: "owner" }]);
});

const WRONG_NAMES: [what: string, json: object, code: string, fields: string[]][] = [
  ["no name", {}, "invalid_name", ["name"]],
  ["an empty name", { name: "" }, "invalid_name", ["name"]],
  ["a name of spaces", { name: "   " }, "invalid_name", ["name"]],
  ["a name that is too long", { name: "a".repeat(101) }, "invalid_name", ["name"]],
  ["a name that is no text", { name: 7 }, "invalid_name", ["name"]],
  ["a plan of its own", { name: "Acme", plan: "premium" }, "unknown_field", ["plan"]],
  ["an id of its own", { name: "Acme", id: "org_1" }, "unknown_field", ["id"]],
];

for (const [what, json, code, fields] of WRONG_NAMES) {
  test(`sec 92: an organization with ${what} is refused`, async (t) => {
    const { api } = await createColleague(service, undefined);
    const reply = await api.send("POST", "/dashboard/organizations", { json });
    isProblem(t, reply, { status: 422, code, fields });
  });
}

test("a person makes, renames and deletes an organization in the browser", async (t) => {
  const user = await service.createUser([]);
  const { person, page: welcome } = await browserOf(service, user);
  t.regex(welcome.text, /Create your first organization/);
  const made = await person.press(welcome, "Create organization", { name: "First" });
  t.is(made.status, 200);
  t.is(made.html.querySelector("h1")?.text, "First");
  t.regex(made.text, /The organization was made/);

  const refused = await person.press(made, "Rename", { name: " " });
  t.is(refused.status, 422);
  t.truthy(refused.html.querySelector("[role=alert]"));
  const renamed = await person.press(made, "Rename", { name: "<b>Second</b>" });
  t.is(renamed.html.querySelector("h1")?.text, "<b>Second</b>");
  t.false(renamed.text.includes("<b>Second"));

  const id = new URL(renamed.url).pathname.split("/").at(-1);
  const deletion = await person.open(`${service.url}/dashboard/organizations/${id}/delete`);
  t.is((await person.press(deletion, "Delete organization", { name: "second" })).status, 422);
  const end = await person.press(deletion, "Delete organization", { name: "<b>Second</b>" });
  t.is(end.status, 200);
  t.regex(end.text, /Create your first organization/);
});

test("the dashboard opens the only organization, lets choose among several, and remembers the last one", async (t) => {
  const user = await service.createUser([(await service.createOrganization("One")).id]);
  const { person, page: only } = await browserOf(service, user);
  t.is(only.html.querySelector("h1")?.text, "One");
  const other = await service.createOrganization("Two");
  await service.storage.organizations.addMember(other.id, user.id, "member", OPERATOR);
  t.is((await person.open(`${service.url}/dashboard`)).html.querySelector("h1")?.text, "One");

  const { person: elsewhere, page: choice } = await browserOf(service, user);
  t.is(choice.html.querySelector("h1")?.text, "Your organizations");
  const names = choice.html.querySelectorAll("main h2 a");
  t.deepEqual(names.map(({ text }) => text).sort(), ["One", "Two"]);
  const chosen = names.find(({ text }) => text === "Two")?.attributes.href;
  await elsewhere.open(service.url + chosen);
  t.is((await elsewhere.open(`${service.url}/dashboard`)).html.querySelector("h1")?.text, "Two");
});

test("an organization is shown with its limits and what it uses of them, and is renamed", async (t) => {
  const { base, owner, member, organization } = await createTeam(service);
  await member.api.send("POST", `${base}/links`, { json: { url: "https://example.com/" } });
  const { body } = await member.api.send<{ organization: object }>("GET", base);
  t.deepEqual(body.organization, {
    ...organization,
    role: "member",
    limits: { requests_per_minute: 600, links_per_bulk: 100, webhooks: 20 },
    usage: { links: 1, webhooks: 0 },
  });
  const renamed = await owner.api.send<object>("PATCH", base, { json: { name: "New name" } });
  t.deepEqual(renamed.body, { organization: { ...organization, name: "New name" } });
  for (const json of [{ name: " " }, { name: "a".repeat(101) }, { name: "New", plan: "premium" }]) {
    t.is((await owner.api.send("PATCH", base, { json })).status, 422);
  }
});

test("a person switches between organizations, and comes back to the one that was looked at last", async (t) => {
  const names = ["First", "Second", "Third"];
  const user = await service.createUser([]);
  for (const name of names) {
    await service.storage.organizations.create(name, "free", { actor: user.id }, user.id);
  }
  const { person, page } = await browserOf(service, user);
  const menu = page.html.querySelector("header .sheet");
  t.deepEqual(
    menu?.querySelectorAll("a").map(({ text }) => text),
    [...names, "New organization"],
  );
  for (const name of ["Third", "Second"]) {
    const href = menu?.querySelectorAll("a").find(({ text }) => text === name)?.attributes.href;
    await person.open(service.url + href);
    const home = await person.open(`${service.url}/dashboard`);
    t.is(home.html.querySelector("h1")?.text, name);
    t.is(home.html.querySelector("header [aria-current]")?.text, name);
  }
});

test("a member leaves in the browser, and is outside at once", async (t) => {
  const { base, member } = await createTeam(service);
  const { person } = await browserOf(service, member);
  const left = await person.press(await person.open(service.url + base), "Leave organization");
  t.regex(left.text, /Create your first organization/);
  t.is((await person.open(service.url + base)).status, 404);
});

test("a member is offered nothing that only managers may do", async (t) => {
  const { base, member } = await createTeam(service);
  const { person, page } = await browserOf(service, member);
  const sections = page.html.querySelectorAll(".sections a").map(({ text }) => text);
  t.deepEqual(sections, ["Overview", "Links", "Apps", "Members", "Plan"]);
  for (const path of ["", "/members", "/plan"]) {
    const { html } = await person.open(service.url + base + path);
    const forms = html.querySelectorAll("main form").map(({ attributes }) => attributes.action);
    t.deepEqual(forms, path ? [] : [`${base}/members/me/delete`], path);
  }
});
