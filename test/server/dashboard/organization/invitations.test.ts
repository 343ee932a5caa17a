import test from "ava";
import { ROLES } from "../../../../resources/access/scopes.ts";
import { OPERATOR } from "../../../../resources/events/types.ts";
import { isProblem } from "../../../harness/clients/api.ts";
import {
  browserOf,
  type Colleague,
  createColleague,
  createTeam,
} from "../../../harness/clients/dashboard.ts";
import { TestBrowser } from "../../../harness/clients/test-browser.ts";
import { atOnce } from "../../../harness/database/storage.ts";
import { startTestService } from "../../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());

type Created = {
  invitation: { id: string; role: string; created_by: string; expires_at: string };
  url: string;
};
type Team = Awaited<ReturnType<typeof createTeam>>;

async function invite({ base }: Team, inviter: Colleague, role = "member") {
  const { status, body } = await inviter.api.send<Created>("POST", `${base}/invitations`, { json: { role } });
  if (status !== 201) throw new Error(`not invited: ${status}`);
  return { ...body, path: new URL(body.url).pathname };
}

test("an invited user joins with the role of the invitation", async (t) => {
  const team = await createTeam(service);
  for (const role of ["member", "admin", "owner"]) {
    const { path, invitation } = await invite(team, team.owner, role);
    t.is(invitation.created_by, team.owner.username);
    const guest = await createColleague(service, undefined);
    const seen = await guest.api.send<object>("GET", path);
    const { id, name } = team.organization;
    t.deepEqual(seen.body, { organization: { id, name }, role, invited_by: team.owner.username });
    t.is((await guest.api.send("POST", path)).status, 200);
    const { body } = await guest.api.send<{ organizations: { id: string; role: string }[] }>(
      "GET",
      "/dashboard/me",
    );
    t.deepEqual(
      body.organizations.map((one) => [one.id, one.role]),
      [[id, role]],
    );
  }
});

test("an admin can't invite an owner", async (t) => {
  const { base, admin } = await createTeam(service);
  const reply = await admin.api.send("POST", `${base}/invitations`, { json: { role: "owner" } });
  isProblem(t, reply, { status: 403, code: "role_required" });
});

test("concurrent acceptances of one invitation succeed exactly once", async (t) => {
  const team = await createTeam(service);
  const guests = await atOnce(10, () => createColleague(service, undefined));
  const { path } = await invite(team, team.owner);
  const replies = await Promise.all(guests.map(({ api }) => api.send("POST", path)));
  t.is(replies.filter(({ status }) => status === 200).length, 1);
  for (const reply of replies.filter(({ status }) => status !== 200)) {
    isProblem(t, reply, { status: 403, code: "invitation_invalid" });
  }
  t.is((await service.storage.members.list(team.organization.id)).length, 4);
});

test("concurrent acceptances by one user add one membership", async (t) => {
  const team = await createTeam(service);
  const guest = await createColleague(service, undefined);
  const [first, second] = [await invite(team, team.owner), await invite(team, team.owner)];
  const replies = await atOnce(6, (index) => guest.api.send("POST", (index % 2 ? first : second).path));
  t.true(replies.some(({ status }) => status === 200));
  t.true(replies.every(({ status }) => status === 200 || status === 403));
  t.is((await service.storage.members.list(team.organization.id)).length, 4);
});

test("a member who opens an invitation doesn't use it up", async (t) => {
  const team = await createTeam(service);
  const { path } = await invite(team, team.owner, "owner");
  t.is((await team.member.api.send("POST", path)).status, 200);
  const roles = (await service.storage.members.list(team.organization.id)).map(({ role }) => role);
  t.deepEqual(roles.sort(), ["admin", "member", "owner"]);
  const guest = await createColleague(service, undefined);
  t.is((await guest.api.send("POST", path)).status, 200);
});

const ENDS: Record<string, (team: Team, invited: Awaited<ReturnType<typeof invite>>) => Promise<unknown>> = {
  "that was revoked": (team, { invitation }) =>
    team.admin.api.send("DELETE", `${team.base}/invitations/${invitation.id}`),
  "of a deleted organization": (team) => service.storage.organizations.remove(team.organization.id, OPERATOR),
  "of a removed admin": (team) => team.owner.api.send("DELETE", `${team.base}/members/${team.admin.id}`),
  "of an admin who becomes a member": (team) =>
    team.owner.api.send("PATCH", `${team.base}/members/${team.admin.id}`, { json: { role: "member" } }),
};

for (const [what, end] of Object.entries(ENDS)) {
  test(`an invitation ${what} is rejected`, async (t) => {
    const team = await createTeam(service);
    const invited = await invite(team, team.admin);
    const guest = await createColleague(service, undefined);
    t.is((await guest.api.send("GET", invited.path)).status, 200);
    await end(team, invited);
    for (const method of ["GET", "POST"]) {
      isProblem(t, await guest.api.send(method, invited.path), { status: 403, code: "invitation_invalid" });
    }
  });
}

const setRole = ({ base, owner }: Team, { id }: Colleague, role: string) =>
  owner.api.send("PATCH", `${base}/members/${id}`, { json: { role } });

const VALID_AFTER_DEMOTION: [to: string, stay: string[]][] = [
  ["admin", ["admin", "member"]],
  ["member", []],
];

for (const [to, stay] of VALID_AFTER_DEMOTION) {
  test(`invitations of an owner who becomes ${to} stay valid only for the roles that this role can grant`, async (t) => {
    const team = await createTeam(service);
    const second = await createColleague(service, team.organization.id, "owner");
    const invited = [];
    for (const role of ROLES) invited.push(await invite(team, second, role));
    t.is((await setRole(team, second, to)).status, 200);
    for (const { path, invitation } of invited) {
      const guest = await createColleague(service, undefined);
      const stays = stay.includes(invitation.role);
      for (const method of ["GET", "POST"]) {
        const reply = await guest.api.send(method, path);
        if (stays) t.is(reply.status, 200, invitation.role);
        else isProblem(t, reply, { status: 403, code: "invitation_invalid" });
      }
    }
    const members = await service.storage.members.list(team.organization.id);
    t.is(members.filter(({ role }) => role === "owner").length, 1);
    const { body } = await team.owner.api.send<{ data: { data: { role: string } }[] }>(
      "GET",
      `${team.base}/audit?type=invitation.revoked`,
    );
    t.deepEqual(
      body.data.map(({ data }) => data.role).sort(),
      ROLES.filter((role) => !stay.includes(role)).sort(),
    );
  });
}

test("invitations stay valid when another member's role changes, and when their creator gains a role", async (t) => {
  const team = await createTeam(service);
  const second = await createColleague(service, team.organization.id, "owner");
  const invited = [await invite(team, team.owner, "owner"), await invite(team, team.admin, "admin")];
  await setRole(team, second, "member");
  await setRole(team, team.admin, "owner");
  for (const { path } of invited) {
    const guest = await createColleague(service, undefined);
    t.is((await guest.api.send("POST", path)).status, 200);
  }
});

// The invitation is created by a request whose role check preceded the role change.
const LATE: Record<string, (team: Team) => Promise<unknown>> = {
  "an admin": (team) => setRole(team, team.admin, "admin"),
  "a member": (team) => setRole(team, team.admin, "member"),
  "not a member": (team) => team.owner.api.send("DELETE", `${team.base}/members/${team.admin.id}`),
};

for (const [what, change] of Object.entries(LATE)) {
  test(`an owner invitation is rejected if its creator is now ${what}`, async (t) => {
    const team = await createTeam(service);
    const { id } = team.organization;
    await change(team);
    const actor = { id: team.admin.id };
    const { token } = await service.storage.invitations.create({
      organizationId: id,
      role: "owner",
      lifetimeMs: 60_000,
      actor,
    });
    const guest = await createColleague(service, undefined);
    for (const method of ["GET", "POST"]) {
      const reply = await guest.api.send(method, `/dashboard/invitations/${token}`);
      isProblem(t, reply, { status: 403, code: "invitation_invalid" });
    }
    t.is((await service.storage.members.list(id)).filter(({ role }) => role === "owner").length, 1);
  });
}

test("an operator's invitation doesn't depend on members", async (t) => {
  const { organization } = await createTeam(service);
  const { token } = await service.storage.invitations.create({
    organizationId: organization.id,
    role: "owner",
    lifetimeMs: 60_000,
    actor: OPERATOR,
  });
  const guest = await createColleague(service, undefined);
  t.is((await guest.api.send("GET", `/dashboard/invitations/${token}`)).status, 200);
  t.is((await guest.api.send("POST", `/dashboard/invitations/${token}`)).status, 200);
});

test("an admin can't revoke an owner invitation", async (t) => {
  const team = await createTeam(service);
  const { invitation } = await invite(team, team.owner, "owner");
  const path = `${team.base}/invitations/${invitation.id}`;
  t.is((await team.admin.api.send("DELETE", path)).status, 404);
  t.is((await team.owner.api.send("DELETE", path)).status, 204);
});

test("the list of invitations contains no links", async (t) => {
  const team = await createTeam(service);
  const { url, invitation } = await invite(team, team.owner);
  const { text, body } = await team.owner.api.send<{ data: { id: string }[] }>(
    "GET",
    `${team.base}/invitations`,
  );
  t.deepEqual(
    body.data.map(({ id }) => id),
    [invitation.id],
  );
  t.false(text.includes(String(url.split("/").at(-1))));
});

test("an open invitation is named by its time, without markup", async (t) => {
  const team = await createTeam(service);
  await invite(team, team.owner);
  const { browser } = await browserOf(service, team.owner);
  const { html } = await browser.open(`${service.url}${team.base}/members`);
  const names = html.querySelectorAll("button").map(({ text }) => text);
  const [name = ""] = names.filter((text) => text.startsWith("Revoke"));
  t.regex(name, /^Revoke invitation from [A-Z][a-z]{2} \d{1,2}, \d{4}, \d\d:\d\d UTC$/);
  t.regex(html.querySelector("td time")?.text ?? "", /^[A-Z][a-z]{2} \d{1,2}, \d{4}$/);
});

test("an invitation is labeled for whom it is, in the list, on the page and in the audit log", async (t) => {
  const team = await createTeam(service);
  const { base, owner } = team;
  const { browser } = await browserOf(service, owner);
  const created = await browser.press(
    await browser.open(`${service.url}${base}/members`),
    "Create invitation link",
    { label: " Mary <Jackson> " },
  );
  t.regex(created.html.querySelector("main")?.text ?? "", /Send it to Mary <Jackson>\./);
  const label = "Mary <Jackson>";
  const listed = await owner.api.get<{ data: { id: string; label: string | null }[] }>(`${base}/invitations`);
  t.deepEqual(
    listed.body.data.map((one) => one.label),
    [label],
  );
  const members = await browser.open(`${service.url}${base}/members`);
  t.is(members.html.querySelector("td[data-head=For]")?.text, label);
  await owner.api.send("DELETE", `${base}/invitations/${listed.body.data[0]?.id}`);
  const { body } = await owner.api.get<{ data: { summary: string; data: { label: string } }[] }>(
    `${base}/audit?category=members`,
  );
  t.deepEqual(
    body.data.slice(0, 2).map(({ summary }) => summary),
    [
      "revoked an invitation for Mary <Jackson> with the role member",
      "created an invitation for Mary <Jackson> with the role member",
    ],
  );
  t.is(body.data[0]?.data.label, label);
});

test("a label is optional, and has at most 100 visible characters", async (t) => {
  const team = await createTeam(service);
  const path = `${team.base}/invitations`;
  for (const json of [{}, { label: "" }, { label: " " }]) {
    const { body } = await team.owner.api.send<Created>("POST", path, { json });
    t.like(body.invitation, { label: null });
  }
  t.is((await team.owner.api.send("POST", path, { json: { label: "é".repeat(100) } })).status, 201);
  for (const label of ["a".repeat(101), "two\nlines", "\u202Ereversed", 7]) {
    const reply = await team.owner.api.send("POST", path, { json: { label } });
    isProblem(t, reply, { status: 422, code: "invalid_label", fields: ["label"] });
  }
  const { browser } = await browserOf(service, team.owner);
  const members = `${service.url}${team.base}/members`;
  const fields = { role: "admin", label: "a".repeat(101) };
  const rejected = await browser.press(await browser.open(members), "Create invitation link", fields);
  t.is(rejected.status, 422);
  t.is(rejected.html.querySelector(".error")?.text, "Must be at most 100 characters long.");
  t.is(rejected.html.querySelector("[name=label]")?.attributes.value, fields.label);
  t.is(rejected.html.querySelector("[name=role] [selected]")?.attributes.value, "admin");
  t.is((await browser.open(rejected.url)).url, members, "reloading leads to the page");
});

test("a visitor who opens an invitation signs in first and returns to it", async (t) => {
  const team = await createTeam(service);
  const { browser: owner } = await browserOf(service, team.owner);
  const created = await owner.press(
    await owner.open(`${service.url}${team.base}/members`),
    "Create invitation link",
    { role: "member" },
  );
  const url = created.html.querySelector(".copyable code")?.text ?? "";
  t.true(url.startsWith(`${service.url}/dashboard/invitations/`), url);

  const guest = await service.createUser([]);
  const browser = new TestBrowser(service.url);
  const page = await browser.signIn(await browser.open(url), guest);
  t.is(page.url, url);
  t.regex(page.text, /invited you to join/);
  const joined = await browser.press(page, "Join Team");
  t.regex(joined.text, /You joined the organization/);
  t.is((await browser.open(url)).status, 403);
});
