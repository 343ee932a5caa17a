import test from "ava";
import { apiAt, isProblem } from "../../harness/api.ts";
import { createTeam } from "../../harness/dashboard.ts";
import { providerSettings, signInExternally, startMockProvider } from "../../harness/identity-provider.ts";
import { Person } from "../../harness/person.ts";
import { postForm, startTestService, type TestService } from "../../harness/service.ts";
import { atOnce } from "../../harness/storage.ts";

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

/** An organization, and an invitation to it. */
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

  test(`when registration is ${registration} nobody registers without an invitation, as JSON or as a form`, async (t) => {
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
    const person = new Person(service.url);
    t.is((await person.open(`${service.url}/auth/register`)).status, 403);
    const signIn = await person.open(`${service.url}/auth/login`);
    t.false(signIn.text.includes("/auth/register"), "the sign-in page does not lead there");
  });
}

test.serial("when registration is closed an invitation is for people who have an account", async (t) => {
  const { url, path, invitation, organization } = await invite(services.closed);
  isProblem(t, await register(services.closed, { invitation }), { status: 403, code: "registration_closed" });
  const person = new Person(services.closed.url);
  const page = await person.open(url);
  t.false(page.text.includes("/auth/register"));
  const query = new URLSearchParams({ return_to: path });
  t.is((await person.open(`${services.closed.url}/auth/register?${query}`)).status, 403);
  const external = await signInExternally(
    services.closed,
    provider,
    new Person(services.closed.url),
    `?${query}`,
  );
  t.is(external.status, 403);
  t.is((await services.closed.storage.members.list(organization.id)).length, 3);
});

for (const registration of ["open", "invite"] as const) {
  const service = services[registration];

  test(`when registration is ${registration} an invitation leads into its organization, with its role`, async (t) => {
    const { invitation, organization } = await invite(service, "admin");
    const reply = await register(service, { invitation });
    t.is(reply.status, 201, reply.text);
    t.like(reply.body.organization, { id: organization.id, name: organization.name });
    const me = await apiAt(service.url, reply.body.access_token).send<{ organizations: object[] }>(
      "GET",
      "/dashboard/me",
    );
    t.like(me.body.organizations, [{ id: organization.id, role: "admin" }]);
    t.is(me.body.organizations.length, 1, "and no organization is made");
    isProblem(t, await register(service, { invitation }), { status: 403, code: "invitation_over" });
  });

  for (const [what, wrong] of Object.entries({
    "that was made up": "a".repeat(43),
    "with a NUL": "a\u0000",
    "that is too long": "a".repeat(5000),
  })) {
    test(`when registration is ${registration} an invitation ${what} makes nobody`, async (t) => {
      const username = newName();
      const reply = await register(service, { username, invitation: wrong });
      isProblem(t, reply, { status: 403, code: "invitation_over" });
      t.is(await service.storage.accounts.findByUsername(username), undefined);
    });
  }

  test(`sec 112: when registration is ${registration} an invitation makes one person, however many come at once`, async (t) => {
    const { invitation, organization } = await invite(service);
    const replies = await atOnce(8, () => register(service, { invitation }));
    t.deepEqual(replies.map(({ status }) => status).sort(), [201, ...Array(7).fill(403)]);
    t.is((await service.storage.members.list(organization.id)).length, 4);
  });

  test(`when registration is ${registration} somebody who opens an invitation registers by its page`, async (t) => {
    const { url, path, organization } = await invite(service);
    const person = new Person(service.url);
    const page = await person.open(url);
    const link = page.html.querySelectorAll("a").find(({ text }) => text === "Create an account");
    t.truthy(link, page.text);
    const form = await person.open(new URL(link?.attributes.href ?? "", service.url).href);
    t.is(form.html.querySelector("#organization_name"), null, "there is an organization already");
    const refused = await person.press(form, "Create the account", { username: "x", password: PASSWORD });
    t.is(refused.status, 422);
    const inside = await person.press(refused, "Create the account", {
      username: newName(),
      password: PASSWORD,
    });
    t.is(inside.status, 200, inside.text);
    t.true(inside.url.endsWith(`/organizations/${organization.id}`), inside.url);
    t.is((await new Person(service.url).open(service.url + path)).status, 200);
  });

  test.serial(
    `when registration is ${registration} an invited newcomer may come from the identity provider`,
    async (t) => {
      const { path, organization } = await invite(service);
      const sub = newName();
      provider.say(({ payload }) => Object.assign(payload, { sub }));
      const person = new Person(service.url);
      const query = `?${new URLSearchParams({ return_to: path })}`;
      const page = await signInExternally(service, provider, person, query);
      t.true(page.url.endsWith(`/organizations/${organization.id}`), page.url);
      t.is((await service.storage.members.list(organization.id)).length, 4);
    },
  );
}
