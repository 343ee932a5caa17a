import test, { type ExecutionContext } from "ava";
import { type Forgery, WRONG_CLAIMS, WRONG_SIGNATURES, withClaims } from "../../harness/forgery.ts";
import {
  providerSettings,
  signInExternally,
  startMockProvider,
  type TestProvider,
} from "../../harness/identity-provider.ts";
import { startOidcProvider } from "../../harness/oidc-identity-provider.ts";
import { type Page, Person } from "../../harness/person.ts";
import { freePort } from "../../harness/port.ts";
import { startTestService, type TestService } from "../../harness/service.ts";

const EVIL = "https://evil.example";

type Place = { provider: TestProvider; service: TestService };

/** The same forgeries, at a real provider and at one that says what it is told. */
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

/** Nobody is signed in, and the page leads nowhere. */
async function isRefused(t: ExecutionContext, { service }: Place, person: Person, page: Page) {
  t.is(page.status, 400, page.text);
  t.is(page.headers.get("location"), null);
  t.true(page.headers.get("content-type")?.includes("text/html"));
  t.deepEqual(
    (await person.jar.getCookies(service.url)).filter(({ key }) => key === "session"),
    [],
  );
  t.true((await person.open(`${service.url}/dashboard`)).url.includes("/auth/login"), "nobody is signed in");
}

/** Signs in, where somebody in between changes the id_token. */
async function arriveWith(forge: Forgery, { service, provider }: Place, person = new Person(service.url)) {
  provider.tamper((body) => {
    const forged = forge(String(body.id_token), provider);
    if (forged === undefined) delete body.id_token;
    else body.id_token = forged;
  });
  return signInExternally(service, provider, person);
}

const ANSWERS: Record<string, (body: Record<string, unknown>) => unknown> = {
  "an error": (body) => {
    for (const name of Object.keys(body)) delete body[name];
    body.error = "invalid_grant";
  },
  "no access token": (body) => delete body.access_token,
  "tokens of an unknown type": (body) => Object.assign(body, { token_type: "mac" }),
  "a lifetime that is no number": (body) => Object.assign(body, { expires_in: {} }),
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
  "an error beside the code": (url) => url.searchParams.set("error", "access_denied"),
  "an id_token of its own": (url) => url.searchParams.set("id_token", "e30.e30."),
};

// One after the other: what is tampered with is the next answer.
for (const [name, place] of Object.entries(places)) {
  const { service, provider } = place;
  const arrivals = () => new Person(service.url);

  test.serial(`at ${name} whoever is not tampered with signs in`, async (t) => {
    const page = await arriveWith((token) => token, place);
    t.is(page.status, 200, page.text);
    t.true(page.url.startsWith(`${service.url}/dashboard`));
    const resigned = await arriveWith((token) => withClaims(token, provider, () => ({ extra: true })), place);
    t.is(resigned.status, 200, "the forgeries below are refused for what they are");
  });

  for (const [what, forge] of Object.entries(WRONG_CLAIMS)) {
    test.serial(`sec 123, 124, 126: at ${name} an id_token with ${what} signs nobody in`, async (t) => {
      const person = arrivals();
      await isRefused(t, place, person, await arriveWith(forge, place, person));
    });
  }

  for (const [what, forge] of Object.entries(WRONG_SIGNATURES)) {
    test.serial(`sec 124: at ${name} an id_token with ${what} signs nobody in`, async (t) => {
      const person = arrivals();
      await isRefused(t, place, person, await arriveWith(forge, place, person));
    });
  }

  for (const [what, change] of Object.entries(ANSWERS)) {
    test.serial(`sec 124: at ${name} an answer with ${what} signs nobody in`, async (t) => {
      const person = arrivals();
      provider.tamper(change);
      await isRefused(t, place, person, await signInExternally(service, provider, person));
    });
  }

  for (const [what, change] of Object.entries(CALLBACKS)) {
    test.serial(`sec 123, 126: at ${name} a way back with ${what} signs nobody in`, async (t) => {
      const person = arrivals();
      const back = new URL(await provider.answer(await person.open(`${service.url}/auth/sso`)));
      change(back, place);
      await isRefused(t, place, person, await person.open(back.href));
    });
  }

  test.serial(`sec 123: at ${name} the id_token of another sign-in is refused in this one`, async (t) => {
    let stolen = "";
    await arriveWith((token) => {
      stolen = token;
      return token;
    }, place);
    const person = arrivals();
    await isRefused(t, place, person, await arriveWith(() => stolen, place, person));
  });

  test.serial(
    `sec 123: at ${name} a sign-in that another browser began is refused, and stays good there`,
    async (t) => {
      const [person, victim] = [arrivals(), arrivals()];
      const back = await provider.answer(await person.open(`${service.url}/auth/sso`));
      await victim.open(`${service.url}/auth/sso`);
      await isRefused(t, place, victim, await victim.open(back));
      t.is((await person.open(back)).status, 200);
    },
  );

  test.serial(
    `sec 123: at ${name} another browser's code is refused with a state of one's own`,
    async (t) => {
      const [attacker, victim] = [arrivals(), arrivals()];
      const stolen = new URL(await provider.answer(await attacker.open(`${service.url}/auth/sso`)));
      const own = new URL(await provider.answer(await victim.open(`${service.url}/auth/sso`)));
      own.searchParams.set("code", stolen.searchParams.get("code") as string);
      await isRefused(t, place, victim, await victim.open(own.href));
    },
  );

  test.serial(`sec 123: at ${name} a way back is good once`, async (t) => {
    const person = arrivals();
    const back = await provider.answer(await person.open(`${service.url}/auth/sso`));
    t.is((await person.open(back)).status, 200);
    t.is((await person.open(back)).status, 400);
  });
}

test.serial("sec 126: a code of one provider is no good at a service of another one", async (t) => {
  const [one, other] = Object.values(places) as [Place, Place];
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    const person = new Person(to.service.url);
    const own = new URL(await to.provider.answer(await person.open(`${to.service.url}/auth/sso`)));
    const elsewhere = new Person(from.service.url);
    const theirs = new URL(await from.provider.answer(await elsewhere.open(`${from.service.url}/auth/sso`)));
    own.searchParams.set("code", theirs.searchParams.get("code") as string);
    own.searchParams.set("iss", from.provider.issuer);
    await isRefused(t, to, person, await person.open(own.href));
  }
});
