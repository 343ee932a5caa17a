import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import test, { type ExecutionContext } from "ava";
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
