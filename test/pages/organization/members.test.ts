import test from "ava";
import { ROLES, type Role } from "../../../resources/access/scopes.ts";
import { isMissing, isProblem } from "../../harness/clients/api.ts";
import { tokensFor } from "../../harness/clients/authorization.ts";
import {
  auditOf,
  browserOf,
  createColleague,
  createTeam,
  openAs,
  type Team,
} from "../../harness/clients/dashboard.ts";
import { isAcceptedByApi } from "../../harness/clients/oauth.ts";
import { follow, isMarked, textsOn } from "../../harness/clients/pages.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { atOnce } from "../../harness/database/storage.ts";
import { OPERATOR, startTestService } from "../../harness/service.ts";

export const databases = "all";

const service = await startTestService();

async function rolesIn(organizationId: string): Promise<Record<string, string>> {
  const members = await service.storage.members.list(organizationId);
  return Object.fromEntries(members.map(({ id, role }) => [id, role]));
}

const CHANGES: [actor: "owner" | "admin", target: Role, to: string, status: number][] = [
  ["owner", "member", "owner", 200],
  ["owner", "admin", "member", 200],
  ["admin", "member", "admin", 200],
  ["admin", "admin", "member", 200],
  ["admin", "member", "owner", 403],
  ["admin", "admin", "owner", 403],
  ["admin", "owner", "member", 403],
  ["owner", "owner", "admin", 409],
  ["owner", "member", "boss", 422],
];

test("a role is changed only by those who may grant it, and only to a role that exists", async (t) => {
  for (const [actor, target, to, status] of CHANGES) {
    const { organization, base, ...team } = await createTeam(service);
    const before = await rolesIn(organization.id);
    const path = `${base}/members/${team[target].id}`;
    const reply = await team[actor].api.send("PATCH", path, { json: { role: to } });
    t.is(reply.status, status, `${actor}, ${target} to ${to}: ${reply.text}`);
    const after = status === 200 ? { ...before, [team[target].id]: to } : before;
    t.deepEqual(await rolesIn(organization.id), after);
  }
});

test("a lost role loses its access immediately", async (t) => {
  const { base, owner, admin } = await createTeam(service);
  t.is((await admin.api.send("GET", `${base}/client`)).status, 200);
  await owner.api.send("PATCH", `${base}/members/${admin.id}`, { json: { role: "member" } });
  isProblem(t, await admin.api.send("GET", `${base}/client`), { status: 403, code: "role_required" });
  await owner.api.send("DELETE", `${base}/members/${admin.id}`);
  isMissing(t, await admin.api.send("GET", base));
});

test("the last owner can't leave or be removed, and reads why; an admin can't remove an owner", async (t) => {
  const { base, owner, admin, organization } = await createTeam(service);
  const before = await rolesIn(organization.id);
  const isLast = { status: 409, code: "last_owner" };
  for (const who of ["me", owner.id])
    isProblem(t, await owner.api.send("DELETE", `${base}/members/${who}`), isLast);
  const byAdmin = await admin.api.send("DELETE", `${base}/members/${owner.id}`);
  isProblem(t, byAdmin, { status: 403, code: "role_required" });
  const second = await createColleague(service, organization.id, "owner");
  const { browser, page } = await openAs(service, owner, `${base}/members/me/delete`);
  t.is((await second.api.send("DELETE", `${base}/members/me`)).status, 204);
  const late = await browser.press(page, "Leave organization");
  t.deepEqual([late.status, late.html.querySelector("main form")], [409, null]);
  t.regex(late.html.text, /must have an owner.*You’re the only owner/s);
  t.deepEqual(await rolesIn(organization.id), before);
});

test("if all owners leave or are demoted concurrently, one remains", async (t) => {
  for (const method of ["DELETE", "DELETE", "DELETE", "PATCH"]) {
    const count = method === "DELETE" ? 2 : 5;
    const { organization, base, owner } = await createTeam(service);
    const others = await atOnce(count - 1, () => createColleague(service, organization.id, "owner"));
    const replies = await Promise.all(
      [owner, ...others].map(({ api, id }) =>
        method === "DELETE"
          ? api.send(method, `${base}/members/me`)
          : api.send(method, `${base}/members/${id}`, { json: { role: "member" } }),
      ),
    );
    if (method === "DELETE") t.deepEqual(replies.map(({ status }) => status).sort(), [204, 409]);
    const owners = Object.values(await rolesIn(organization.id)).filter((role) => role === "owner");
    t.is(owners.length, 1);
  }
});

test("a removed member loses the apps in this organization only, also after coming back", async (t) => {
  const [app, elsewhere] = [await service.createOrganization(), await service.createOrganization()];
  const { organization, base, owner, member } = await createTeam(service);
  const { addMember } = service.storage.organizations;
  await addMember(elsewhere.id, member.id, "member", OPERATOR);
  const here = await tokensFor(service, app, member, { organizationId: organization.id });
  const there = await tokensFor(service, app, member, { organizationId: elsewhere.id });
  t.is((await owner.api.send("DELETE", `${base}/members/${member.id}`)).status, 204);
  t.false(await isAcceptedByApi(service, here.access_token));
  t.true(await isAcceptedByApi(service, there.access_token));
  await addMember(organization.id, member.id, "member", OPERATOR);
  t.false(await isAcceptedByApi(service, here.access_token));
});

test("an owner signs a member out of everything only if no other organization is affected", async (t) => {
  const { base, owner, member, admin } = await createTeam(service);
  const signOut = (id: string) =>
    owner.api.send<{ sessions_ended: boolean }>("POST", `${base}/members/${id}/sign-out`);
  const other = await service.createOrganization();
  await service.storage.organizations.addMember(other.id, admin.id, "member", OPERATOR);
  const { browser } = await browserOf(service, member);
  t.deepEqual((await signOut(member.id)).body, { sessions_ended: true });
  t.is((await member.api.get("/dashboard/me")).status, 401);
  t.regex((await browser.open(`${service.url}${base}`)).url, /\/auth\/login/);
  t.deepEqual((await signOut(admin.id)).body, { sessions_ended: false });
  t.is((await admin.api.get("/dashboard/me")).status, 200);
});

const SHARED = ["Remove member"];
const OF_OWNERS = ["Create reset link", "Sign out member", ...SHARED];
const OFFERED = {
  owner: {
    admin: ["Make owner", "Make member", ...OF_OWNERS],
    member: ["Make owner", "Make admin", ...OF_OWNERS],
  },
  admin: { member: ["Make admin", ...SHARED] },
  member: {},
};
for (const role of ["owner", "admin", "member"] as const)
  test(`the members page offers the ${role} only what the ${role} may do`, async (t) => {
    const team = await createTeam(service);
    const { html } = (await openAs(service, team[role], `${team.base}/members`)).page;
    const menus = html
      .querySelectorAll("main details.menu")
      .map((menu) => [
        ROLES.find((one) => menu.text.includes(team[one].username)),
        menu.querySelectorAll(".sheet button, .sheet a").map(({ childNodes: [label] }) => label?.text.trim()),
      ]);
    t.deepEqual(Object.fromEntries(menus), OFFERED[role]);
  });

test("a role is changed after a question, by its button, and a notice that only the page can write confirms it", async (t) => {
  const team = await createTeam(service);
  const { browser, page } = await openAs(service, team.owner, `${team.base}/members`);
  const { id, username } = team.member;
  const asked = await browser.open(`${page.url}/${id}/role?role=owner`);
  t.true(page.text.includes(`/${id}/role?role=owner`));
  t.is(asked.html.querySelector("h1")?.text, `Make ${username} an owner?`);
  const roles = async () =>
    textsOn(await browser.open(page.url), "[data-head=Role]")
      .slice(0, 3)
      .toSorted();
  t.deepEqual(await roles(), ["Admin", "Member", "Owner"]);
  const done = await browser.press(asked, `Make ${username} an owner`);
  t.is(textsOn(done, "[role=status]")[0], `${username} is now an owner.`);
  t.deepEqual(await roles(), ["Admin", "Owner", "Owner"]);
  for (const forged of [done.url.replace(username, "mallory"), `${page.url}?done=is-owner`])
    t.deepEqual(textsOn(await browser.open(forged), "[role=status]"), []);
});

type Created = { invitation: { id: string; created_by: string }; url: string };

async function invite({ base, owner }: Team, role: Role) {
  const { status, body } = await owner.api.send<Created>("POST", `${base}/invitations`, { json: { role } });
  if (status !== 201) throw new Error(`not invited: ${status}`);
  return { ...body, path: new URL(body.url).pathname };
}

test("an invited user joins with the role of the invitation", async (t) => {
  const team = await createTeam(service);
  for (const role of ROLES) {
    const { path, invitation } = await invite(team, role);
    t.is(invitation.created_by, team.owner.username);
    const guest = await createColleague(service, undefined);
    const seen = await guest.api.send<object>("GET", path);
    const { id, name } = team.organization;
    t.deepEqual(seen.body, { organization: { id, name }, role, invited_by: team.owner.username });
    t.is((await guest.api.send("POST", path)).status, 200);
    const { body } = await guest.api.get<{ organizations: object[] }>("/dashboard/me");
    t.like(body.organizations, [{ id, role }]);
    t.is(body.organizations.length, 1);
  }
});

test("a visitor who opens an invitation and has an account signs in and returns to it", async (t) => {
  const team = await createTeam(service);
  const { browser: owner, page: members } = await openAs(service, team.owner, `${team.base}/members`);
  const created = await owner.press(members, "Create invitation link", { role: "member" });
  const url = created.html.querySelector(".copyable code")?.text ?? "";
  t.true(url.startsWith(`${service.url}/dashboard/invitations/`), url);

  const guest = await service.createUser([]);
  const browser = new TestBrowser(service.url);
  const page = await browser.signIn(await follow(browser, await browser.open(url), "Sign in"), guest);
  t.is(page.url, url);
  t.regex(page.text, /invited you to join/);
  const joined = await browser.press(page, "Join Team");
  t.regex(joined.text, /You joined the organization/);
  t.is((await browser.open(url)).status, 403);
});

test("an admin can neither invite an owner nor revoke such an invitation, and the list has no links", async (t) => {
  const team = await createTeam(service);
  const { base, admin, owner } = team;
  const refused = await admin.api.send("POST", `${base}/invitations`, { json: { role: "owner" } });
  isProblem(t, refused, { status: 403, code: "role_required" });
  const { invitation, url } = await invite(team, "owner");
  const { text } = await owner.api.send("GET", `${base}/invitations`);
  t.true(text.includes(invitation.id));
  t.false(text.includes(String(url.split("/").at(-1))));
  const path = `${base}/invitations/${invitation.id}`;
  t.is((await admin.api.send("DELETE", path)).status, 404);
  t.is((await owner.api.send("DELETE", path)).status, 204);
});

test("an invitation has an optional label of at most 100 visible characters, in the list and the audit log", async (t) => {
  const { base, owner } = await createTeam(service);
  const path = `${base}/invitations`;
  const reversed = await owner.api.send("POST", path, { json: { label: "\u202Ereversed" } });
  isProblem(t, reversed, { status: 422, code: "invalid_label", fields: ["label"] });
  for (const json of [{}, { label: " " }])
    t.like((await owner.api.send<Created>("POST", path, { json })).body.invitation, { label: null });
  const { browser, page: members } = await openAs(service, owner, `${base}/members`);
  const long = { role: "admin", label: "a".repeat(101) };
  const rejected = await browser.press(members, "Create invitation link", long);
  isMarked(t, rejected, "label", /^Must be at most 100 characters long\.$/);
  const created = await browser.press(rejected, "Create invitation link", { label: " Mary <Jackson> " });
  t.regex(created.html.querySelector("main")?.text ?? "", /Send it to Mary <Jackson>\./);
  const listed = await browser.open(`${service.url}${base}/members`);
  t.true(listed.html.querySelectorAll("td[data-head=For]").some(({ text }) => text === "Mary <Jackson>"));
  t.regex(textsOn(listed, "button").join(), /Revoke invitation for Mary <Jackson> from \w+ \d+, \d{4}, /);
  const [entry] = await auditOf({ base, owner }, "&category=members");
  t.is(entry?.summary, "created an invitation for Mary <Jackson> with the role admin");
});
