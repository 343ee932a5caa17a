import test from "ava";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { createTeam } from "../../harness/clients/dashboard.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { atOnce } from "../../harness/database/storage.ts";
import {
  providerSettings,
  signInExternally,
  startMockProvider,
} from "../../harness/providers/identity-provider.ts";
import { postForm, startTestService, type TestService } from "../../harness/service.ts";

const provider = await startMockProvider();
const settings = providerSettings(provider.issuer);
const services = {
  open: await startTestService(settings),
  invite: await startTestService({ ...settings, REGISTRATION: "invite" }),
  closed: await startTestService({ ...settings, REGISTRATION: "closed" }),
};
test.after.always(async () => {
  for (const service of Object.values(services)) await service.close();
  await provider.stop();
});

const PASSWORD = "correct horse battery";
let count = 0;
const newName = () => `invited${++count}`;

type Registered = { organization: { id: string; name: string }; access_token: string };

/** Creates an organization and an invitation to it. */
async function invite(service: TestService, role = "member") {
  const { organization, base, owner } = await createTeam(service);
  const { body } = await owner.api.send<{ url: string }>("POST", `${base}/invitations`, { json: { role } });
  const path = new URL(body.url).pathname;
  return { organization, url: body.url, path, invitation: path.split("/").at(-1) as string };
}

const register = (service: TestService, fields: object) =>
  apiAt(service.url).send<Registered>("POST", "/auth/register", {
    json: { username: newName(), password: PASSWORD, ...fields },
  });

for (const [registration, service] of Object.entries(services)) {
  if (registration === "open") continue;

  test(`with REGISTRATION=${registration}, registering without an invitation is rejected, as JSON and as a form`, async (t) => {
    const username = newName();
    isProblem(t, await register(service, { username }), { status: 403, code: "registration_closed" });
    const form = await postForm(
      `${service.url}/auth/register`,
      { username, password: PASSWORD },
      { accept: "text/html" },
    );
    t.is(form.status, 403);
    t.regex(await form.text(), /Registration is closed/);
    t.deepEqual(form.headers.getSetCookie(), []);
    t.is(await service.storage.accounts.findByUsername(username), undefined);
    const browser = new TestBrowser(service.url);
    t.is((await browser.open(`${service.url}/auth/register`)).status, 403);
    const signIn = await browser.open(`${service.url}/auth/login`);
    t.false(signIn.text.includes("/auth/register"), "the sign-in page has no link to registration");
  });
}

test.serial("with REGISTRATION=closed, only existing users can accept an invitation", async (t) => {
  const { url, path, invitation, organization } = await invite(services.closed);
  isProblem(t, await register(services.closed, { invitation }), { status: 403, code: "registration_closed" });
  const browser = new TestBrowser(services.closed.url);
  const page = await browser.open(url);
  t.false(page.text.includes("/auth/register"));
  const query = new URLSearchParams({ return_to: path });
  t.is((await browser.open(`${services.closed.url}/auth/register?${query}`)).status, 403);
  const external = await signInExternally(
    services.closed,
    provider,
    new TestBrowser(services.closed.url),
    `?${query}`,
  );
  t.is(external.status, 403);
  t.is((await services.closed.storage.members.list(organization.id)).length, 3);
});

for (const registration of ["open", "invite"] as const) {
  const service = services[registration];

  test(`with REGISTRATION=${registration}, registering with an invitation joins its organization with its role`, async (t) => {
    const { invitation, organization } = await invite(service, "admin");
    const reply = await register(service, { invitation });
    t.is(reply.status, 201, reply.text);
    t.like(reply.body.organization, { id: organization.id, name: organization.name });
    const me = await apiAt(service.url, reply.body.access_token).send<{ organizations: object[] }>(
      "GET",
      "/dashboard/me",
    );
    t.like(me.body.organizations, [{ id: organization.id, role: "admin" }]);
    t.is(me.body.organizations.length, 1, "no organization is created");
    isProblem(t, await register(service, { invitation }), { status: 403, code: "invitation_invalid" });
  });

  for (const [what, wrong] of Object.entries({
    "that does not exist": "a".repeat(43),
    "with a NUL": "a\u0000",
    "that is too long": "a".repeat(5000),
  })) {
    test(`with REGISTRATION=${registration}, an invitation ${what} creates no user`, async (t) => {
      const username = newName();
      const reply = await register(service, { username, invitation: wrong });
      isProblem(t, reply, { status: 403, code: "invitation_invalid" });
      t.is(await service.storage.accounts.findByUsername(username), undefined);
    });
  }

  test(`with REGISTRATION=${registration}, an invalid invitation doesn't reveal which usernames are taken`, async (t) => {
    const { invitation } = await invite(service);
    const username = newName();
    t.is((await register(service, { username, invitation })).status, 201);
    for (const wrong of ["a".repeat(43), invitation]) {
      for (const name of [username, newName()]) {
        const reply = await register(service, { username: name, invitation: wrong });
        isProblem(t, reply, { status: 403, code: "invitation_invalid" });
      }
    }
  });

  test(`with REGISTRATION=${registration}, concurrent registrations with one invitation create exactly one user`, async (t) => {
    const { invitation, organization } = await invite(service);
    const replies = await atOnce(8, () => register(service, { invitation }));
    t.deepEqual(replies.map(({ status }) => status).sort(), [201, ...Array(7).fill(403)]);
    t.is((await service.storage.members.list(organization.id)).length, 4);
  });

  test(`with REGISTRATION=${registration}, a visitor who opens an invitation can register on its page`, async (t) => {
    const { url, path, organization } = await invite(service);
    const browser = new TestBrowser(service.url);
    const page = await browser.open(url);
    const link = page.html.querySelectorAll("a").find(({ text }) => text === "Create an account");
    t.truthy(link, page.text);
    const form = await browser.open(new URL(link?.attributes.href ?? "", service.url).href);
    t.is(form.html.querySelector("#organization_name"), null, "the organization exists");
    const refused = await browser.press(form, "Create account", { username: "x", password: PASSWORD });
    t.is(refused.status, 422);
    const inside = await browser.press(refused, "Create account", {
      username: newName(),
      password: PASSWORD,
    });
    t.is(inside.status, 200, inside.text);
    t.true(inside.url.endsWith(`/organizations/${organization.id}`), inside.url);
    t.is((await new TestBrowser(service.url).open(service.url + path)).status, 200);
  });

  test.serial(`with REGISTRATION=${registration}, an invited user may register through SSO`, async (t) => {
    const { path, organization } = await invite(service);
    const sub = newName();
    provider.say(({ payload }) => Object.assign(payload, { sub }));
    const browser = new TestBrowser(service.url);
    const query = `?${new URLSearchParams({ return_to: path })}`;
    const page = await signInExternally(service, provider, browser, query);
    t.true(page.url.endsWith(`/organizations/${organization.id}`), page.url);
    t.is((await service.storage.members.list(organization.id)).length, 4);
  });
}
