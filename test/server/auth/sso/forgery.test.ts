import test, { type ExecutionContext } from "ava";
import { type Page, TestBrowser } from "../../../harness/clients/test-browser.ts";
import { freePort } from "../../../harness/port.ts";
import {
  type Forgery,
  WRONG_CLAIMS,
  WRONG_SIGNATURES,
  withClaims,
} from "../../../harness/providers/forgery.ts";
import {
  providerSettings,
  signInExternally,
  startMockProvider,
  type TestProvider,
} from "../../../harness/providers/identity-provider.ts";
import { startOidcProvider } from "../../../harness/providers/oidc-identity-provider.ts";
import { startTestService, type TestService } from "../../../harness/service.ts";

const EVIL = "https://evil.example";

type Place = { provider: TestProvider; service: TestService };

/** The same forgeries, at a real provider and at a scripted one. */
async function startPlaces(): Promise<Record<string, Place>> {
  const port = await freePort();
  const atReal = await startTestService(providerSettings(`http://localhost:${port}`));
  const mock = await startMockProvider();
  return {
    "oidc-provider": { service: atReal, provider: await startOidcProvider(atReal, port) },
    "oauth2-mock-server": { service: await startTestService(providerSettings(mock.issuer)), provider: mock },
  };
}

const places = await startPlaces();
test.after.always(async () => {
  for (const { service, provider } of Object.values(places)) {
    await service.close();
    await provider.stop();
  }
});

/** Asserts that the page has no way on and no user is signed in. */
async function isRefused(t: ExecutionContext, { service }: Place, browser: TestBrowser, page: Page) {
  t.is(page.status, 400, page.text);
  t.is(page.headers.get("location"), null);
  t.true(page.headers.get("content-type")?.includes("text/html"));
  t.deepEqual(
    (await browser.jar.getCookies(service.url)).filter(({ key }) => key === "session"),
    [],
  );
  t.true(
    (await browser.open(`${service.url}/dashboard`)).url.includes("/auth/login"),
    "no user is signed in",
  );
}

/** Signs in while the ID token is tampered with. */
async function arriveWith(
  forge: Forgery,
  { service, provider }: Place,
  browser = new TestBrowser(service.url),
) {
  provider.tamper((body) => {
    const forged = forge(String(body.id_token), provider);
    if (forged === undefined) delete body.id_token;
    else body.id_token = forged;
  });
  return signInExternally(service, provider, browser);
}

const ANSWERS: Record<string, (body: Record<string, unknown>) => unknown> = {
  "an error": (body) => {
    for (const name of Object.keys(body)) delete body[name];
    body.error = "invalid_grant";
  },
  "no access token": (body) => delete body.access_token,
  "tokens of an unknown type": (body) => Object.assign(body, { token_type: "mac" }),
  "a lifetime that is not a number": (body) => Object.assign(body, { expires_in: {} }),
};

const CALLBACKS: Record<string, (url: URL, place: Place) => unknown> = {
  "the issuer of another provider": (url) => url.searchParams.set("iss", EVIL),
  "two issuers": (url, { provider }) => {
    url.searchParams.append("iss", provider.issuer);
    url.searchParams.append("iss", EVIL);
  },
  "another state": (url) => url.searchParams.set("state", "a".repeat(43)),
  "no state": (url) => url.searchParams.delete("state"),
  "an empty state": (url) => url.searchParams.set("state", ""),
  "two states": (url) => url.searchParams.append("state", url.searchParams.get("state") ?? ""),
  "a state with a NUL": (url) => url.searchParams.set("state", "\u0000"),
  "no code": (url) => url.searchParams.delete("code"),
  "an empty code": (url) => url.searchParams.set("code", ""),
  "two codes": (url) => url.searchParams.append("code", "another"),
  "an error and a code": (url) => url.searchParams.set("error", "access_denied"),
  "an unsigned ID token": (url) => url.searchParams.set("id_token", "e30.e30."),
};

// Serial, because the next response is tampered with.
for (const [name, place] of Object.entries(places)) {
  const { service, provider } = place;
  const arrivals = () => new TestBrowser(service.url);

  test.serial(`at ${name}, a sign-in without tampering succeeds`, async (t) => {
    const page = await arriveWith((token) => token, place);
    t.is(page.status, 200, page.text);
    t.true(page.url.startsWith(`${service.url}/dashboard`));
    const resigned = await arriveWith((token) => withClaims(token, provider, () => ({ extra: true })), place);
    t.is(resigned.status, 200, "the forgeries below are rejected for what they change");
  });

  for (const [what, forge] of Object.entries(WRONG_CLAIMS)) {
    test.serial(`at ${name}, an ID token with ${what} is rejected`, async (t) => {
      const browser = arrivals();
      await isRefused(t, place, browser, await arriveWith(forge, place, browser));
    });
  }

  for (const [what, forge] of Object.entries(WRONG_SIGNATURES)) {
    test.serial(`at ${name}, an ID token with ${what} is rejected`, async (t) => {
      const browser = arrivals();
      await isRefused(t, place, browser, await arriveWith(forge, place, browser));
    });
  }

  for (const [what, change] of Object.entries(ANSWERS)) {
    test.serial(`at ${name}, a token response with ${what} is rejected`, async (t) => {
      const browser = arrivals();
      provider.tamper(change);
      await isRefused(t, place, browser, await signInExternally(service, provider, browser));
    });
  }

  for (const [what, change] of Object.entries(CALLBACKS)) {
    test.serial(`at ${name}, a callback with ${what} is rejected`, async (t) => {
      const browser = arrivals();
      const back = new URL(await provider.answer(await browser.open(`${service.url}/auth/sso`)));
      change(back, place);
      await isRefused(t, place, browser, await browser.open(back.href));
    });
  }

  test.serial(`at ${name}, the ID token of another sign-in is rejected`, async (t) => {
    let stolen = "";
    await arriveWith((token) => {
      stolen = token;
      return token;
    }, place);
    const browser = arrivals();
    await isRefused(t, place, browser, await arriveWith(() => stolen, place, browser));
  });

  test.serial(
    `at ${name}, a sign-in that another browser started is rejected, and stays valid there`,
    async (t) => {
      const [browser, victim] = [arrivals(), arrivals()];
      const back = await provider.answer(await browser.open(`${service.url}/auth/sso`));
      await victim.open(`${service.url}/auth/sso`);
      await isRefused(t, place, victim, await victim.open(back));
      t.is((await browser.open(back)).status, 200);
    },
  );

  test.serial(`at ${name}, another browser's code is rejected with the own state`, async (t) => {
    const [attacker, victim] = [arrivals(), arrivals()];
    const stolen = new URL(await provider.answer(await attacker.open(`${service.url}/auth/sso`)));
    const own = new URL(await provider.answer(await victim.open(`${service.url}/auth/sso`)));
    own.searchParams.set("code", stolen.searchParams.get("code") as string);
    await isRefused(t, place, victim, await victim.open(own.href));
  });

  test.serial(`at ${name}, a callback works once`, async (t) => {
    const browser = arrivals();
    const back = await provider.answer(await browser.open(`${service.url}/auth/sso`));
    t.is((await browser.open(back)).status, 200);
    t.is((await browser.open(back)).status, 400);
  });
}

test.serial("a code of one provider is rejected at another provider's service", async (t) => {
  const [one, other] = Object.values(places) as [Place, Place];
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    const browser = new TestBrowser(to.service.url);
    const own = new URL(await to.provider.answer(await browser.open(`${to.service.url}/auth/sso`)));
    const elsewhere = new TestBrowser(from.service.url);
    const theirs = new URL(await from.provider.answer(await elsewhere.open(`${from.service.url}/auth/sso`)));
    own.searchParams.set("code", theirs.searchParams.get("code") as string);
    own.searchParams.set("iss", from.provider.issuer);
    await isRefused(t, to, browser, await browser.open(own.href));
  }
});
