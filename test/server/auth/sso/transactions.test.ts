import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import test, { type ExecutionContext } from "ava";
import { advanceClock } from "../../harness/clock.ts";
import {
  providerSettings,
  signInExternally,
  startMockProvider,
  startWithProvider,
} from "../../harness/identity-provider.ts";
import { type Page, Person } from "../../harness/person.ts";
import { startTestService } from "../../harness/service.ts";

const { provider, service, close } = await startWithProvider();
test.after.always(close);

/** Nobody is signed in, and the page leads nowhere. */
async function isRefused(t: ExecutionContext, person: Person, page: Page) {
  t.is(page.status, 400, page.text);
  t.is(page.headers.get("location"), null);
  t.true((await person.open(`${service.url}/dashboard`)).url.includes("/auth/login"), "nobody is signed in");
}

test.serial("sec 123: a way back is good for ten minutes", async (t) => {
  const person = new Person(service.url);
  const back = await provider.answer(await person.open(`${service.url}/auth/sso`));
  advanceClock(10 * 60_000 + 1000);
  await isRefused(t, person, await person.open(back));
});

test.serial("sec 126: sign-ins in several tabs of one browser do not meet", async (t) => {
  const person = new Person(service.url);
  const [first, second] = [
    await provider.answer(await person.open(`${service.url}/auth/sso?return_to=/dashboard/account`)),
    await provider.answer(await person.open(`${service.url}/auth/sso?return_to=/dashboard`)),
  ];
  t.regex((await person.open(second)).url, /\/dashboard/);
  t.regex((await person.open(first)).url, /\/dashboard\/account$/);
});

test.serial(
  "sec 123: what a sign-in remembers is in a signed cookie that no page reads and no other site sends",
  async (t) => {
    const person = new Person(service.url);
    const away = await person.open(`${service.url}/auth/sso`);
    const cookies = await person.jar.getCookies(`${service.url}/auth/sso/callback`);
    const mine = cookies.filter(({ key }) => key.startsWith("sso-"));
    t.is(mine.length, 2, "the cookie and its signature");
    for (const { httpOnly, sameSite, path } of mine)
      t.deepEqual([httpOnly, sameSite, path], [true, "lax", "/auth/sso"]);

    const forged = mine.find(({ key }) => !key.endsWith(".sig"));
    if (!forged) return t.fail();
    const remembered = JSON.parse(Buffer.from(forged.value, "base64url").toString());
    const changed = { ...remembered, returnTo: "https://evil.example/" };
    forged.value = Buffer.from(JSON.stringify(changed)).toString("base64url");
    await person.jar.setCookie(forged, service.url);
    await isRefused(t, person, await person.open(await provider.answer(away)));
  },
);

test.serial("sec 115: a session that was there before is not the one that is signed in", async (t) => {
  const person = new Person(service.url);
  const user = await service.createUser([]);
  await person.signIn(await person.open(`${service.url}/auth/login`), user);
  const thief = new Person(service.url);
  for (const { key, value } of await person.jar.getCookies(service.url)) {
    await thief.jar.setCookie(`${key}=${value}; path=/`, service.url);
  }
  t.is((await thief.open(`${service.url}/dashboard`)).status, 200);
  await signInExternally(service, provider, person);
  t.true((await thief.open(`${service.url}/dashboard`)).url.includes("/auth/login"));
  t.false((await person.open(`${service.url}/dashboard/account`)).text.includes(user.username));
});

const DISCOVERY: Record<string, Record<string, unknown>> = {
  "of another issuer": { issuer: "https://evil.example" },
  "that signs with nothing": { id_token_signing_alg_values_supported: ["none", "HS256"] },
};

for (const [what, claims] of Object.entries(DISCOVERY)) {
  test.serial(`sec 124, 126: a provider ${what} is as good as away`, async (t) => {
    const evil = await startMockProvider();
    t.teardown(() => evil.stop());
    evil.service.on(
      "beforeWellKnownOpenIdConfiguration",
      ({ body }) => void Object.assign(body as object, claims),
    );
    const other = await startTestService(providerSettings(evil.issuer));
    t.teardown(() => other.close());
    t.is((await new Person(other.url).open(`${other.url}/auth/sso`)).status, 503);
    t.regex((await new Person(other.url).open(`${other.url}/auth/login`)).text, /cannot be reached/);
  });
}

test.serial("sec 126: where the provider says who answers, an answer that does not is refused", async (t) => {
  const careful = await startMockProvider();
  t.teardown(() => careful.stop());
  careful.service.on("beforeWellKnownOpenIdConfiguration", ({ body }) => {
    Object.assign(body as object, { authorization_response_iss_parameter_supported: true });
  });
  const other = await startTestService(providerSettings(careful.issuer));
  t.teardown(() => other.close());
  const silent = await signInExternally(other, careful, new Person(other.url));
  t.is(silent.status, 400);
  careful.service.on("beforeAuthorizeRedirect", ({ url }) => url.searchParams.set("iss", careful.issuer));
  t.is((await signInExternally(other, careful, new Person(other.url))).status, 200);
});

test.serial(
  "a provider that goes away while somebody signs in is said to be away, and asked again later",
  async (t) => {
    const shaky = await startMockProvider();
    const port = Number(new URL(shaky.issuer).port);
    const other = await startTestService(providerSettings(shaky.issuer));
    t.teardown(() => other.close());
    const person = new Person(other.url);
    const back = await shaky.answer(await person.open(`${other.url}/auth/sso`));
    await shaky.stop();
    const page = await person.open(back);
    t.is(page.status, 503);
    t.regex(page.text, /Example ID cannot be reached/);
    t.true((await person.open(`${other.url}/dashboard`)).url.includes("/auth/login"));
    const again = await startMockProvider(port);
    t.teardown(() => again.stop());
    t.is((await signInExternally(other, again, person)).status, 200);
  },
);

test.serial(
  "a provider that takes a connection and never answers holds up nobody who has a password",
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
    const person = new Person(other.url);
    const page = await person.open(`${other.url}/auth/login`);
    t.is(page.status, 200);
    t.is((await person.signIn(page, await other.createUser([]))).status, 200);
    t.is((await person.open(`${other.url}/auth/sso`)).status, 503);
    t.regex(
      (await new Person(other.url).open(`${other.url}/auth/login`)).text,
      /Example ID cannot be reached/,
    );
  },
);

test.serial("sec 127: no request names a provider: there is the one of the settings, or none", async (t) => {
  const evil = new URLSearchParams({ issuer: "https://evil.example", iss: "https://evil.example" });
  const away = await new Person(service.url).open(`${service.url}/auth/sso?${evil}`);
  t.is(new URL(away.url).origin, new URL(provider.issuer).origin);

  const none = await startTestService();
  t.teardown(() => none.close());
  const person = new Person(none.url);
  for (const path of ["/auth/sso", `/auth/sso?${evil}`, `/auth/sso/callback?code=a&state=b&${evil}`]) {
    t.is((await person.open(none.url + path)).status, 404, path);
  }
  const signIn = await person.open(`${none.url}/auth/login`);
  t.notRegex(signIn.text, /Continue with|\/auth\/sso/);
  const account = await person.signIn(signIn, await none.createUser([]));
  const csrf = account.html.querySelector("[name=csrf]")?.attributes.value ?? "";
  const body = new URLSearchParams({ csrf, issuer: "https://evil.example" });
  const linked = await person.open(`${none.url}/dashboard/account/identities`, { method: "POST", body });
  t.is(linked.status, 404);
});
