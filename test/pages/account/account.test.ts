import test from "ava";
import { apiAt, isMissing, isProblem } from "../../harness/clients/api.ts";
import { tokensFor } from "../../harness/clients/authorization.ts";
import { browserOf, createColleague, createTeam, firstPartyToken } from "../../harness/clients/dashboard.ts";
import { isAcceptedByApi } from "../../harness/clients/oauth.ts";
import { isMarked, textsOn } from "../../harness/clients/pages.ts";
import { logIn } from "../../harness/clients/second-factor.ts";
import { cookieOf, isSignedIn } from "../../harness/clients/visits.ts";
import { advanceClock } from "../../harness/clock.ts";
import { OPERATOR, startTestService } from "../../harness/service.ts";

const service = await startTestService();

const PATH = "/dashboard/account";
const PAGE = service.url + PATH;
const FRESH = "an entirely new password";

const signsIn = async (username: string, password: string) =>
  (await logIn(service, { id: "", username, password })).status === 200;

const WRONG: [what: string, fields: Record<string, string | undefined>, field: string][] = [
  ["a wrong current password", { current_password: "wrong" }, "current_password"],
  ["no current password", { current_password: undefined }, "current_password"],
  ["a short new password", { new_password: "seven77" }, "new_password"],
  ["no new password", { new_password: undefined }, "new_password"],
];

test("a password change with a wrong password or without a new one is rejected", async (t) => {
  const { api, username, password } = await createColleague(service, undefined);
  for (const [what, fields, field] of WRONG) {
    const json = { current_password: password, new_password: FRESH, ...fields };
    const reply = await api.send("POST", `${PATH}/password`, { json });
    isProblem(t, reply, { status: 422, code: `invalid_${field}`, fields: [field] });
    t.true(await signsIn(username, password), what);
  }
});

for (const how of ["JSON", "a form"])
  test(`changing the password by ${how} ends every other session and revokes authorized apps`, async (t) => {
    const own = await service.createOrganization();
    const user = await service.createUser([own.id]);
    const app = await service.createOrganization();
    const token = await firstPartyToken(service, user);
    const other = await browserOf(service, user);
    const allowed = await tokensFor(service, app, user);
    const link = await service.storage.accounts.createResetToken(user.id, 60_000);
    const fields = { current_password: user.password, new_password: FRESH };
    const api = apiAt(service.url, token);

    if (how === "JSON") t.is((await api.send("POST", `${PATH}/password`, { json: fields })).status, 204);
    else {
      const { browser } = await browserOf(service, user);
      const page = await browser.press(await browser.open(PAGE), "Change password", fields);
      t.regex(page.text, /Password changed/);
      t.true(await isSignedIn(service, browser), "the current session continues");
    }

    t.is((await api.send("GET", "/dashboard/me")).status, how === "JSON" ? 200 : 401);
    t.false(await isSignedIn(service, other.browser));
    t.false(await isAcceptedByApi(service, allowed.access_token));
    t.is(await service.storage.accounts.findByResetToken(link), undefined, "a pending reset link is revoked");
    t.false(await signsIn(user.username, user.password));
    t.true(await signsIn(user.username, FRESH));
  });

test("the export is a file with all data about the user and no credentials", async (t) => {
  const own = await service.createOrganization("Söhne & Co");
  const user = await service.createUser([own.id]);
  const subject = `subject of ${user.id}`;
  const identity = { issuer: "https://id.example", subject, label: "ada@example.com" };
  await service.storage.identities.link(user.id, identity, OPERATOR);
  const app = await service.createOrganization("An app");
  await tokensFor(service, app, user, { parameters: { scope: "links:read" } });
  const token = await firstPartyToken(service, user);
  const { browser } = await browserOf(service, user);
  type Exported = { sessions: object[]; apps: object[]; exported_at: string };
  const path = `${PATH}/export`;
  const { headers, text, body } = await apiAt(service.url, token).send<Exported>("GET", path);
  t.regex(headers.get("content-disposition") ?? "", /^attachment; filename="[\w.-]+\.json"$/);
  t.is(headers.get("cache-control"), "no-store");
  t.like(body, {
    user: { id: user.id, username: user.username, has_password: true },
    organizations: [{ id: own.id, name: "Söhne & Co", role: "member" }],
    identities: [identity],
    apps: [{ app: "An app", client_id: app.clientId, organization_id: own.id, scopes: ["links:read"] }],
  });
  t.deepEqual([body.sessions.length, body.apps.length], [3, 1]);
  t.true(Math.abs(Date.parse(body.exported_at) - Date.now()) < 60_000);
  const cookie = await cookieOf(service, browser, "session");
  for (const secret of [token, String(cookie?.value), user.password, "argon2"])
    t.false(text.includes(secret), secret);
});

test("deleting an account also deletes organizations without other members, and frees the username", async (t) => {
  const user = await createColleague(service, undefined);
  const { organization } = await service.storage.organizations.create("Mine", "growth", OPERATOR, user.id);
  const { browser } = await browserOf(service, user);
  const { username, password } = user;
  const page = await browser.press(await browser.open(PAGE), "Delete account", { password });
  t.is(page.url, `${service.url}/auth/login?deleted=1`);
  t.is(page.html.querySelector("[role=status]")?.text, "Your account was deleted.");
  t.false(await isSignedIn(service, browser));
  t.false(await signsIn(username, password));
  t.is(await service.storage.organizations.find(organization.id), undefined);
  t.not((await service.createUser([], username)).id, user.id);
  t.is((await user.api.send("GET", "/dashboard/me")).status, 401);
});

test("a wrong password is named at the field of its form, which shows no password again", async (t) => {
  const { browser } = await browserOf(service, await service.createUser([]));
  for (const [button, field, consequence] of [
    ["Delete account", "password", "Your account was not deleted."],
    ["Change password", "current_password", "Your password was not changed."],
  ] as const) {
    const fields = { [field]: "wrong", ...(button === "Change password" && { new_password: FRESH }) };
    const page = await browser.press(await browser.open(PAGE), button, fields);
    t.is(page.status, 422);
    isMarked(t, page, field, new RegExp(`^That password is wrong. ${consequence}$`));
    for (const input of page.html.querySelectorAll("[type=password]")) t.is(input.attributes.value, "");
  }
});

test.serial("an account isn't deleted by an old sign-in, a wrong password or a last owner", async (t) => {
  const { base, organization, owner, member } = await createTeam(service);
  const { browser } = await browserOf(service, owner);
  const { password } = owner;
  const remove = (json: object) => owner.api.send("DELETE", PATH, { json });
  t.like(await remove({ password: "wrong" }), { status: 422, body: { code: "invalid_current_password" } });
  isProblem(t, await remove({ password }), { status: 409, code: "last_owner" });
  const page = await browser.press(await browser.open(PAGE), "Delete account", { password });
  t.is(page.status, 409);
  const atForm = textsOn(page, "main .danger form [role=alert]").join();
  t.regex(atForm, /You are the only owner of Team/);
  t.is((await owner.api.send("GET", "/dashboard/me")).status, 200);
  await service.createUser([organization.id], undefined, "owner");
  advanceClock(11 * 60_000);
  const old = { status: 403, code: "reauthentication_required" };
  isProblem(t, await owner.api.send("DELETE", PATH), old);
  t.is((await owner.api.send("GET", "/dashboard/me")).status, 200);
  t.is((await remove({ password })).status, 204);
  t.is((await member.api.send("GET", base)).status, 200);
});

const APPS_PATH = "/dashboard/account/apps";
type App = { id: string; app: string; organization: { id: string; name: string }; scopes: string[] };
type Apps = { data: App[] };

test("a user sees and revokes the apps authorized for all organizations, and no one else's", async (t) => {
  const { organization, other, member, admin } = await createTeam(service);
  await service.storage.organizations.addMember(other.id, member.id, "member", OPERATOR);
  const reports = await service.createOrganization("Reports");
  const here = await tokensFor(service, reports, member, { organizationId: organization.id });
  const there = await tokensFor(service, reports, member, { organizationId: other.id });
  const ofAdmin = await tokensFor(service, reports, admin, { organizationId: organization.id });
  const { body } = await member.api.get<Apps>(APPS_PATH);
  const listed = body.data.map(({ app, organization: { name } }) => `${app} of ${name}`).sort();
  t.deepEqual(listed, ["Reports of Others", "Reports of Team"]);
  t.deepEqual(body.data[0]?.scopes, ["links:write"]);

  const own = body.data.find((app) => app.organization.id === other.id);
  const { data } = (await admin.api.get<Apps>(APPS_PATH)).body;
  t.is(data.length, 1);
  isMissing(t, await member.api.send("DELETE", `${APPS_PATH}/${data[0]?.id}`));
  t.is((await member.api.send("DELETE", `${APPS_PATH}/${own?.id}`)).status, 204);
  t.false(await isAcceptedByApi(service, there.access_token));
  for (const { access_token } of [here, ofAdmin]) t.true(await isAcceptedByApi(service, access_token));
});

test("two authorizations of one app are numbered in both lists, and each is revoked on its own", async (t) => {
  const { base, organization, member } = await createTeam(service);
  const app = await service.createOrganization("Reports");
  const first = await tokensFor(service, app, member, { organizationId: organization.id });
  const second = await tokensFor(service, app, member, { organizationId: organization.id });
  const other = await service.createOrganization("Once");
  await tokensFor(service, other, member, { organizationId: organization.id });
  const { browser } = await browserOf(service, member);
  for (const path of [`${base}/apps`, APPS_PATH]) {
    const apps = textsOn(await browser.open(service.url + path), "td[data-head=App] .named > :last-child");
    t.deepEqual(apps, ["Once", "Reports\nauthorization 2 of 2", "Reports\nauthorization 1 of 2"]);
  }
  const list = await browser.open(service.url + APPS_PATH);
  const link = list.html.querySelectorAll("main a").find(({ text }) => text.endsWith("authorization 1 of 2"));
  const confirmation = await browser.open(service.url + link?.attributes.href);
  t.regex(textsOn(confirmation, "main form").join(), /You authorized it on .* \(authorization 1 of 2\)\./);
  await browser.press(confirmation, "Revoke access");
  t.false(await isAcceptedByApi(service, first.access_token));
  t.true(await isAcceptedByApi(service, second.access_token));
});
