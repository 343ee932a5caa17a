import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import test, { type ExecutionContext } from "ava";
import { createProtected } from "../../../harness/clients/second-factor.ts";
import { type Page, TestBrowser } from "../../../harness/clients/test-browser.ts";
import { advanceClock } from "../../../harness/clock.ts";
import {
  providerSettings,
  signInExternally,
  startMockProvider,
  startWithProvider,
} from "../../../harness/providers/identity-provider.ts";
import { startTestService } from "../../../harness/service.ts";

const { provider, service, close } = await startWithProvider();

test.after.always(close);

/** Asserts that the page has no way on and no user is signed in. */
async function isRefused(t: ExecutionContext, browser: TestBrowser, page: Page) {
  t.is(page.status, 400, page.text);
  t.is(page.headers.get("location"), null);
  t.true(
    (await browser.open(`${service.url}/dashboard`)).url.includes("/auth/login"),
    "no user is signed in",
  );
}

test.serial("a pending sign-in expires after ten minutes", async (t) => {
  const browser = new TestBrowser(service.url);
  const back = await provider.answer(await browser.open(`${service.url}/auth/sso`));
  advanceClock(10 * 60_000 + 1000);
  await isRefused(t, browser, await browser.open(back));
});

test.serial("sign-ins in several tabs of a browser don't interfere", async (t) => {
  const browser = new TestBrowser(service.url);
  const [first, second] = [
    await provider.answer(await browser.open(`${service.url}/auth/sso?return_to=/dashboard/account`)),
    await provider.answer(await browser.open(`${service.url}/auth/sso?return_to=/dashboard`)),
  ];
  t.regex((await browser.open(second)).url, /\/dashboard/);
  t.regex((await browser.open(first)).url, /\/dashboard\/account$/);
});

test.serial("any number of sign-ins may be started, and the last ones completed", async (t) => {
  const browser = new TestBrowser(service.url);
  const long = `/dashboard/links?search=${"x".repeat(1000)}`;
  const pages: Page[] = [];
  for (let count = 0; count < 60; count++) {
    const query = count % 2 ? `?return_to=${encodeURIComponent(long)}` : "";
    pages.push(await browser.open(`${service.url}/auth/sso${query}`));
    t.is(pages.at(-1)?.status, 303, `${count}`);
    advanceClock(10);
  }
  const cookies = await browser.jar.getCookieString(`${service.url}/auth/sso/callback`);
  t.true(cookies.length < 6000, `${cookies.length}`);
  const [first, last, beforeLast] = [pages.at(0), pages.at(-1), pages.at(-2)] as [Page, Page, Page];
  await isRefused(t, browser, await browser.open(await provider.answer(first)));
  t.is((await browser.open(await provider.answer(beforeLast))).status, 200);
  t.regex((await browser.open(await provider.answer(last))).url, /\/dashboard/);
});

test.serial("a pending sign-in is kept in a signed, HttpOnly, SameSite cookie", async (t) => {
  const browser = new TestBrowser(service.url);
  const away = await browser.open(`${service.url}/auth/sso`);
  const cookies = await browser.jar.getCookies(`${service.url}/auth/sso/callback`);
  const mine = cookies.filter(({ key }) => key.startsWith("sso-"));
  t.is(mine.length, 2, "the cookie and its signature");
  for (const { httpOnly, sameSite, path } of mine)
    t.deepEqual([httpOnly, sameSite, path], [true, "lax", "/auth/sso"]);

  const forged = mine.find(({ key }) => !key.endsWith(".sig"));
  if (!forged) return t.fail();
  const remembered = JSON.parse(Buffer.from(forged.value, "base64url").toString());
  const changed = { ...remembered, returnTo: "https://evil.example/" };
  forged.value = Buffer.from(JSON.stringify(changed)).toString("base64url");
  await browser.jar.setCookie(forged, service.url);
  await isRefused(t, browser, await browser.open(await provider.answer(away)));
});

test.serial("SSO never signs in with an existing session ID", async (t) => {
  const browser = new TestBrowser(service.url);
  const user = await service.createUser([]);
  await browser.signIn(await browser.open(`${service.url}/auth/login`), user);
  const thief = new TestBrowser(service.url);
  for (const { key, value } of await browser.jar.getCookies(service.url)) {
    await thief.jar.setCookie(`${key}=${value}; path=/`, service.url);
  }
  t.is((await thief.open(`${service.url}/dashboard`)).status, 200);
  await signInExternally(service, provider, browser);
  t.true((await thief.open(`${service.url}/dashboard`)).url.includes("/auth/login"));
  t.false((await browser.open(`${service.url}/dashboard/account`)).text.includes(user.username));
});

const DISCOVERY: Record<string, Record<string, unknown>> = {
  "of another issuer": { issuer: "https://evil.example" },
  "without asymmetric signatures": { id_token_signing_alg_values_supported: ["none", "HS256"] },
};

for (const [what, claims] of Object.entries(DISCOVERY)) {
  test.serial(`a provider ${what} counts as unreachable`, async (t) => {
    const evil = await startMockProvider();
    t.teardown(() => evil.stop());
    evil.service.on(
      "beforeWellKnownOpenIdConfiguration",
      ({ body }) => void Object.assign(body as object, claims),
    );
    const other = await startTestService(providerSettings(evil.issuer));
    t.teardown(() => other.close());
    t.is((await new TestBrowser(other.url).open(`${other.url}/auth/sso`)).status, 503);
    t.regex(
      (await new TestBrowser(other.url).open(`${other.url}/auth/login`)).text,
      /is unavailable right now/,
    );
  });
}

test.serial("if the provider announces the iss parameter, a callback without it is rejected", async (t) => {
  const careful = await startMockProvider();
  t.teardown(() => careful.stop());
  careful.service.on("beforeWellKnownOpenIdConfiguration", ({ body }) => {
    Object.assign(body as object, { authorization_response_iss_parameter_supported: true });
  });
  const other = await startTestService(providerSettings(careful.issuer));
  t.teardown(() => other.close());
  const silent = await signInExternally(other, careful, new TestBrowser(other.url));
  t.is(silent.status, 400);
  careful.service.on("beforeAuthorizeRedirect", ({ url }) => url.searchParams.set("iss", careful.issuer));
  t.is((await signInExternally(other, careful, new TestBrowser(other.url))).status, 200);
});

test.serial(
  "a provider that becomes unreachable during a sign-in is reported and retried later",
  async (t) => {
    const shaky = await startMockProvider();
    const port = Number(new URL(shaky.issuer).port);
    const other = await startTestService(providerSettings(shaky.issuer));
    t.teardown(() => other.close());
    const browser = new TestBrowser(other.url);
    const back = await shaky.answer(await browser.open(`${other.url}/auth/sso`));
    await shaky.stop();
    const page = await browser.open(back);
    t.is(page.status, 503);
    t.regex(page.text, /Example ID is unavailable right now/);
    t.true((await browser.open(`${other.url}/dashboard`)).url.includes("/auth/login"));
    const again = await startMockProvider(port);
    t.teardown(() => again.stop());
    t.is((await signInExternally(other, again, browser)).status, 200);
  },
);

test.serial(
  "a provider that accepts connections and never responds doesn't delay password sign-ins",
  async (t) => {
    const silent = createServer(() => {}).listen(0, "localhost");
    await once(silent, "listening");
    t.teardown(() => {
      silent.closeAllConnections();
      silent.close();
    });
    const { port } = silent.address() as AddressInfo;
    const other = await startTestService(providerSettings(`http://localhost:${port}`));
    t.teardown(() => other.close());
    const browser = new TestBrowser(other.url);
    const page = await browser.open(`${other.url}/auth/login`);
    t.is(page.status, 200);
    t.is((await browser.signIn(page, await other.createUser([]))).status, 200);
    t.is((await browser.open(`${other.url}/auth/sso`)).status, 503);
    t.regex(
      (await new TestBrowser(other.url).open(`${other.url}/auth/login`)).text,
      /Example ID is unavailable right now/,
    );
  },
);

test.serial("no request can choose the provider: only the settings do", async (t) => {
  const evil = new URLSearchParams({ issuer: "https://evil.example", iss: "https://evil.example" });
  const away = await new TestBrowser(service.url).open(`${service.url}/auth/sso?${evil}`);
  t.is(new URL(away.url).origin, new URL(provider.issuer).origin);

  const none = await startTestService();
  t.teardown(() => none.close());
  const browser = new TestBrowser(none.url);
  for (const path of ["/auth/sso", `/auth/sso?${evil}`, `/auth/sso/callback?code=a&state=b&${evil}`]) {
    t.is((await browser.open(none.url + path)).status, 404, path);
  }
  const signIn = await browser.open(`${none.url}/auth/login`);
  t.notRegex(signIn.text, /Continue with|\/auth\/sso/);
  const account = await browser.signIn(signIn, await none.createUser([]));
  const csrf = account.html.querySelector("[name=csrf]")?.attributes.value ?? "";
  const body = new URLSearchParams({ csrf, issuer: "https://evil.example" });
  const linked = await browser.open(`${none.url}/dashboard/account/identities`, { method: "POST", body });
  t.is(linked.status, 404);
});

const ACCOUNT = `${service.url}/dashboard/account`;

let count = 0;

/** Signs in a user of the provider, whose ID token has these claims. */
async function arrive(claims: object = {}, browser = new TestBrowser(service.url), query = "") {
  const sub = `subject-${++count}`;
  provider.say(({ payload }) => Object.assign(payload, { sub, preferred_username: sub, ...claims }));
  const page = await signInExternally(service, provider, browser, query);
  return { browser, page, sub };
}

const now = () => Math.floor(Date.now() / 1000);

async function usernameIn(browser: TestBrowser): Promise<string | undefined> {
  const { text } = await browser.open(ACCOUNT, { headers: { accept: "application/json" } });
  return JSON.parse(text).user?.username;
}

test.serial("an SSO sign-in without auth_time doesn't count as a recent sign-in", async (t) => {
  const { browser, sub } = await arrive();
  t.is(await usernameIn(browser), sub);
  const asked = await browser.press(await browser.open(ACCOUNT), "Delete account");
  t.true(asked.url.includes("/auth/login") && asked.url.includes("again=1"), asked.url);

  await arrive({ sub, auth_time: now() }, browser, "?again=1");
  const gone = await browser.press(await browser.open(ACCOUNT), "Delete account");
  t.is(gone.url, `${service.url}/auth/login?deleted=1`);
});

test.serial("an auth_time in the future is refused, except for a small difference of clocks", async (t) => {
  const { browser, page } = await arrive({ auth_time: now() + 60 });
  t.is(page.status, 400);
  t.is(await usernameIn(browser), undefined);
  const ahead = await arrive({ auth_time: now() + 20 });
  t.is(await usernameIn(ahead.browser), ahead.sub);
});

test.serial("another site's link to SSO doesn't replace the session without asking", async (t) => {
  const { browser, sub } = await arrive();
  for (const site of ["cross-site", "same-site"]) {
    const page = await browser.open(`${service.url}/auth/sso`, { headers: { "sec-fetch-site": site } });
    t.is(page.status, 200, site);
    t.true(page.url.startsWith(service.url), "no redirect to the provider");
    t.true(page.text.includes(sub), "the page names the signed-in user");
    const link = page.html.querySelectorAll("a").find(({ text }) => text === "Continue with Example ID");
    const href = new URL(link?.attributes.href ?? "", service.url).href;
    const away = await browser.open(href, { headers: { "sec-fetch-site": "same-origin" } });
    t.true(away.url.startsWith(provider.issuer));
  }
  const visitor = new TestBrowser(service.url);
  const away = await visitor.open(`${service.url}/auth/sso`, { headers: { "sec-fetch-site": "cross-site" } });
  t.true(away.url.startsWith(provider.issuer), "without a session, nothing can be replaced");
});

test.serial("unlinking an identity ends the sessions that it started, and no others", async (t) => {
  const user = await service.createUser([]);
  const own = new TestBrowser(service.url);
  await own.signIn(await own.open(`${service.url}/auth/login`), user);
  const sub = "linked";
  await service.storage.identities.link(
    user.id,
    { issuer: provider.issuer, subject: sub, label: sub },
    { id: user.id },
  );
  const { browser } = await arrive({ sub });
  t.is(await usernameIn(browser), user.username);
  await own.press(await own.open(ACCOUNT), `Unlink ${sub}`);
  t.is(await usernameIn(browser), undefined);
  t.is(await usernameIn(own), user.username);
});

test.serial(
  "an identity that is unlinked before the second factor is proved starts no session",
  async (t) => {
    const user = await createProtected(service);
    const identity = { issuer: provider.issuer, subject: "unlinked-meanwhile" };
    await service.storage.identities.link(user.id, { ...identity, label: null }, { id: user.id });
    const { browser, page } = await arrive({ sub: identity.subject });
    t.is(page.url, `${service.url}/auth/second-factor`);
    t.true(await service.storage.identities.unlink(user.id, identity, { id: user.id }));
    const done = await browser.press(page, "Continue", { totp: user.code() });
    t.is(done.status, 400);
    t.is(await usernameIn(browser), undefined);
  },
);

/** Starts a service whose identity provider answers like this. Returns a function that opens its pages. */
async function serveWith(t: ExecutionContext, answer: RequestListener) {
  const provider = createServer(answer).listen(0, "localhost");
  await once(provider, "listening");
  const { port } = provider.address() as AddressInfo;
  const service = await startTestService(providerSettings(`http://localhost:${port}`));
  t.teardown(async () => {
    provider.closeAllConnections();
    provider.close();
    await service.close();
  });
  const browser = new TestBrowser(service.url);
  return (path: string) => browser.open(service.url + path);
}

test("sign-in pages wait once for a provider that hangs", async (t) => {
  const attempts = { begun: 0, ended: 0 };
  const open = await serveWith(t, (_request, response) => {
    attempts.begun++;
    response.once("close", () => attempts.ended++);
  });
  // If each page waited for a second, the first attempt would have been given up.
  for (let pages = 0; pages < 10; pages++) {
    const { status, text } = await open("/auth/login");
    t.is(status, 200);
    // Until it responds, nothing says that it can't be reached.
    t.notRegex(text, /is unavailable right now/);
  }
  t.deepEqual(attempts, { begun: 1, ended: 0 });
});

test("a response without an end is given up before it fills the memory", async (t) => {
  let sent = 0;
  const chunk = Buffer.alloc(64 * 1024, " ");
  const open = await serveWith(t, (_request, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    const send = () => {
      while (!response.destroyed && response.write(chunk)) sent += chunk.length;
      sent += chunk.length;
    };
    response.on("drain", send);
    send();
  });
  const page = await open("/auth/sso");
  t.is(page.status, 503);
  t.regex(page.text, /Example ID is unavailable right now/);
  // Besides what was read, the kernel takes a few megabytes.
  t.true(sent < 32 * 1024 * 1024, `${sent} bytes`);
});
