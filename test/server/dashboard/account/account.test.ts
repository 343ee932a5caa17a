import test from "ava";
import type { NewClient } from "../../../../adapters/oauth/clients.ts";
import { OPERATOR } from "../../../../resources/events/types.ts";
import { apiAt, isMissing, isProblem } from "../../../harness/clients/api.ts";
import {
  browserOf,
  createColleague,
  createTeam,
  firstPartyToken,
} from "../../../harness/clients/dashboard.ts";
import { tokensFor } from "../../../harness/clients/flow.ts";
import { isAcceptedByApi } from "../../../harness/clients/oauth.ts";
import { advanceClock } from "../../../harness/clock.ts";
import { startTestService } from "../../../harness/service.ts";

const service = await startTestService();

test.after.always(() => service.close());

const PATH = "/dashboard/account";
const PAGE = service.url + PATH;
const FRESH = "an entirely new password";

async function signsIn(username: string, password: string): Promise<boolean> {
  const json = { username, password };
  return (await apiAt(service.url).send("POST", "/auth/login", { json })).status === 200;
}

const WRONG: [what: string, fields: object, code: string, field: string][] = [
  ["a wrong current password", { current_password: "wrong" }, "invalid_current_password", "current_password"],
  ["no current password", { current_password: undefined }, "invalid_current_password", "current_password"],
  [
    "a current password that is not a string",
    { current_password: {} },
    "invalid_current_password",
    "current_password",
  ],
  ["a short new password", { new_password: "seven77" }, "invalid_new_password", "new_password"],
  [
    "a new password of 129 characters",
    { new_password: "a".repeat(129) },
    "invalid_new_password",
    "new_password",
  ],
  ["a common new password", { new_password: "password123" }, "invalid_new_password", "new_password"],
  ["no new password", { new_password: undefined }, "invalid_new_password", "new_password"],
];

for (const [what, fields, code, field] of WRONG) {
  test(`a password change with ${what} is rejected, as JSON and as a form`, async (t) => {
    const { api, username, password } = await createColleague(service, undefined);
    const input = { current_password: password, new_password: FRESH, ...fields };
    const reply = await api.send("POST", `${PATH}/password`, { json: input });
    isProblem(t, reply, { status: 422, code, fields: [field] });

    const { browser } = await browserOf(service, { id: "", username, password });
    const texts = Object.entries(input).map(([name, value]) => [
      name,
      typeof value === "string" ? value : "",
    ]);
    const page = await browser.press(await browser.open(PAGE), "Change password", Object.fromEntries(texts));
    t.is(page.status, 422);
    t.truthy(page.html.querySelector("[role=alert]"));
    for (const input of page.html.querySelectorAll("[type=password]")) t.is(input.attributes.value, "");
    t.true(await signsIn(username, password), "the old password still works");
    t.false(await signsIn(username, FRESH));
  });
}

test("the username is rejected as a password", async (t) => {
  const { id } = await createColleague(service, undefined);
  const named = await service.createUser([], `a-long-name-${id.slice(-6).toLowerCase()}`);
  const api = apiAt(service.url, await firstPartyToken(service, named));
  const json = { current_password: named.password, new_password: named.username.toUpperCase() };
  const reply = await api.send("POST", `${PATH}/password`, { json });
  isProblem(t, reply, { status: 422, code: "invalid_new_password", fields: ["new_password"] });
});

for (const how of ["JSON", "a form"]) {
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
      t.is((await browser.open(PAGE)).url, PAGE, "the current session continues");
    }

    t.is((await api.send("GET", "/dashboard/me")).status, how === "JSON" ? 200 : 401);
    t.true((await other.browser.open(PAGE)).url.includes("/auth/login"));
    t.false(await isAcceptedByApi(service, allowed.access_token));
    t.is(await service.storage.accounts.findByResetToken(link), undefined, "a pending reset link is revoked");
    t.false(await signsIn(user.username, user.password));
    t.true(await signsIn(user.username, FRESH));
  });
}

test("a password of 128 arbitrary characters counts in full", async (t) => {
  const user = await createColleague(service, undefined);
  const password = `${"пароль密碼🔑\u0000é ".repeat(12).slice(0, 110)} ends.`;
  const json = { current_password: user.password, new_password: password };
  t.is((await user.api.send("POST", `${PATH}/password`, { json })).status, 204);
  t.true(await signsIn(user.username, password));
  for (const wrong of [
    password.slice(0, -1),
    `${password.slice(0, -1)}!`,
    `${password} `,
    password.toUpperCase(),
  ]) {
    t.false(await signsIn(user.username, wrong));
  }
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
  const byToken = await apiAt(service.url, token).send<Record<string, unknown>>("GET", `${PATH}/export`);
  const bySession = await browser.open(`${PAGE}/export`);
  for (const { headers, text } of [byToken, bySession]) {
    t.regex(headers.get("content-disposition") ?? "", /^attachment; filename="[\w.-]+\.json"$/);
    t.is(headers.get("cache-control"), "no-store");
    const body = JSON.parse(text);
    t.like(body, {
      user: { id: user.id, username: user.username, has_password: true },
      organizations: [{ id: own.id, name: "Söhne & Co", role: "member" }],
      identities: [identity],
      apps: [{ app: "An app", client_id: app.clientId, organization_id: own.id, scopes: ["links:read"] }],
    });
    t.deepEqual([body.sessions.length, body.apps.length], [3, 1]);
    t.true(Math.abs(Date.parse(body.exported_at) - Date.now()) < 60_000);
    const cookie = (await browser.jar.getCookies(service.url)).find(({ key }) => key === "session")?.value;
    for (const secret of [token, String(cookie), user.password, "argon2"])
      t.false(text.includes(secret), secret);
  }
});

test("the account is shown as JSON to a signed-in user only", async (t) => {
  const { api, id, username } = await createColleague(service, undefined);
  const { body } = await api.send<object>("GET", PATH);
  t.like(body, { user: { id, username, has_password: true }, organizations: [], identities: [] });
  isProblem(t, await apiAt(service.url).send("GET", PATH), { status: 401, code: "sign_in_required" });
});

for (const how of ["JSON", "a form"]) {
  test(`deleting an account by ${how} also deletes organizations without other members`, async (t) => {
    const user = await createColleague(service, undefined);
    const created = await user.api.send<{ organization: { id: string } }>(
      "POST",
      "/dashboard/organizations",
      {
        json: { name: "Mine" },
      },
    );
    const { id } = created.body.organization;
    const change = await service.storage.organizations.setPlan(id, "growth", OPERATOR);
    const token = await service.token(change?.client as NewClient);
    const { short_url } = await apiAt(service.url, token).createLink();
    const { browser } = await browserOf(service, user);

    if (how === "JSON") {
      const reply = await user.api.send("DELETE", PATH, { json: { password: user.password } });
      t.is(reply.status, 204, reply.text);
    } else {
      const page = await browser.press(await browser.open(PAGE), "Delete account", {
        password: user.password,
      });
      t.is(page.url, `${service.url}/auth/login?deleted=1`);
      t.is(page.html.querySelector("[role=status]")?.text, "Your account was deleted.");
    }

    t.is((await user.api.send("GET", "/dashboard/me")).status, 401);
    t.true((await browser.open(PAGE)).url.includes("/auth/login"));
    t.false(await signsIn(user.username, user.password));
    t.false(await isAcceptedByApi(service, token));
    t.is((await fetch(short_url, { redirect: "manual" })).status, 410);
    const again = await service.createUser([], user.username);
    t.not(again.id, user.id, "the username is free, and reusing it creates a different user");
    t.is((await user.api.send("GET", "/dashboard/me")).status, 401);
  });
}

test("an account is not deleted with a wrong password or while it is the last owner of a shared organization", async (t) => {
  const { organization } = await service.storage.organizations.create("Team", "growth", OPERATOR);
  const owner = await createColleague(service, organization.id, "owner");
  const member = await createColleague(service, organization.id, "member");
  const { browser } = await browserOf(service, owner);
  const fields = [
    ["wrong", 422, "invalid_current_password"],
    [owner.password, 409, "last_owner"],
  ] as const;
  for (const [password, status, code] of fields) {
    const reply = await owner.api.send("DELETE", PATH, { json: { password } });
    t.is(reply.status, status);
    t.is(reply.body.code, code);
    const page = await browser.press(await browser.open(PAGE), "Delete account", { password });
    t.is(page.status, status);
    t.truthy(page.html.querySelector("[role=alert]"));
  }
  t.is((await owner.api.send("GET", "/dashboard/me")).status, 200);
  await service.storage.organizations.addMember(
    organization.id,
    (await service.createUser([])).id,
    "owner",
    OPERATOR,
  );
  t.is((await owner.api.send("DELETE", PATH, { json: { password: owner.password } })).status, 204);
  t.is((await member.api.send("GET", `/dashboard/organizations/${organization.id}`)).status, 200);
});

test("deleting an account revokes the apps that this user authorized, and no others", async (t) => {
  const own = await service.createOrganization();
  const [user, other] = [await service.createUser([own.id]), await service.createUser([own.id])];
  const app = await service.createOrganization();
  const [mine, theirs] = [await tokensFor(service, app, user), await tokensFor(service, app, other)];
  const api = apiAt(service.url, await firstPartyToken(service, user));
  t.is((await api.send("DELETE", PATH, { json: { password: user.password } })).status, 204);
  t.false(await isAcceptedByApi(service, mine.access_token));
  t.true(await isAcceptedByApi(service, theirs.access_token));
});

// Serial, because it moves the clock.
test.serial("without the password, deleting an account requires a recent sign-in", async (t) => {
  const { api } = await createColleague(service, undefined);
  advanceClock(11 * 60_000);
  isProblem(t, await api.send("DELETE", PATH), { status: 403, code: "reauthentication_required" });
  t.is((await api.send("GET", "/dashboard/me")).status, 200);
});

const APPS_PATH = "/dashboard/account/apps";
type Apps = {
  data: { id: string; app: string; organization: { id: string; name: string }; scopes: string[] }[];
};

/** Creates a team whose member has authorized an app there and in another organization, and whose admin did as well. */
async function createAuthorizations() {
  const team = await createTeam(service);
  const { organization, other, member, admin } = team;
  await service.storage.organizations.addMember(other.id, member.id, "member", OPERATOR);
  const app = await service.createOrganization("Reports");
  const here = await tokensFor(service, app, member, { organizationId: organization.id });
  const there = await tokensFor(service, app, member, { organizationId: other.id });
  const ofAdmin = await tokensFor(service, app, admin, { organizationId: organization.id });
  return { ...team, here: here.access_token, there: there.access_token, ofAdmin: ofAdmin.access_token };
}

test("a user sees and revokes the apps authorized for all organizations, and no one else's", async (t) => {
  const { organization, other, member, admin, here, there, ofAdmin } = await createAuthorizations();
  const { body } = await member.api.get<Apps>(APPS_PATH);
  t.deepEqual(
    body.data.map(({ app, organization: { name } }) => `${app} ${name}`).toSorted(),
    [`Reports ${organization.name}`, `Reports ${other.name}`].toSorted(),
  );
  t.deepEqual(body.data[0]?.scopes, ["links:write"]);

  const own = body.data.find((app) => app.organization.id === other.id);
  const { data } = (await admin.api.get<Apps>(APPS_PATH)).body;
  t.is(data.length, 1);
  isMissing(t, await member.api.send("DELETE", `${APPS_PATH}/${data[0]?.id}`));
  t.is((await member.api.send("DELETE", `${APPS_PATH}/${own?.id}`)).status, 204);
  t.false(await isAcceptedByApi(service, there));
  t.true(await isAcceptedByApi(service, here));
  t.true(await isAcceptedByApi(service, ofAdmin));
  isMissing(t, await member.api.send("DELETE", `${APPS_PATH}/${own?.id}`));
});

test("the account page leads to the list, which leads to a page that revokes access", async (t) => {
  const { member, here, there } = await createAuthorizations();
  const { browser } = await browserOf(service, member);
  const account = await browser.open(`${service.url}/dashboard/account`);
  const link = account.html.querySelector(`a[href="${APPS_PATH}"]`);
  t.truthy(link);
  const page = await browser.open(service.url + APPS_PATH);
  const links = page.html.querySelectorAll(`a[href^="${APPS_PATH}/"]`);
  t.is(links.length, 2);
  const confirmation = await browser.open(service.url + links[0]?.attributes.href);
  const revoked = await browser.press(confirmation, "Revoke access");
  t.regex(revoked.text, /Access revoked\./);
  const accepted = await Promise.all([here, there].map((token) => isAcceptedByApi(service, token)));
  t.is(accepted.filter(Boolean).length, 1);
});

test("the list requires a signed-in user", async (t) => {
  isProblem(t, await apiAt(service.url).send("GET", APPS_PATH), { status: 401, code: "sign_in_required" });
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
    const { html } = await browser.open(service.url + path);
    const apps = html
      .querySelectorAll("td[data-head=App] .named > :last-child")
      .map(({ text }) => text.trim());
    t.deepEqual(apps, ["Once", "Reports\nauthorization 2 of 2", "Reports\nauthorization 1 of 2"]);
  }
  const list = await browser.open(service.url + APPS_PATH);
  const link = list.html.querySelectorAll("main a").find(({ text }) => text.endsWith("authorization 1 of 2"));
  const confirmation = await browser.open(service.url + link?.attributes.href);
  t.regex(
    confirmation.html.querySelector("main form")?.text ?? "",
    /You authorized it on .* \(authorization 1 of 2\)\./,
  );
  await browser.press(confirmation, "Revoke access");
  t.false(await isAcceptedByApi(service, first.access_token));
  t.true(await isAcceptedByApi(service, second.access_token));
});
