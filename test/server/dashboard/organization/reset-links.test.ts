import test, { type ExecutionContext } from "ava";
import { OPERATOR } from "../../../../resources/events/types.ts";
import { browserOf, createColleague, createTeam } from "../../../harness/clients/dashboard.ts";
import { postForm, startTestService, type TestUser } from "../../../harness/service.ts";

const service = await startTestService();
const { organizations } = service.storage;
test.after.always(() => service.close());

type Team = Awaited<ReturnType<typeof createTeam>>;
type Entry = { actor: string; summary: string; data: Record<string, unknown> };

const FRESH = "an entirely new password";
const LIFETIME_MS = 60 * 60 * 1000;

/** A team whose owner has created a reset link for its member. */
async function withLink() {
  const team = await createTeam(service);
  return { ...team, url: await linkFor(team, team.member.id) };
}

async function linkFor({ base, owner }: Pick<Team, "base" | "owner">, userId: string): Promise<string> {
  const created = await owner.api.send<{ url: string }>("POST", `${base}/members/${userId}/reset-link`);
  if (created.status !== 200) throw new Error(`no link: ${created.text}`);
  return created.body.url;
}

async function operatorsLink(userId: string): Promise<string> {
  const token = await service.storage.accounts.createResetToken(userId, LIFETIME_MS);
  return `${service.url}/auth/reset-password/${token}`;
}

const setPassword = (url: string) => postForm(url, { password: FRESH });

async function signsIn({ username }: TestUser, password: string): Promise<boolean> {
  return (await postForm(`${service.url}/auth/login`, { username, password })).ok;
}

async function isInvalid(t: ExecutionContext, url: string, user: TestUser) {
  t.is((await fetch(url)).status, 404);
  const used = await setPassword(url);
  t.is(used.status, 404);
  t.regex(await used.text(), /This link is no longer valid/);
  t.false(await signsIn(user, FRESH));
  t.true(await signsIn(user, user.password));
}

async function createOwn({ member }: Pick<Team, "member">): Promise<void> {
  const { status } = await member.api.send("POST", "/dashboard/organizations", { json: { name: "Own" } });
  if (status >= 300) throw new Error(`not created: ${status}`);
}

async function join({ member, other, stranger }: Team): Promise<void> {
  const path = `/dashboard/organizations/${other.id}/invitations`;
  const { body } = await stranger.api.send<{ url: string }>("POST", path, { json: {} });
  const { status } = await member.api.send("POST", new URL(body.url).pathname);
  if (status !== 200) throw new Error(`not joined: ${status}`);
}

const leave = ({ base, member }: Team) => member.api.send("DELETE", `${base}/members/me`);
const add = (organizationId: string, userId: string) =>
  organizations.addMember(organizationId, userId, "owner", OPERATOR);
const makeOwner = ({ base, owner, admin }: Team, role: string) =>
  owner.api.send("PATCH", `${base}/members/${admin.id}`, { json: { role } });
const changeOwner = ({ base, owner, admin }: Team, role: string) =>
  admin.api.send("PATCH", `${base}/members/${owner.id}`, { json: { role } });

const ENDS: Record<string, (team: Team) => Promise<unknown>> = {
  "the user creates an organization": createOwn,
  "the user accepts an invitation to another organization": join,
  "the user is added to another organization": ({ other, member }) => add(other.id, member.id),
  "the user creates an organization and leaves the first one": async (team) => {
    await createOwn(team);
    await leave(team);
  },
  "the user leaves": leave,
  "the user leaves and comes back": async (team) => {
    await leave(team);
    await add(team.organization.id, team.member.id);
  },
  "the user joins another organization and leaves it": async (team) => {
    await join(team);
    await team.member.api.send("DELETE", `/dashboard/organizations/${team.other.id}/members/me`);
  },
  "the user is removed": ({ base, owner, member }) =>
    owner.api.send("DELETE", `${base}/members/${member.id}`),
  "the organization is deleted": ({ base, owner }) => owner.api.send("DELETE", base),
  "its creator loses the owner role": async (team) => {
    await makeOwner(team, "owner");
    await changeOwner(team, "admin");
  },
  "its creator loses the owner role and gets it back": async (team) => {
    await makeOwner(team, "owner");
    await changeOwner(team, "member");
    await changeOwner(team, "owner");
  },
  "its creator leaves": async (team) => {
    await makeOwner(team, "owner");
    await team.owner.api.send("DELETE", `${team.base}/members/me`);
  },
  "its creator is removed": async (team) => {
    await makeOwner(team, "owner");
    await team.admin.api.send("DELETE", `${team.base}/members/${team.owner.id}`);
  },
  "the account of its creator is deleted": async (team) => {
    await makeOwner(team, "owner");
    const { password } = team.owner;
    const { status, text } = await team.owner.api.send("POST", "/dashboard/account/delete", {
      json: { password },
    });
    if (status >= 300) throw new Error(`not deleted: ${text}`);
  },
};

for (const [what, change] of Object.entries(ENDS)) {
  test(`a reset link that an owner created is no longer valid after ${what}`, async (t) => {
    const team = await withLink();
    t.is((await fetch(team.url)).status, 200);
    await change(team);
    await isInvalid(t, team.url, team.member);
  });
}

test("a link is no longer valid when its creator loses another organization of the user", async (t) => {
  const team = await createTeam(service);
  const { other, owner, member, stranger } = team;
  await add(other.id, owner.id);
  await add(other.id, member.id);
  const url = await linkFor(team, member.id);
  t.is((await fetch(url)).status, 200);
  const path = `/dashboard/organizations/${other.id}/members/${owner.id}`;
  t.is((await stranger.api.send("PATCH", path, { json: { role: "admin" } })).status, 200);
  await isInvalid(t, url, member);
});

test("a reset link stays valid while its creator owns every organization of the user", async (t) => {
  const { base, organization, other, owner, admin, member, url } = await withLink();
  await createColleague(service, organization.id);
  await owner.api.send("DELETE", `${base}/members/${admin.id}`);
  await owner.api.send("PATCH", `${base}/members/${member.id}`, { json: { role: "admin" } });
  await add(other.id, owner.id);
  await owner.api.send("DELETE", `/dashboard/organizations/${other.id}/members/me`);
  t.is((await fetch(url)).status, 200);
  t.is((await setPassword(url)).status, 200);
  t.true(await signsIn(member, FRESH));
  t.is((await setPassword(url)).status, 404);
});

test("a reset link of the operator does not depend on organizations", async (t) => {
  const team = await createTeam(service);
  const url = await operatorsLink(team.member.id);
  await createOwn(team);
  await leave(team);
  t.is((await fetch(url)).status, 200);
  t.is((await setPassword(url)).status, 200);
  t.true(await signsIn(team.member, FRESH));
});

test("the page of a link that is no longer valid says why and what to do", async (t) => {
  const team = await withLink();
  await createOwn(team);
  const { browser } = await browserOf(service, team.admin);
  const page = await browser.open(team.url);
  t.is(page.status, 404);
  t.is(page.html.querySelector("h1")?.text, "This link is no longer valid");
  t.is(
    page.html.querySelector("p:not(.brand)")?.text,
    "Reset links work once and expire after one hour, or earlier if the account's organizations change. Request a new link.",
  );
});

test("the audit log of every organization of the user names who created the link", async (t) => {
  const team = await createTeam(service);
  const { other, owner, member } = team;
  await add(other.id, owner.id);
  await add(other.id, member.id);
  t.is((await setPassword(await linkFor(team, member.id))).status, 200);
  for (const { id } of [team.organization, other]) {
    const path = `/dashboard/organizations/${id}/audit?type=member.password_changed`;
    const { body } = await owner.api.send<{ data: Entry[] }>("GET", path);
    t.is(body.data.length, 1);
    const [entry] = body.data;
    t.deepEqual(entry?.data, { user_id: member.id, reset_link_created_by: owner.id });
    t.is(
      entry?.summary,
      `set a new password for ${member.username}, using a reset link created by ${owner.username}`,
    );
    const csv = await owner.api.send("GET", `${path}&format=csv`);
    t.true(csv.text.includes(`using a reset link created by ${owner.username}`));
    t.true(csv.text.includes("reset_link_created_by"));
  }
});

test("the audit log says that the operator created the link", async (t) => {
  const { base, owner, member } = await createTeam(service);
  t.is((await setPassword(await operatorsLink(member.id))).status, 200);
  const path = `${base}/audit?type=member.password_changed`;
  const { body } = await owner.api.send<{ data: Entry[] }>("GET", path);
  t.is(body.data[0]?.data.reset_link_created_by, "operator");
  t.regex(body.data[0]?.summary ?? "", /using a reset link created by the operator$/);
});

test("the members page says why a member with another organization gets no link", async (t) => {
  const team = await createTeam(service);
  await createOwn(team);
  const { browser } = await browserOf(service, team.owner);
  const page = await browser.open(`${service.url}${team.base}/members`);
  const refused = await browser.press(page, `Create reset link for ${team.member.username}`);
  t.is(refused.status, 403);
  t.is(refused.html.querySelector("h1")?.text, "Members");
  t.regex(
    refused.html.querySelector("[role=alert]")?.text ?? "",
    /belongs to an organization that you don't own/,
  );
});
