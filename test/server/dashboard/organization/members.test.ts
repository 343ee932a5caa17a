import test from "ava";
import { OPERATOR } from "../../../../resources/events/types.ts";
import { isMissing, isProblem } from "../../../harness/clients/api.ts";
import { browserOf, createColleague, createTeam } from "../../../harness/clients/dashboard.ts";
import { tokensFor } from "../../../harness/clients/flow.ts";
import { isAcceptedByApi } from "../../../harness/clients/oauth.ts";
import { atOnce } from "../../../harness/database/storage.ts";
import { startTestService } from "../../../harness/service.ts";

export const databases = "all";

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

const CHANGES: [
  actor: "owner" | "admin",
  target: "owner" | "admin" | "member",
  to: string,
  status: number,
][] = [
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

for (const [actor, target, to, status] of CHANGES) {
  test(`changing the role of the ${target} to ${to} as ${actor} returns ${status}`, async (t) => {
    const team = await createTeam(service);
    const before = await rolesIn(team.organization.id);
    const reply = await team[actor].api.send("PATCH", `${team.base}/members/${team[target].id}`, {
      json: { role: to },
    });
    t.is(reply.status, status, reply.text);
    const after = status === 200 ? { ...before, [team[target].id]: to } : before;
    t.deepEqual(await rolesIn(team.organization.id), after);
  });
}

test("a lost role loses its access immediately", async (t) => {
  const { base, owner, admin } = await createTeam(service);
  t.is((await admin.api.send("GET", `${base}/client`)).status, 200);
  await owner.api.send("PATCH", `${base}/members/${admin.id}`, { json: { role: "member" } });
  isProblem(t, await admin.api.send("GET", `${base}/client`), { status: 403, code: "role_required" });
  await owner.api.send("DELETE", `${base}/members/${admin.id}`);
  isMissing(t, await admin.api.send("GET", base));
});

test("an admin can't remove an owner", async (t) => {
  const { base, owner, admin } = await createTeam(service);
  const reply = await admin.api.send("DELETE", `${base}/members/${owner.id}`);
  isProblem(t, reply, { status: 403, code: "role_required" });
});

test("the last owner can't leave, be removed or change role", async (t) => {
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

test("if two owners leave concurrently, one remains", async (t) => {
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

test("if all owners are demoted concurrently, one remains", async (t) => {
  const { organization, base, owner } = await createTeam(service);
  const others = await atOnce(4, () => createColleague(service, organization.id, "owner"));
  const owners = [owner, ...others];
  await Promise.all(
    owners.map(({ api, id }) => api.send("PATCH", `${base}/members/${id}`, { json: { role: "member" } })),
  );
  const remaining = Object.values(await rolesIn(organization.id)).filter((role) => role === "owner");
  t.is(remaining.length, 1);
});

test("leaving or being removed revokes the member's apps in this organization only", async (t) => {
  const app = await service.createOrganization();
  for (const how of ["leaves", "is removed"]) {
    const { organization, base, owner, member } = await createTeam(service);
    const elsewhere = await service.createOrganization();
    await service.storage.organizations.addMember(elsewhere.id, member.id, "member", OPERATOR);
    const here = await tokensFor(service, app, member, { organizationId: organization.id });
    const there = await tokensFor(service, app, member, { organizationId: elsewhere.id });
    const reply =
      how === "leaves"
        ? await member.api.send("DELETE", `${base}/members/me`)
        : await owner.api.send("DELETE", `${base}/members/${member.id}`);
    t.is(reply.status, 204);
    t.false(await isAcceptedByApi(service, here.access_token), how);
    t.true(await isAcceptedByApi(service, there.access_token), how);
    await service.storage.organizations.addMember(organization.id, member.id, "member", OPERATOR);
    t.false(await isAcceptedByApi(service, here.access_token), "not even after rejoining");
  }
});

test("an owner can create a reset link for a user without other organizations", async (t) => {
  const { base, owner, member } = await createTeam(service);
  const created = await owner.api.send<{ url: string }>("POST", `${base}/members/${member.id}/reset-link`);
  t.is(created.status, 200);
  const page = await fetch(created.body.url, { headers: { accept: "text/html" } });
  t.regex(await page.text(), new RegExp(member.username));
});

test("a reset link is refused for a user of an organization that the owner doesn't own", async (t) => {
  const { base, owner, member, other } = await createTeam(service);
  await service.storage.organizations.addMember(other.id, member.id, "member", OPERATOR);
  const path = `${base}/members/${member.id}/reset-link`;
  isProblem(t, await owner.api.send("POST", path), { status: 403, code: "shared_account" });
  await service.storage.organizations.addMember(other.id, owner.id, "admin", OPERATOR);
  isProblem(t, await owner.api.send("POST", path), { status: 403, code: "shared_account" });
});

test("a reset link is refused for a user without a password", async (t) => {
  const { base, owner, organization } = await createTeam(service);
  const external = await service.storage.accounts.create("external", null, OPERATOR, {
    organizationId: organization.id,
    role: "member",
  });
  const reply = await owner.api.send("POST", `${base}/members/${external?.id}/reset-link`);
  isProblem(t, reply, { status: 409, code: "no_password" });
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
for (const role of ["owner", "admin", "member"] as const) {
  test(`the members page offers the ${role} only what the ${role} may do`, async (t) => {
    const team = await createTeam(service);
    const { browser } = await browserOf(service, team[role]);
    const { html } = await browser.open(`${service.url}${team.base}/members`);
    const offered: Record<string, string[]> = {};
    for (const menu of html.querySelectorAll("main details.menu .sheet")) {
      for (const control of menu.querySelectorAll("button, a")) {
        const [, of] = (["owner", "admin", "member"] as const)
          .map((one) => [team[one].username, one] as const)
          .find(([username]) => control.text.includes(username)) ?? ["", ""];
        control.querySelector(".visually-hidden")?.remove();
        offered[of] = [...(offered[of] ?? []), control.text.trim()];
      }
    }
    t.deepEqual(offered, OFFERED[role]);
  });
}

test("members can be managed in a browser", async (t) => {
  const { base, owner, member, organization } = await createTeam(service);
  const { browser } = await browserOf(service, owner);
  const page = await browser.open(`${service.url}${base}/members`);
  t.is(page.status, 200);
  const action = `${base}/members/${member.id}`;
  const form = page.html
    .querySelectorAll("form")
    .find(
      (one) =>
        one.attributes.action === action && one.querySelector("[name=role]")?.attributes.value === "admin",
    );
  const changed = await browser.submit(page, {}, form);
  t.regex(changed.text, /Role changed/);
  t.is((await rolesIn(organization.id))[member.id], "admin");
});

test("a form for leaving that became invalid is shown again with the reason", async (t) => {
  const { base, owner, organization } = await createTeam(service);
  const second = await createColleague(service, organization.id, "owner");
  const { browser } = await browserOf(service, owner);
  const form = await browser.open(`${service.url}${base}/members/me/delete`);
  t.is((await second.api.send("DELETE", `${base}/members/me`)).status, 204);
  const refused = await browser.press(form, "Leave organization");
  t.is(refused.status, 409);
  t.regex(refused.text, /must have an owner/);
  t.is((await browser.open(refused.url)).status, 200, "the page can be reloaded");
});

test("the members page says what apps may do for each role", async (t) => {
  const { base, member } = await createTeam(service);
  const { browser } = await browserOf(service, member);
  const page = await browser.open(`${service.url}${base}/members`);
  const rows = page.html.querySelectorAll("table").at(-1)?.querySelectorAll("tbody tr") ?? [];
  const shown = rows.map((row) => row.querySelectorAll("td").map(({ text }) => text));
  t.deepEqual(shown, [
    ["Owner", "links:write, webhooks:write"],
    ["Admin", "links:write, webhooks:write"],
    ["Member", "links:write"],
  ]);
});
