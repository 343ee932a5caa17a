import test from "ava";
import { apiAt } from "../../../harness/clients/api.ts";
import { authorizeUrl, createApp } from "../../../harness/clients/oauth.ts";
import { TestBrowser } from "../../../harness/clients/test-browser.ts";
import { advanceClock } from "../../../harness/clock.ts";
import { freePort } from "../../../harness/port.ts";
import {
  providerSettings,
  signInExternally,
  startMockProvider,
  startWithProvider,
} from "../../../harness/providers/identity-provider.ts";
import { startTestService } from "../../../harness/service.ts";

export const databases = "all";

const { provider, service, close } = await startWithProvider();
test.after.always(close);

let count = 0;
const newSubject = () => `subject-${++count}`;

/** Signs in a user of the provider. */
async function arrive(
  claims: Record<string, unknown>,
  { browser = new TestBrowser(service.url), query = "" } = {},
) {
  provider.say(({ payload }) => Object.assign(payload, claims));
  const page = await signInExternally(service, provider, browser, query);
  return { browser, page };
}

type Account = {
  user: { id: string; username: string; has_password: boolean };
  identities: { issuer: string; subject: string; label: string }[];
  organizations: { name: string; role: string }[];
};

async function accountOf(browser: TestBrowser): Promise<Account> {
  const page = await browser.open(`${service.url}/dashboard/account`, {
    headers: { accept: "application/json" },
  });
  return JSON.parse(page.text);
}

test.serial("the first sign-in creates an account without a password, and an organization", async (t) => {
  const sub = newSubject();
  const { browser, page } = await arrive({ sub, preferred_username: "grace" });
  t.is(page.status, 200, page.text);
  t.true(page.url.startsWith(`${service.url}/dashboard`));
  const account = await accountOf(browser);
  t.is(account.user.username, "grace");
  t.false(account.user.has_password);
  t.like(account.identities, [{ issuer: provider.issuer, subject: sub, label: "grace" }]);
  t.like(account.organizations, [{ name: "grace's organization", role: "owner" }]);

  const again = await arrive({ sub, preferred_username: "renamed" });
  t.is((await accountOf(again.browser)).user.id, account.user.id, "recognized even if the name changed");
});

test.serial("the authorization request carries PKCE, a nonce, a state and the scopes", async (t) => {
  const browser = new TestBrowser(service.url);
  const requests = [];
  for (let round = 0; round < 2; round++) {
    const away = new URL((await browser.open(`${service.url}/auth/sso`)).url);
    t.is(away.origin, new URL(provider.issuer).origin);
    t.is(away.searchParams.get("redirect_uri"), `${service.url}/auth/sso/callback`);
    t.is(away.searchParams.get("code_challenge_method"), "S256");
    t.is(away.searchParams.get("scope"), "openid profile email");
    requests.push(away.searchParams);
  }
  for (const name of ["code_challenge", "nonce", "state"]) {
    const [one, other] = requests.map((query) => query.get(name) as string);
    t.regex(one ?? "", /^[\w-]{43}$/, name);
    t.not(one, other, `${name} is unique per sign-in`);
  }
});

const NAMES: [what: string, claims: Record<string, unknown>, pattern: RegExp][] = [
  ["the e-mail address if there is no name", { email: "ada@example.com" }, /^ada@example\.com$/],
  [
    "the next candidate if the first is invalid",
    { preferred_username: "!", email: "b@example.com" },
    /^b@example\.com$/,
  ],
  ["a name without its spaces", { preferred_username: " Ada Lovelace " }, /^Ada-Lovelace$/],
  ["the start of a name that is too long", { preferred_username: "x".repeat(300) }, /^x{50}$/],
  ["a name without its control characters", { preferred_username: "a\u0000da\u001b" }, /^a-da$/],
  ["a name without its emoji", { preferred_username: "🔑 key" }, /^key$/],
  ["the subject if there is nothing else", {}, /^subject-\d+$/],
];

for (const [what, claims, pattern] of NAMES) {
  test.serial(`a new user is named after ${what}`, async (t) => {
    const { browser } = await arrive({ sub: newSubject(), ...claims });
    t.regex((await accountOf(browser)).user.username, pattern);
  });
}

test.serial("an identity with the name or e-mail of an existing user gets a new account", async (t) => {
  const username = "victim@example.com";
  const own = await service.storage.accounts.create(username, "no hash", { id: "operator" });
  const { browser } = await arrive({
    sub: newSubject(),
    preferred_username: username,
    email: username,
    email_verified: true,
  });
  const { user } = await accountOf(browser);
  t.not(user.id, own?.id);
  t.regex(user.username, /^victim@example\.com-\d{4}$/);
  t.deepEqual(await service.storage.identities.listByUser(own?.id as string), []);
});

test.serial("one subject at two issuers means two users", async (t) => {
  const sub = newSubject();
  const { browser } = await arrive({ sub });
  const { user } = await accountOf(browser);
  t.is(await service.storage.identities.findUserId({ issuer: provider.issuer, subject: sub }), user.id);
  t.is(
    await service.storage.identities.findUserId({ issuer: "https://other.example", subject: sub }),
    undefined,
  );
  t.is(
    await service.storage.identities.findUserId({ issuer: provider.issuer, subject: sub.toUpperCase() }),
    undefined,
  );
});

test.serial("ten concurrent first sign-ins of one identity lead to one account", async (t) => {
  const sub = newSubject();
  const always = ({ payload }: { payload: Record<string, unknown> }) =>
    void (payload.aud && Object.assign(payload, { sub }));
  provider.service.on("beforeTokenSigning", always);
  const browsers = Array.from({ length: 10 }, () => new TestBrowser(service.url));
  const pages = await Promise.all(browsers.map((browser) => signInExternally(service, provider, browser)));
  provider.service.off("beforeTokenSigning", always);
  t.deepEqual([...new Set(pages.map(({ status }) => status))], [200]);
  const ids = await Promise.all(browsers.map(async (browser) => (await accountOf(browser)).user.id));
  t.is(new Set(ids).size, 1);
});

test.serial("an account without a password gets the response of a wrong password", async (t) => {
  const { browser } = await arrive({ sub: newSubject(), preferred_username: "external-only" });
  const { user } = await accountOf(browser);
  for (const password of ["", "guess of a password"]) {
    const { status, body } = await apiAt(service.url).send("POST", "/auth/login", {
      json: { username: user.username, password },
    });
    t.is(status, 401);
    t.is(body.code, "invalid_credentials");
  }
});

test.serial("SSO returns to the requested page, and only to a page of this service", async (t) => {
  const query = (path: string) => `?${new URLSearchParams({ return_to: path })}`;
  const inside = await arrive({ sub: newSubject() }, { query: query("/dashboard/account") });
  t.is(inside.page.url, `${service.url}/dashboard/account`);
  const away = await arrive({ sub: newSubject() }, { query: query("//evil.example/") });
  t.true(away.page.url.startsWith(`${service.url}/dashboard`));
});

test.serial("an authorization uses the session of an SSO sign-in", async (t) => {
  const { app } = await createApp(service);
  const browser = new TestBrowser(service.url);
  const signIn = await browser.open(authorizeUrl(service, app));
  const button = signIn.html.querySelectorAll("a").find(({ text }) => text === "Continue with Example ID");
  t.truthy(button);
  const away = await browser.open(new URL(button?.attributes.href ?? "", service.url).href);
  const consent = await browser.open(await provider.answer(away));
  t.regex(consent.text, /is requesting access as/);
});

test.serial("an error of the provider shows a page and starts no session", async (t) => {
  const browser = new TestBrowser(service.url);
  const away = new URL((await browser.open(`${service.url}/auth/sso`)).url);
  const back = new URL(away.searchParams.get("redirect_uri") ?? "");
  back.search = new URLSearchParams({
    state: away.searchParams.get("state") ?? "",
    error: "access_denied",
    error_description: "<script>alert(1)</script>",
  }).toString();
  const page = await browser.open(back.href);
  t.is(page.status, 400);
  t.regex(page.text, /Example ID did not sign you in/);
  t.false(page.text.includes("alert(1)"));
  t.true((await browser.open(`${service.url}/dashboard`)).url.includes("/auth/login"));
});

test.serial("a user can link an identity and sign in with it", async (t) => {
  const user = await service.createUser([]);
  const sub = newSubject();
  const browser = new TestBrowser(service.url);
  const page = await browser.signIn(await browser.open(`${service.url}/dashboard/account`), user);
  const asked = await browser.press(page, "Link Example ID");
  const href = asked.html.querySelector("a.button")?.attributes.href as string;
  provider.say(({ payload }) => Object.assign(payload, { sub }));
  const linked = await browser.open(
    (await fetch(href, { redirect: "manual" })).headers.get("location") as string,
  );
  t.is(linked.url, `${service.url}/dashboard/account`);
  t.like(await accountOf(browser), { identities: [{ subject: sub }] });
  const other = await arrive({ sub });
  t.is((await accountOf(other.browser)).user.id, user.id);

  const unlinked = await browser.press(await browser.open(linked.url), `Unlink ${sub}`);
  t.is(unlinked.status, 200);
  t.deepEqual((await accountOf(browser)).identities, []);
});

test.serial(
  "an identity of another user can't be linked, nor from a browser with another user",
  async (t) => {
    const sub = newSubject();
    const first = await arrive({ sub });
    const user = await service.createUser([]);
    const browser = new TestBrowser(service.url);
    const page = await browser.signIn(await browser.open(`${service.url}/dashboard/account`), user);
    const hrefOf = async () =>
      (await browser.press(page, "Link Example ID")).html.querySelector("a.button")?.attributes
        .href as string;
    const back = async (href: string) =>
      (await fetch(href, { redirect: "manual" })).headers.get("location") as string;

    provider.say(({ payload }) => Object.assign(payload, { sub }));
    t.is((await browser.open(await back(await hrefOf()))).status, 409);
    provider.say(({ payload }) => Object.assign(payload, { sub: newSubject() }));
    t.is((await first.browser.open(await back(await hrefOf()))).status, 400);
    t.deepEqual((await accountOf(browser)).identities, []);
  },
);

test.serial("the only way to sign in can't be unlinked", async (t) => {
  const sub = newSubject();
  const auth_time = Math.floor(Date.now() / 1000);
  const { browser } = await arrive({ sub, auth_time });
  const open = () => browser.open(`${service.url}/dashboard/account`);
  const refused = await browser.press(await open(), `Unlink ${sub}`);
  t.is(refused.status, 409);
  t.is((await accountOf(browser)).identities.length, 1);
  await browser.press(await open(), "Set password", { new_password: "a password at last" });
  t.is((await browser.press(await open(), `Unlink ${sub}`)).status, 200);
});

test.serial("the API, MCP and the dashboard reject tokens of the identity provider", async (t) => {
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
  test.serial(`with REGISTRATION=${registration}, an unknown identity creates no account`, async (t) => {
    const closed = await startTestService({
      ...providerSettings(provider.issuer),
      REGISTRATION: registration,
    });
    t.teardown(() => closed.close());
    const browser = new TestBrowser(closed.url);
    const page = await signInExternally(closed, provider, browser);
    t.is(page.status, status);
    t.regex(page.text, /You need an invitation to create one/);
    t.true((await browser.open(`${closed.url}/dashboard`)).url.includes("/auth/login"));
  });
}

test.serial("the service starts while the provider is unreachable, says so, and recovers", async (t) => {
  const port = await freePort();
  const lonely = await startTestService(providerSettings(`http://localhost:${port}`));
  t.teardown(() => lonely.close());
  const user = await lonely.createUser([]);
  const browser = new TestBrowser(lonely.url);
  const page = await browser.open(`${lonely.url}/auth/login`);
  t.is(page.status, 200);
  t.regex(page.text, /Example ID is unavailable right now/);
  t.is((await browser.open(`${lonely.url}/auth/sso`)).status, 503);
  t.is((await browser.signIn(page, user)).status, 200, "signing in by password works");

  const back = await startMockProvider(port);
  t.teardown(() => back.stop());
  advanceClock(61_000);
  t.regex(
    (await new TestBrowser(lonely.url).open(`${lonely.url}/auth/login`)).text,
    /Continue with Example ID/,
  );
  t.is((await signInExternally(lonely, back, new TestBrowser(lonely.url))).status, 200);
});
