import test from "ava";
import { OPERATOR } from "../../../resources/events.ts";
import { isMissing, isProblem } from "../../harness/api.ts";
import { browserOf, createColleague, createTeam } from "../../harness/dashboard.ts";
import { tokensFor } from "../../harness/flow.ts";
import { opensApi } from "../../harness/oauth.ts";
import { startTestService } from "../../harness/service.ts";
import { atOnce } from "../../harness/storage.ts";

const service = await startTestService();
test.after.always(() => service.close());

type Members = { data: { id: string; username: string; role: string; joined_at: string }[] };

async function rolesIn(organizationId: string): Promise<Record<string, string>> {
  const members = await service.storage.members.list(organizationId);
  return Object.fromEntries(members.map(({ id, role }) => [id, role]));
}

test("members are listed with their roles", async (t) => {
  const { base, owner, admin, member } = await createTeam(service);
  const { body } = await member.api.send<Members>("GET", `${base}/members`);
  t.deepEqual(
    new Map(body.data.map(({ id, role }) => [id, role])),
    new Map([
      [owner.id, "owner"],
      [admin.id, "admin"],
      [member.id, "member"],
    ]),
  );
  t.true(body.data.every(({ joined_at }) => !Number.isNaN(Date.parse(joined_at))));
});

const CHANGES: [by: "owner" | "admin", of: "owner" | "admin" | "member", to: string, status: number][] = [
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

for (const [by, of, to, status] of CHANGES) {
  test(`an ${by} who makes the ${of} ${to} is answered ${status}`, async (t) => {
    const team = await createTeam(service);
    const before = await rolesIn(team.organization.id);
    const reply = await team[by].api.send("PATCH", `${team.base}/members/${team[of].id}`, {
      json: { role: to },
    });
    t.is(reply.status, status, reply.text);
    const after = status === 200 ? { ...before, [team[of].id]: to } : before;
    t.deepEqual(await rolesIn(team.organization.id), after);
  });
}

test("sec 93: a role that was taken away opens nothing at once", async (t) => {
  const { base, owner, admin } = await createTeam(service);
  t.is((await admin.api.send("GET", `${base}/client`)).status, 200);
  await owner.api.send("PATCH", `${base}/members/${admin.id}`, { json: { role: "member" } });
  isProblem(t, await admin.api.send("GET", `${base}/client`), { status: 403, code: "role_required" });
  await owner.api.send("DELETE", `${base}/members/${admin.id}`);
  isMissing(t, await admin.api.send("GET", base));
});

test("an admin does not remove an owner", async (t) => {
  const { base, owner, admin } = await createTeam(service);
  const reply = await admin.api.send("DELETE", `${base}/members/${owner.id}`);
  isProblem(t, reply, { status: 403, code: "role_required" });
});

test("the last owner neither leaves, nor is removed, nor gives the role away", async (t) => {
  const { base, owner, organization } = await createTeam(service);
  const before = await rolesIn(organization.id);
  const refusals = [
    await owner.api.send("DELETE", `${base}/members/me`),
    await owner.api.send("DELETE", `${base}/members/${owner.id}`),
    await owner.api.send("PATCH", `${base}/members/${owner.id}`, { json: { role: "admin" } }),
  ];
  for (const reply of refusals) isProblem(t, reply, { status: 409, code: "last_owner" });
  t.deepEqual(await rolesIn(organization.id), before);
});

test("of two owners who leave at once, one stays", async (t) => {
  for (let round = 0; round < 5; round++) {
    const { organization, base, owner } = await createTeam(service);
    const second = await createColleague(service, organization.id, "owner");
    const replies = await Promise.all(
      [owner, second].map(({ api }) => api.send("DELETE", `${base}/members/me`)),
    );
    t.deepEqual(replies.map(({ status }) => status).sort(), [204, 409]);
    const owners = Object.values(await rolesIn(organization.id)).filter((role) => role === "owner");
    t.is(owners.length, 1);
  }
});

test("of many owners who are made members at once, one stays", async (t) => {
  const { organization, base, owner } = await createTeam(service);
  const others = await atOnce(4, () => createColleague(service, organization.id, "owner"));
  const everybody = [owner, ...others];
  await Promise.all(
    everybody.map(({ api, id }) => api.send("PATCH", `${base}/members/${id}`, { json: { role: "member" } })),
  );
  const owners = Object.values(await rolesIn(organization.id)).filter((role) => role === "owner");
  t.is(owners.length, 1);
});

test("sec 93: whoever leaves or is removed takes along what apps may do in that name, here alone", async (t) => {
  const app = await service.createOrganization();
  for (const goes of ["leaves", "is removed"]) {
    const { organization, base, owner, member } = await createTeam(service);
    const elsewhere = await service.createOrganization();
    await service.storage.organizations.addMember(elsewhere.id, member.id, "member", OPERATOR);
    const here = await tokensFor(service, app, member, { organizationId: organization.id });
    const there = await tokensFor(service, app, member, { organizationId: elsewhere.id });
    const reply =
      goes === "leaves"
        ? await member.api.send("DELETE", `${base}/members/me`)
        : await owner.api.send("DELETE", `${base}/members/${member.id}`);
    t.is(reply.status, 204);
    t.false(await opensApi(service, here.access_token), goes);
    t.true(await opensApi(service, there.access_token), goes);
    await service.storage.organizations.addMember(organization.id, member.id, "member", OPERATOR);
    t.false(await opensApi(service, here.access_token), "not even after coming back");
  }
});

test("sec 112: an owner makes a password link for somebody who belongs nowhere else", async (t) => {
  const { base, owner, member } = await createTeam(service);
  const made = await owner.api.send<{ url: string }>("POST", `${base}/members/${member.id}/reset-link`);
  t.is(made.status, 200);
  const page = await fetch(made.body.url, { headers: { accept: "text/html" } });
  t.regex(await page.text(), new RegExp(member.username));
});

test("no password link for somebody who also belongs to an organization of others", async (t) => {
  const { base, owner, member, other } = await createTeam(service);
  await service.storage.organizations.addMember(other.id, member.id, "member", OPERATOR);
  const path = `${base}/members/${member.id}/reset-link`;
  isProblem(t, await owner.api.send("POST", path), { status: 403, code: "not_yours_alone" });
  await service.storage.organizations.addMember(other.id, owner.id, "admin", OPERATOR);
  isProblem(t, await owner.api.send("POST", path), { status: 403, code: "not_yours_alone" });
});

test("sec 113: no password link for somebody who signs in elsewhere", async (t) => {
  const { base, owner, organization } = await createTeam(service);
  const external = await service.storage.accounts.create("external", null, OPERATOR, {
    organizationId: organization.id,
    role: "member",
  });
  const reply = await owner.api.send("POST", `${base}/members/${external?.id}/reset-link`);
  isProblem(t, reply, { status: 409, code: "no_password" });
});

test("members are managed in the browser", async (t) => {
  const { base, owner, member, organization } = await createTeam(service);
  const { person } = await browserOf(service, owner);
  const page = await person.open(`${service.url}${base}/members`);
  t.is(page.status, 200);
  const action = `${base}/members/${member.id}`;
  const form = page.html
    .querySelectorAll("form")
    .find(
      (one) =>
        one.attributes.action === action && one.querySelector("[name=role]")?.attributes.value === "admin",
    );
  const changed = await person.submit(page, {}, form);
  t.regex(changed.text, /The role was changed/);
  t.is((await rolesIn(organization.id))[member.id], "admin");
  const overview = await person.open(`${service.url}${base}`);
  const refused = await person.press(overview, "Leave organization");
  t.is(refused.status, 409);
  t.regex(refused.text, /needs an owner/);
});
