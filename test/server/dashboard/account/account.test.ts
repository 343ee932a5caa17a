import test from "ava";
import type { NewClient } from "../../../adapters/clients.ts";
import { OPERATOR } from "../../../resources/events.ts";
import { apiAt, isProblem } from "../../harness/api.ts";
import { advanceClock } from "../../harness/clock.ts";
import { browserOf, createColleague, firstPartyToken } from "../../harness/dashboard.ts";
import { tokensFor } from "../../harness/flow.ts";
import { opensApi } from "../../harness/oauth.ts";
import { startTestService } from "../../harness/service.ts";

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
    "a current password that is no text",
    { current_password: {} },
    "invalid_current_password",
    "current_password",
  ],
  ["a short one", { new_password: "seven77" }, "invalid_new_password", "new_password"],
  ["one of 129 characters", { new_password: "a".repeat(129) }, "invalid_new_password", "new_password"],
  ["a common one", { new_password: "password123" }, "invalid_new_password", "new_password"],
  ["none", { new_password: undefined }, "invalid_new_password", "new_password"],
];

for (const [what, fields, code, field] of WRONG) {
  test(`sec 109: a change of the password with ${what} is refused, as JSON and as a form`, async (t) => {
    const { api, username, password } = await createColleague(service, undefined);
    const input = { current_password: password, new_password: FRESH, ...fields };
    const reply = await api.send("POST", `${PATH}/password`, { json: input });
    isProblem(t, reply, { status: 422, code, fields: [field] });

    const { person } = await browserOf(service, { id: "", username, password });
    const texts = Object.entries(input).map(([name, value]) => [
      name,
      typeof value === "string" ? value : "",
    ]);
    const page = await person.press(
      await person.open(PAGE),
      "Change the password",
      Object.fromEntries(texts),
    );
    t.is(page.status, 422);
    t.truthy(page.html.querySelector("[role=alert]"));
    for (const input of page.html.querySelectorAll("[type=password]")) t.is(input.attributes.value, "");
    t.true(await signsIn(username, password), "the old one is still good");
    t.false(await signsIn(username, FRESH));
  });
}

test("sec 109, 113: the own name may not become the password", async (t) => {
  const { id } = await createColleague(service, undefined);
  const named = await service.createUser([], `a-long-name-${id.slice(-6).toLowerCase()}`);
  const api = apiAt(service.url, await firstPartyToken(service, named));
  const json = { current_password: named.password, new_password: named.username.toUpperCase() };
  const reply = await api.send("POST", `${PATH}/password`, { json });
  isProblem(t, reply, { status: 422, code: "invalid_new_password", fields: ["new_password"] });
});

for (const how of ["JSON", "a form"]) {
  test(`sec 72, 109: a new password, set by ${how}, ends every other sign-in and what apps were allowed`, async (t) => {
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
      const { person } = await browserOf(service, user);
      const page = await person.press(await person.open(PAGE), "Change the password", fields);
      t.regex(page.text, /The password was changed/);
      t.is((await person.open(PAGE)).url, PAGE, "this sign-in goes on");
    }

    t.is((await api.send("GET", "/dashboard/me")).status, how === "JSON" ? 200 : 401);
    t.true((await other.person.open(PAGE)).url.includes("/auth/login"));
    t.false(await opensApi(service, allowed.access_token));
    t.is(
      await service.storage.accounts.findByResetToken(link),
      undefined,
      "a link that is under way is over",
    );
    t.false(await signsIn(user.username, user.password));
    t.true(await signsIn(user.username, FRESH));
  });
}

test("sec 107: a password of 128 characters of anything is kept to its last character", async (t) => {
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

test("the export is a file with all that is kept about the person, and nothing that opens anything", async (t) => {
  const own = await service.createOrganization("Söhne & Co");
  const user = await service.createUser([own.id]);
  const subject = `subject of ${user.id}`;
  const identity = { issuer: "https://id.example", subject, label: "ada@example.com" };
  await service.storage.identities.link(user.id, identity, OPERATOR);
  const app = await service.createOrganization("An app");
  await tokensFor(service, app, user, { parameters: { scope: "links:read" } });
  const token = await firstPartyToken(service, user);
  const { person } = await browserOf(service, user);
  const byToken = await apiAt(service.url, token).send<Record<string, unknown>>("GET", `${PATH}/export`);
  const bySession = await person.open(`${PAGE}/export`);
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
    const cookie = (await person.jar.getCookies(service.url)).find(({ key }) => key === "session")?.value;
    for (const secret of [token, String(cookie), user.password, "argon2"])
      t.false(text.includes(secret), secret);
  }
});

test("the account says who the person is, as JSON and as a page", async (t) => {
  const { api, id, username } = await createColleague(service, undefined);
  const { body } = await api.send<object>("GET", PATH);
  t.like(body, { user: { id, username, has_password: true }, organizations: [], identities: [] });
  isProblem(t, await apiAt(service.url).send("GET", PATH), { status: 401, code: "sign_in_required" });
});

for (const how of ["JSON", "a form"]) {
  test(`an account is deleted by ${how}, with the organization that nobody else belongs to`, async (t) => {
    const user = await createColleague(service, undefined);
    const made = await user.api.send<{ organization: { id: string } }>("POST", "/dashboard/organizations", {
      json: { name: "Mine" },
    });
    const { id } = made.body.organization;
    const change = await service.storage.organizations.setPlan(id, "growth", OPERATOR);
    const token = await service.token(change?.client as NewClient);
    const { short_url } = await apiAt(service.url, token).createLink();
    const { person } = await browserOf(service, user);

    if (how === "JSON") {
      const reply = await user.api.send("DELETE", PATH, { json: { password: user.password } });
      t.is(reply.status, 204, reply.text);
    } else {
      const page = await person.press(await person.open(PAGE), "Delete my account", {
        password: user.password,
      });
      t.is(page.url, `${service.url}/auth/login`);
    }

    t.is((await user.api.send("GET", "/dashboard/me")).status, 401);
    t.true((await person.open(PAGE)).url.includes("/auth/login"));
    t.false(await signsIn(user.username, user.password));
    t.false(await opensApi(service, token));
    t.is((await fetch(short_url, { redirect: "manual" })).status, 410);
    const again = await service.createUser([], user.username);
    t.not(again.id, user.id, "the name is free, and whoever takes it is somebody else");
    t.is((await user.api.send("GET", "/dashboard/me")).status, 401);
  });
}

test("an account is not deleted with a wrong password, nor while an organization of others needs its owner", async (t) => {
  const { organization } = await service.storage.organizations.create("Team", "growth", OPERATOR);
  const owner = await createColleague(service, organization.id, "owner");
  const member = await createColleague(service, organization.id, "member");
  const { person } = await browserOf(service, owner);
  const fields = [
    ["wrong", 422, "invalid_current_password"],
    [owner.password, 409, "last_owner"],
  ] as const;
  for (const [password, status, code] of fields) {
    const reply = await owner.api.send("DELETE", PATH, { json: { password } });
    t.is(reply.status, status);
    t.is(reply.body.code, code);
    const page = await person.press(await person.open(PAGE), "Delete my account", { password });
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

test("who goes takes along what apps were allowed in that name, and nobody else's", async (t) => {
  const own = await service.createOrganization();
  const [user, other] = [await service.createUser([own.id]), await service.createUser([own.id])];
  const app = await service.createOrganization();
  const [mine, theirs] = [await tokensFor(service, app, user), await tokensFor(service, app, other)];
  const api = apiAt(service.url, await firstPartyToken(service, user));
  t.is((await api.send("DELETE", PATH, { json: { password: user.password } })).status, 204);
  t.false(await opensApi(service, mine.access_token));
  t.true(await opensApi(service, theirs.access_token));
});

// Moves the clock.
test.serial("without the password an account is deleted after a recent sign-in alone", async (t) => {
  const { api } = await createColleague(service, undefined);
  advanceClock(11 * 60_000);
  isProblem(t, await api.send("DELETE", PATH), { status: 403, code: "reauthentication_required" });
  t.is((await api.send("GET", "/dashboard/me")).status, 200);
});
