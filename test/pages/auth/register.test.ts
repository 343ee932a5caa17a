import test from "ava";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { createTeam } from "../../harness/clients/dashboard.ts";
import { firstPartyAt, isTokenAnswer, newName, PASSWORD } from "../../harness/clients/first-party.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { follow, isSignedIn } from "../../harness/clients/visits.ts";
import { atOnce } from "../../harness/database/storage.ts";
import {
  providerSettings,
  signInExternally,
  signInWith,
  startMockProvider,
} from "../../harness/providers/identity-provider.ts";
import { postForm, startTestService, type TestService } from "../../harness/service.ts";

export const databases = "all";

const provider = await startMockProvider();
const settings = providerSettings(provider.issuer);
const services = {
  open: await startTestService(settings),
  invite: await startTestService({ ...settings, REGISTRATION: "invite" }),
  closed: await startTestService({ ...settings, REGISTRATION: "closed" }),
};
const { open: service } = services;

const { post, me, register } = firstPartyAt(service.url);

test("registering creates a user who owns an organization on the free plan, and signs in, in any case", async (t) => {
  const username = newName();
  const fields = { username, password: PASSWORD, organization_name: "Söhne & Co" };
  const reply = await post("/auth/register", fields);
  t.is(reply.status, 201);
  isTokenAnswer(t, reply);
  const { user, organization } = reply.body;
  t.regex(user.id, /^usr_/);
  t.deepEqual(user, { id: user.id, username });
  t.deepEqual(organization, { id: organization.id, name: "Söhne & Co", plan: "free" });
  const { status, body } = await me(reply.body.access_token);
  t.is(status, 200);
  t.deepEqual(body as unknown, { user, organizations: [{ ...organization, role: "owner" }] });
  const login = await post("/auth/login", { username: username.toUpperCase(), password: PASSWORD });
  isTokenAnswer(t, login);
  t.deepEqual([login.status, login.body.user], [200, user]);
  const unnamed = await register();
  t.is(unnamed.organization.name, `${unnamed.user.username}'s organization`);
});

test("of ten concurrent registrations of one username, in two spellings, one succeeds, and one organization is created", async (t) => {
  const username = newName();
  const organization_name = `Of ${username}`;
  const spellings = [username, username.toUpperCase()];
  const replies = await atOnce(10, (index) =>
    post("/auth/register", { username: spellings[index % 2], password: PASSWORD, organization_name }),
  );
  const [created, ...refused] = replies.toSorted((one, other) => one.status - other.status);
  t.is(created?.status, 201);
  for (const reply of refused)
    isProblem(t, reply, { status: 409, code: "username_taken", fields: ["username"] });
  const organizations = await service.storage.organizations.list();
  t.is(organizations.filter(({ name }) => name === organization_name).length, 1);
});

// One rule of each field; test/unit has the others.
const INVALID = { username: "Operator", password: "seven77", organization_name: "1inkgate" };

test("a registration is rejected with each invalid field, as JSON and as a form", async (t) => {
  const reply = await post("/auth/register", INVALID);
  isProblem(t, reply, { status: 422, code: "invalid_request", fields: Object.keys(INVALID) });
  const browser = new TestBrowser(service.url);
  const page = await browser.open(`${service.url}/auth/register`);
  const answer = await browser.press(page, "Create account", INVALID);
  t.is(answer.status, 422);
  t.truthy(answer.html.querySelector("[role=alert]"));
  t.is(answer.html.querySelector("#password")?.attributes.value, undefined);
  const array = { body: "[]", headers: { "content-type": "application/json" } };
  const none = await apiAt(service.url).send("POST", "/auth/register", array);
  isProblem(t, none, { status: 400, code: "invalid_json" });
});

async function invite(service: TestService, role = "member") {
  const { organization, base, owner } = await createTeam(service);
  const { body } = await owner.api.send<{ url: string }>("POST", `${base}/invitations`, { json: { role } });
  const path = new URL(body.url).pathname;
  return { organization, url: body.url, path, invitation: path.split("/").at(-1) as string };
}

const signUp = ({ url }: TestService, fields: object) =>
  firstPartyAt(url).post("/auth/register", { username: newName(), password: PASSWORD, ...fields });

for (const [registration, service] of Object.entries(services)) {
  if (registration === "open") continue;

  test(`with REGISTRATION=${registration}, registering without an invitation is rejected, as JSON, as a form and through SSO`, async (t) => {
    const username = newName();
    isProblem(t, await signUp(service, { username }), { status: 403, code: "registration_closed" });
    const fields = { username, password: PASSWORD };
    const form = await postForm(`${service.url}/auth/register`, fields, { accept: "text/html" });
    t.is(form.status, 403);
    t.regex(await form.text(), /Registration is closed/);
    t.deepEqual(form.headers.getSetCookie(), []);
    t.is(await service.storage.accounts.findByUsername(username), undefined);
    const browser = new TestBrowser(service.url);
    t.is((await browser.open(`${service.url}/auth/register`)).status, 403);
    const signIn = await browser.open(`${service.url}/auth/login`);
    t.false(signIn.text.includes("/auth/register"), "the sign-in page has no link to registration");
    const refused = await signInExternally(service, provider, browser);
    t.is(refused.status, 403);
    t.regex(refused.text, /You need an invitation to create one/);
    t.false(await isSignedIn(service, browser));
  });
}

test.serial("with REGISTRATION=closed, only existing users can accept an invitation", async (t) => {
  const { url, path, invitation, organization } = await invite(services.closed);
  isProblem(t, await signUp(services.closed, { invitation }), { status: 403, code: "registration_closed" });
  const browser = new TestBrowser(services.closed.url);
  t.false((await browser.open(url)).text.includes("/auth/register"));
  const query = `?${new URLSearchParams({ return_to: path })}`;
  t.regex((await browser.open(`${services.closed.url}/auth/register${query}`)).url, /\/auth\/login/);
  t.is((await signInExternally(services.closed, provider, browser, query)).status, 403);
  t.is((await services.closed.storage.members.list(organization.id)).length, 3);
});

for (const registration of ["open", "invite"] as const) {
  const service = services[registration];

  test(`with REGISTRATION=${registration}, an invalid invitation creates no user, and doesn't reveal which usernames are taken`, async (t) => {
    const { invitation } = await invite(service);
    const taken = newName();
    t.is((await signUp(service, { username: taken, invitation })).status, 201);
    const unused = newName();
    for (const wrong of ["a".repeat(43), "a\u0000", "a".repeat(5000), invitation])
      for (const username of [taken, unused]) {
        const reply = await signUp(service, { username, invitation: wrong });
        isProblem(t, reply, { status: 403, code: "invitation_invalid" });
      }
    t.is(await service.storage.accounts.findByUsername(unused), undefined);
  });

  test(`with REGISTRATION=${registration}, of concurrent registrations with one invitation one joins, with its role`, async (t) => {
    const { invitation, organization } = await invite(service, "admin");
    const replies = await atOnce(8, () => signUp(service, { invitation }));
    const [joined, ...refused] = replies.toSorted((one, other) => one.status - other.status);
    t.deepEqual([joined?.status, refused.map(({ status }) => status)], [201, Array(7).fill(403)]);
    t.like(joined?.body.organization, { id: organization.id, name: organization.name });
    const api = apiAt(service.url, joined?.body.access_token);
    const { organizations } = (await api.get<{ organizations: object[] }>("/dashboard/me")).body;
    t.like(organizations, [{ id: organization.id, role: "admin" }]);
    t.is(organizations.length, 1, "no organization is created");
    t.is((await service.storage.members.list(organization.id)).length, 4);
  });

  test(`with REGISTRATION=${registration}, a visitor who opens an invitation registers on its page, unless it was used`, async (t) => {
    const { url, path, organization } = await invite(service);
    const browser = new TestBrowser(service.url);
    const form = await browser.open(url);
    t.is(form.html.querySelector("h1")?.text, "Create an account");
    t.regex((await follow(browser, form, "Sign in")).text, /invited you to join/);
    t.is(form.html.querySelector("#organization_name"), null, "the organization exists");
    const refused = await browser.press(form, "Create account", { username: "x", password: PASSWORD });
    t.is(refused.status, 422);
    const fields = { username: newName(), password: PASSWORD };
    const inside = await browser.press(refused, "Create account", fields);
    t.is(inside.status, 200, inside.text);
    t.true(inside.url.endsWith(`/organizations/${organization.id}`), inside.url);
    const late = await new TestBrowser(service.url).open(service.url + path);
    t.is(late.status, 403);
    t.regex(late.text, /This invitation is no longer valid/);
  });

  test.serial(`with REGISTRATION=${registration}, an invited user may register through SSO`, async (t) => {
    const { path, organization } = await invite(service);
    const query = `?${new URLSearchParams({ return_to: path })}`;
    const { page } = await signInWith(service, provider, { sub: newName() }, { query });
    t.true(page.url.endsWith(`/organizations/${organization.id}`), page.url);
    t.is((await service.storage.members.list(organization.id)).length, 4);
  });
}
