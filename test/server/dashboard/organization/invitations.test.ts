import test from "ava";
import { ROLES } from "../../../adapters/organizations.ts";
import { OPERATOR } from "../../../resources/events.ts";
import { isProblem } from "../../harness/api.ts";
import { browserOf, type Colleague, createColleague, createTeam } from "../../harness/dashboard.ts";
import { Person } from "../../harness/person.ts";
import { startTestService } from "../../harness/service.ts";
import { atOnce } from "../../harness/storage.ts";

const service = await startTestService();
test.after.always(() => service.close());

type Made = { invitation: { id: string; role: string; created_by: string; expires_at: string }; url: string };
type Team = Awaited<ReturnType<typeof createTeam>>;

async function invite({ base }: Team, by: Colleague, role = "member") {
  const { status, body } = await by.api.send<Made>("POST", `${base}/invitations`, { json: { role } });
  if (status !== 201) throw new Error(`not invited: ${status}`);
  return { ...body, path: new URL(body.url).pathname };
}

test("an invited person joins with the role of the invitation", async (t) => {
  const team = await createTeam(service);
  for (const role of ["member", "admin", "owner"]) {
    const { path, invitation } = await invite(team, team.owner, role);
    t.is(invitation.created_by, team.owner.username);
    const guest = await createColleague(service, undefined);
    const seen = await guest.api.send<object>("GET", path);
    const { id, name } = team.organization;
    t.deepEqual(seen.body, { organization: { id, name }, role });
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

test("an admin invites no owner", async (t) => {
  const { base, admin } = await createTeam(service);
  const reply = await admin.api.send("POST", `${base}/invitations`, { json: { role: "owner" } });
  isProblem(t, reply, { status: 403, code: "role_required" });
});

test("sec 112: an invitation lets one person in, however many come at once", async (t) => {
  const team = await createTeam(service);
  const guests = await atOnce(10, () => createColleague(service, undefined));
  const { path } = await invite(team, team.owner);
  const replies = await Promise.all(guests.map(({ api }) => api.send("POST", path)));
  t.is(replies.filter(({ status }) => status === 200).length, 1);
  for (const reply of replies.filter(({ status }) => status !== 200)) {
    isProblem(t, reply, { status: 404, code: "invitation_over" });
  }
  t.is((await service.storage.members.list(team.organization.id)).length, 4);
});

test("sec 112: one person who comes many times at once is let in once", async (t) => {
  const team = await createTeam(service);
  const guest = await createColleague(service, undefined);
  const [first, second] = [await invite(team, team.owner), await invite(team, team.owner)];
  const replies = await atOnce(6, (index) => guest.api.send("POST", (index % 2 ? first : second).path));
  t.true(replies.some(({ status }) => status === 200));
  t.true(replies.every(({ status }) => status === 200 || status === 404));
  t.is((await service.storage.members.list(team.organization.id)).length, 4);
});

test("a member does not use an invitation up", async (t) => {
  const team = await createTeam(service);
  const { path } = await invite(team, team.owner, "owner");
  t.is((await team.member.api.send("POST", path)).status, 200);
  const roles = (await service.storage.members.list(team.organization.id)).map(({ role }) => role);
  t.deepEqual(roles.sort(), ["admin", "member", "owner"]);
  const guest = await createColleague(service, undefined);
  t.is((await guest.api.send("POST", path)).status, 200);
});

const OVER: Record<string, (team: Team, made: Awaited<ReturnType<typeof invite>>) => Promise<unknown>> = {
  "that was taken back": (team, { invitation }) =>
    team.admin.api.send("DELETE", `${team.base}/invitations/${invitation.id}`),
  "of an organization that was deleted": (team) =>
    service.storage.organizations.remove(team.organization.id, OPERATOR),
  "of somebody who was removed": (team) =>
    team.owner.api.send("DELETE", `${team.base}/members/${team.admin.id}`),
  "of somebody who may invite no longer": (team) =>
    team.owner.api.send("PATCH", `${team.base}/members/${team.admin.id}`, { json: { role: "member" } }),
};

for (const [what, end] of Object.entries(OVER)) {
  test(`sec 112: an invitation ${what} is over`, async (t) => {
    const team = await createTeam(service);
    const made = await invite(team, team.admin);
    const guest = await createColleague(service, undefined);
    t.is((await guest.api.send("GET", made.path)).status, 200);
    await end(team, made);
    for (const method of ["GET", "POST"]) {
      isProblem(t, await guest.api.send(method, made.path), { status: 404, code: "invitation_over" });
    }
  });
}

const setRole = ({ base, owner }: Team, { id }: Colleague, role: string) =>
  owner.api.send("PATCH", `${base}/members/${id}`, { json: { role } });

const LEFT_BY_DEMOTION: [to: string, stay: string[]][] = [
  ["admin", ["admin", "member"]],
  ["member", []],
];

for (const [to, stay] of LEFT_BY_DEMOTION) {
  test(`sec 112: invitations of an owner who becomes ${to} stay valid only for the roles that it may give`, async (t) => {
    const team = await createTeam(service);
    const second = await createColleague(service, team.organization.id, "owner");
    const made = [];
    for (const role of ROLES) made.push(await invite(team, second, role));
    t.is((await setRole(team, second, to)).status, 200);
    for (const { path, invitation } of made) {
      const guest = await createColleague(service, undefined);
      const stays = stay.includes(invitation.role);
      for (const method of ["GET", "POST"]) {
        const reply = await guest.api.send(method, path);
        if (stays) t.is(reply.status, 200, invitation.role);
        else isProblem(t, reply, { status: 404, code: "invitation_over" });
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
  const made = [await invite(team, team.owner, "owner"), await invite(team, team.admin, "admin")];
  await setRole(team, second, "member");
  await setRole(team, team.admin, "owner");
  for (const { path } of made) {
    const guest = await createColleague(service, undefined);
    t.is((await guest.api.send("POST", path)).status, 200);
  }
});

// An invitation that is created by a request whose role was checked before the role was lost.
const LATE: Record<string, (team: Team) => Promise<unknown>> = {
  "an admin": (team) => setRole(team, team.admin, "admin"),
  "a member": (team) => setRole(team, team.admin, "member"),
  "not a member": (team) => team.owner.api.send("DELETE", `${team.base}/members/${team.admin.id}`),
};

for (const [what, happen] of Object.entries(LATE)) {
  test(`sec 112: an owner invitation is refused if its creator is now ${what}`, async (t) => {
    const team = await createTeam(service);
    const { id } = team.organization;
    await happen(team);
    const by = { actor: team.admin.id };
    const { token } = await service.storage.invitations.create(id, "owner", 60_000, by);
    const guest = await createColleague(service, undefined);
    for (const method of ["GET", "POST"]) {
      const reply = await guest.api.send(method, `/dashboard/invitations/${token}`);
      isProblem(t, reply, { status: 404, code: "invitation_over" });
    }
    t.is((await service.storage.members.list(id)).filter(({ role }) => role === "owner").length, 1);
  });
}

test("an invitation of the operator depends on no member", async (t) => {
  const { organization } = await createTeam(service);
  const { token } = await service.storage.invitations.create(organization.id, "owner", 60_000, OPERATOR);
  const guest = await createColleague(service, undefined);
  t.is((await guest.api.send("GET", `/dashboard/invitations/${token}`)).status, 200);
  t.is((await guest.api.send("POST", `/dashboard/invitations/${token}`)).status, 200);
});

test("an admin does not take an owner's invitation of an owner back", async (t) => {
  const team = await createTeam(service);
  const { invitation } = await invite(team, team.owner, "owner");
  const path = `${team.base}/invitations/${invitation.id}`;
  t.is((await team.admin.api.send("DELETE", path)).status, 404);
  t.is((await team.owner.api.send("DELETE", path)).status, 204);
});

test("sec 128: the list of invitations holds no link", async (t) => {
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

test("somebody who opens an invitation signs in first, and comes back to it", async (t) => {
  const team = await createTeam(service);
  const { person: owner } = await browserOf(service, team.owner);
  const made = await owner.press(
    await owner.open(`${service.url}${team.base}/members`),
    "Make invitation link",
    { role: "member" },
  );
  const url = made.html.querySelector(".copyable code")?.text ?? "";
  t.true(url.startsWith(`${service.url}/dashboard/invitations/`), url);

  const guest = await service.createUser([]);
  const browser = new Person(service.url);
  const page = await browser.signIn(await browser.open(url), guest);
  t.is(page.url, url);
  t.regex(page.text, /You are invited to/);
  const joined = await browser.press(page, "Join Team");
  t.regex(joined.text, /you belong to this organization now/);
  t.is((await browser.open(url)).status, 404);
});
