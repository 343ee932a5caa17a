import test from "ava";
import { apiAt } from "../../harness/api.ts";
import { advanceClock } from "../../harness/clock.ts";
import {
  providerSettings,
  signInExternally,
  startMockProvider,
  startWithProvider,
} from "../../harness/identity-provider.ts";
import { authorizeUrl, createApp } from "../../harness/oauth.ts";
import { Person } from "../../harness/person.ts";
import { freePort } from "../../harness/port.ts";
import { startTestService } from "../../harness/service.ts";

const { provider, service, close } = await startWithProvider();
test.after.always(close);

let count = 0;
const newSubject = () => `subject-${++count}`;

/** Signs somebody in who is known at the provider. */
async function arrive(
  claims: Record<string, unknown>,
  { person = new Person(service.url), query = "" } = {},
) {
  provider.say(({ payload }) => Object.assign(payload, claims));
  const page = await signInExternally(service, provider, person, query);
  return { person, page };
}

type Account = {
  user: { id: string; username: string; has_password: boolean };
  identities: { issuer: string; subject: string; label: string }[];
  organizations: { name: string; role: string }[];
};

async function accountOf(person: Person): Promise<Account> {
  const page = await person.open(`${service.url}/dashboard/account`, {
    headers: { accept: "application/json" },
  });
  return JSON.parse(page.text);
}

test.serial("the first sign-in makes an account without a password, and an organization", async (t) => {
  const sub = newSubject();
  const { person, page } = await arrive({ sub, preferred_username: "grace" });
  t.is(page.status, 200, page.text);
  t.true(page.url.startsWith(`${service.url}/dashboard`));
  const account = await accountOf(person);
  t.is(account.user.username, "grace");
  t.false(account.user.has_password);
  t.like(account.identities, [{ issuer: provider.issuer, subject: sub, label: "grace" }]);
  t.like(account.organizations, [{ name: "grace's organization", role: "owner" }]);

  const again = await arrive({ sub, preferred_username: "renamed" });
  t.is((await accountOf(again.person)).user.id, account.user.id, "known again, whatever the name is now");
});

test.serial("the request carries PKCE, a nonce, a state, and the scopes", async (t) => {
  const person = new Person(service.url);
  const requests = [];
  for (let round = 0; round < 2; round++) {
    const away = new URL((await person.open(`${service.url}/auth/sso`)).url);
    t.is(away.origin, new URL(provider.issuer).origin);
    t.is(away.searchParams.get("redirect_uri"), `${service.url}/auth/sso/callback`);
    t.is(away.searchParams.get("code_challenge_method"), "S256");
    t.is(away.searchParams.get("scope"), "openid profile email");
    requests.push(away.searchParams);
  }
  for (const name of ["code_challenge", "nonce", "state"]) {
    const [one, other] = requests.map((query) => query.get(name) as string);
    t.regex(one ?? "", /^[\w-]{43}$/, name);
    t.not(one, other, `sec 123: ${name} is of one sign-in`);
  }
});

const NAMES: [what: string, claims: Record<string, unknown>, pattern: RegExp][] = [
  ["an address where there is no name", { email: "ada@example.com" }, /^ada@example\.com$/],
  [
    "the next best where a name cannot be one",
    { preferred_username: "!", email: "b@example.com" },
    /^b@example\.com$/,
  ],
  ["what is left of a name with spaces", { preferred_username: " Ada Lovelace " }, /^Ada-Lovelace$/],
  ["a part of a name that is too long", { preferred_username: "x".repeat(300) }, /^x{50}$/],
  ["what is left of a name with a NUL", { preferred_username: "a\u0000da\u001b" }, /^a-da$/],
  ["what is left of a name with a picture", { preferred_username: "🔑 key" }, /^key$/],
  ["the subject where there is nothing else", {}, /^subject-\d+$/],
];

for (const [what, claims, pattern] of NAMES) {
  test.serial(`a newcomer is called by ${what}`, async (t) => {
    const { person } = await arrive({ sub: newSubject(), ...claims });
    t.regex((await accountOf(person)).user.username, pattern);
  });
}

test.serial(
  "sec 125: a name or address that is somebody's here leads to a new account, not to that one",
  async (t) => {
    const username = "victim@example.com";
    const own = await service.storage.accounts.create(username, "no hash", { actor: "operator" });
    const { person } = await arrive({
      sub: newSubject(),
      preferred_username: username,
      email: username,
      email_verified: true,
    });
    const { user } = await accountOf(person);
    t.not(user.id, own?.id);
    t.regex(user.username, /^victim@example\.com-\d{4}$/);
    t.deepEqual(await service.storage.identities.ofUser(own?.id as string), []);
  },
);

test.serial("sec 125: one subject of two issuers is two people", async (t) => {
  const sub = newSubject();
  const { person } = await arrive({ sub });
  const { user } = await accountOf(person);
  t.is(await service.storage.identities.ownerOf({ issuer: provider.issuer, subject: sub }), user.id);
  t.is(
    await service.storage.identities.ownerOf({ issuer: "https://other.example", subject: sub }),
    undefined,
  );
  t.is(
    await service.storage.identities.ownerOf({ issuer: provider.issuer, subject: sub.toUpperCase() }),
    undefined,
  );
});

test.serial("of ten first sign-ins of one person at once all lead to one account", async (t) => {
  const sub = newSubject();
  const always = ({ payload }: { payload: Record<string, unknown> }) =>
    void (payload.aud && Object.assign(payload, { sub }));
  provider.service.on("beforeTokenSigning", always);
  const people = Array.from({ length: 10 }, () => new Person(service.url));
  const pages = await Promise.all(people.map((person) => signInExternally(service, provider, person)));
  provider.service.off("beforeTokenSigning", always);
  t.deepEqual([...new Set(pages.map(({ status }) => status))], [200]);
  const ids = await Promise.all(people.map(async (person) => (await accountOf(person)).user.id));
  t.is(new Set(ids).size, 1);
});

test.serial("sec 110: an account without a password is answered as a wrong password is", async (t) => {
  const { person } = await arrive({ sub: newSubject(), preferred_username: "external-only" });
  const { user } = await accountOf(person);
  for (const password of ["", "guess of a password"]) {
    const { status, body } = await apiAt(service.url).send("POST", "/auth/login", {
      json: { username: user.username, password },
    });
    t.is(status, 401);
    t.is(body.code, "invalid_credentials");
  }
});

test.serial("the page that was wanted is reached, and only one of ours", async (t) => {
  const query = (path: string) => `?${new URLSearchParams({ return_to: path })}`;
  const inside = await arrive({ sub: newSubject() }, { query: query("/dashboard/account") });
  t.is(inside.page.url, `${service.url}/dashboard/account`);
  const away = await arrive({ sub: newSubject() }, { query: query("//evil.example/") });
  t.true(away.page.url.startsWith(`${service.url}/dashboard`));
});

test.serial("the session of an external sign-in is the one that an authorization finds", async (t) => {
  const { app } = await createApp(service);
  const person = new Person(service.url);
  const signIn = await person.open(authorizeUrl(service, app));
  const button = signIn.html.querySelectorAll("a").find(({ text }) => text === "Continue with Example ID");
  t.truthy(button);
  const away = await person.open(new URL(button?.attributes.href ?? "", service.url).href);
  const consent = await person.open(await provider.answer(away));
  t.regex(consent.text, /Allow access\?/);
});

test.serial("a refusal of the provider is a calm page, and signs nobody in", async (t) => {
  const person = new Person(service.url);
  const away = new URL((await person.open(`${service.url}/auth/sso`)).url);
  const back = new URL(away.searchParams.get("redirect_uri") ?? "");
  back.search = new URLSearchParams({
    state: away.searchParams.get("state") ?? "",
    error: "access_denied",
    error_description: "<script>alert(1)</script>",
  }).toString();
  const page = await person.open(back.href);
  t.is(page.status, 400);
  t.regex(page.text, /Example ID did not sign you in/);
  t.false(page.text.includes("alert(1)"));
  t.true((await person.open(`${service.url}/dashboard`)).url.includes("/auth/login"));
});

test.serial("an identity is linked to the account of who asks for it, and signs him or her in", async (t) => {
  const user = await service.createUser([]);
  const sub = newSubject();
  const person = new Person(service.url);
  const page = await person.signIn(await person.open(`${service.url}/dashboard/account`), user);
  const asked = await person.press(page, "Link Example ID");
  const href = asked.html.querySelector("a.button")?.attributes.href as string;
  provider.say(({ payload }) => Object.assign(payload, { sub }));
  const linked = await person.open(
    (await fetch(href, { redirect: "manual" })).headers.get("location") as string,
  );
  t.is(linked.url, `${service.url}/dashboard/account`);
  t.like(await accountOf(person), { identities: [{ subject: sub }] });
  const other = await arrive({ sub });
  t.is((await accountOf(other.person)).user.id, user.id);

  const unlinked = await person.press(await person.open(linked.url), `Unlink ${sub}`);
  t.is(unlinked.status, 200);
  t.deepEqual((await accountOf(person)).identities, []);
});

test.serial(
  "an identity of somebody else is not linked, nor one to an account that another browser is signed in to",
  async (t) => {
    const sub = newSubject();
    const first = await arrive({ sub });
    const user = await service.createUser([]);
    const person = new Person(service.url);
    const page = await person.signIn(await person.open(`${service.url}/dashboard/account`), user);
    const hrefOf = async () =>
      (await person.press(page, "Link Example ID")).html.querySelector("a.button")?.attributes.href as string;
    const back = async (href: string) =>
      (await fetch(href, { redirect: "manual" })).headers.get("location") as string;

    provider.say(({ payload }) => Object.assign(payload, { sub }));
    t.is((await person.open(await back(await hrefOf()))).status, 409);
    provider.say(({ payload }) => Object.assign(payload, { sub: newSubject() }));
    t.is((await first.person.open(await back(await hrefOf()))).status, 400);
    t.deepEqual((await accountOf(person)).identities, []);
  },
);

test.serial("the only way in is not taken away", async (t) => {
  const sub = newSubject();
  const { person } = await arrive({ sub });
  const open = () => person.open(`${service.url}/dashboard/account`);
  const refused = await person.press(await open(), `Unlink ${sub}`);
  t.is(refused.status, 409);
  t.is((await accountOf(person)).identities.length, 1);
  await person.press(await open(), "Set a password", { new_password: "a password at last" });
  t.is((await person.press(await open(), `Unlink ${sub}`)).status, 200);
});

test.serial("sec 89: no token of the identity provider opens the API, MCP or the dashboard", async (t) => {
  const tokens: string[] = [];
  const keep = ({ body }: { body: Record<string, string> }) =>
    tokens.push(body.id_token ?? "", body.access_token ?? "");
  provider.service.once("beforeResponse", keep as never);
  await arrive({ sub: newSubject() });
  t.is(tokens.length, 2);
  for (const token of tokens) {
    const api = apiAt(service.url, token);
    t.is((await api.send("GET", "/v1/links")).status, 401);
    t.is((await api.send("POST", "/mcp", { json: {} })).status, 401);
    t.is((await api.send("GET", "/dashboard/me")).status, 401);
  }
});

for (const [registration, status] of [
  ["closed", 403],
  ["invite", 403],
] as const) {
  test.serial(
    `when registration is ${registration} an identity that nobody has makes no account`,
    async (t) => {
      const closed = await startTestService({
        ...providerSettings(provider.issuer),
        REGISTRATION: registration,
      });
      t.teardown(() => closed.close());
      const person = new Person(closed.url);
      const page = await signInExternally(closed, provider, person);
      t.is(page.status, status);
      t.regex(page.text, /registration is closed/);
      t.true((await person.open(`${closed.url}/dashboard`)).url.includes("/auth/login"));
    },
  );
}

test.serial(
  "the service starts and serves while the provider is away, says so, and finds it when it is back",
  async (t) => {
    const port = await freePort();
    const lonely = await startTestService(providerSettings(`http://localhost:${port}`));
    t.teardown(() => lonely.close());
    const user = await lonely.createUser([]);
    const person = new Person(lonely.url);
    const page = await person.open(`${lonely.url}/auth/login`);
    t.is(page.status, 200);
    t.regex(page.text, /Example ID cannot be reached at the moment/);
    t.is((await person.open(`${lonely.url}/auth/sso`)).status, 503);
    t.is((await person.signIn(page, user)).status, 200, "a password is enough");

    const back = await startMockProvider(port);
    t.teardown(() => back.stop());
    advanceClock(61_000);
    t.regex((await new Person(lonely.url).open(`${lonely.url}/auth/login`)).text, /Continue with Example ID/);
    t.is((await signInExternally(lonely, back, new Person(lonely.url))).status, 200);
  },
);
