import test from "ava";
import { advanceClock } from "../../harness/clock.ts";
import { providerSettings, signInExternally, startMockProvider } from "../../harness/identity-provider.ts";
import { authorizeUrl, createApp } from "../../harness/oauth.ts";
import { startOidcProvider } from "../../harness/oidc-identity-provider.ts";
import { type Page, Person } from "../../harness/person.ts";
import { freePort } from "../../harness/port.ts";
import { startTestService } from "../../harness/service.ts";

const port = await freePort();
const service = await startTestService(providerSettings(`http://localhost:${port}`));
const provider = await startOidcProvider(service, port);
test.after.always(async () => {
  await service.close();
  await provider.stop();
});

const ACCOUNT = `${service.url}/dashboard/account`;
const MINUTE_MS = 60_000;

let count = 0;

/** Somebody who signs in at the provider alone, at the browser that is signed in at both. */
async function visitor() {
  const name = `visitor${++count}`;
  const [person, there] = [new Person(service.url), new Person(provider.issuer)];
  const come = async (page: Page) => {
    const away = await person.open(hrefOf(page));
    return person.open(await provider.answerAs(name, away.url, there));
  };
  await come(await person.open(`${service.url}/auth/login`));
  return { name, person, there, come };
}

function hrefOf({ html, text }: Page): string {
  const link = html.querySelectorAll("a").find((one) => one.text === "Continue with Example ID");
  if (!link) throw new Error(`no button:\n${text}`);
  return new URL(link.attributes.href ?? "", service.url).href;
}

// One after the other: each moves the clock.
test.serial(
  "what needs a recent sign-in sends who signs in elsewhere there once more, and goes on",
  async (t) => {
    const { person, there, name, come } = await visitor();
    advanceClock(11 * MINUTE_MS);
    const asked = await person.press(await person.open(ACCOUNT), "Delete my account");
    t.true(asked.url.includes("/auth/login"), asked.url);
    const away = new URL((await person.open(hrefOf(asked))).url);
    t.is(away.searchParams.get("prompt"), "login");
    t.truthy(
      (await there.open(away.href)).html.querySelector("form"),
      "the provider asks, though it knows the person",
    );
    const back = await come(asked);
    t.is(back.url, ACCOUNT);
    const gone = await person.press(back, "Delete my account");
    t.is(gone.url, `${service.url}/auth/login`);
    t.is(await service.storage.accounts.findByUsername(name), undefined);
  },
);

test.serial("a sign-in at the provider that is long ago is not a recent one here", async (t) => {
  const mock = await startMockProvider();
  t.teardown(() => mock.stop());
  const other = await startTestService(providerSettings(mock.issuer));
  t.teardown(() => other.close());
  async function come(query: string, minutesAgo?: number) {
    const auth_time = minutesAgo && Math.floor(Date.now() / 1000) - 60 * minutesAgo;
    mock.say(({ payload }) => Object.assign(payload, { auth_time }));
    const person = new Person(other.url);
    return { person, page: await signInExternally(other, mock, person, query) };
  }
  t.is((await come("")).page.status, 200, "there is somebody to sign in again");
  t.is((await come("?again=1", 11)).page.status, 400);
  t.is((await come("?again=1")).page.status, 400, "a provider that does not say when");
  t.is((await come("?again=1", 5)).page.status, 200);

  const { person, page } = await come("", 11);
  t.is(page.status, 200, "it signs in");
  const asked = await person.press(await person.open(`${other.url}/dashboard/account`), "Delete my account");
  t.true(asked.url.includes("again=1"), "but does not count as recent");
});

test.serial("who is to sign in anew makes no account by another identity", async (t) => {
  const { person } = await visitor();
  const away = await person.open(`${service.url}/auth/sso?again=1&return_to=/dashboard/account`);
  const page = await person.open(await provider.answerAs("stranger", away.url, new Person(provider.issuer)));
  t.is(page.status, 403);
  t.regex(page.text, /Nobody has an account here with this identity/);
  t.is(await service.storage.accounts.findByUsername("stranger"), undefined);
  t.is((await person.open(ACCOUNT)).url, ACCOUNT, "and stays signed in");
});

for (const parameters of [{ prompt: "login" }, { max_age: "60", scope: "openid links:read" }]) {
  const [what] = Object.keys(parameters);
  test.serial(
    `at an authorization with ${what} the person signs in at the provider anew, and goes on`,
    async (t) => {
      const { app, own } = await createApp(service);
      const { name, person, come } = await visitor();
      const user = await service.storage.accounts.findByUsername(name);
      await service.storage.organizations.addMember(own.id, user?.id as string, "member", {
        actor: "operator",
      });
      advanceClock(2 * MINUTE_MS);
      const asked = await person.open(authorizeUrl(service, app, parameters));
      t.truthy(asked.html.querySelector("#password"));
      advanceClock(2000);
      const consent = await come(asked);
      t.regex(consent.text, /Allow access\?/);
      const callback = new URL((await person.press(consent, "Allow")).url);
      t.truthy(callback.searchParams.get("code"));
    },
  );
}

test.serial("another account that is asked for signs in at the provider as well", async (t) => {
  const { app, own } = await createApp(service);
  const [before, next] = [await visitor(), await visitor()];
  for (const { name } of [before, next]) {
    const user = await service.storage.accounts.findByUsername(name);
    await service.storage.organizations.addMember(own.id, user?.id as string, "member", {
      actor: "operator",
    });
  }
  const { person } = before;
  const choice = await person.open(authorizeUrl(service, app, { prompt: "select_account" }));
  const form = await person.press(choice, "Use another account");
  const away = await person.open(hrefOf(form));
  const back = await provider.answerAs(next.name, away.url, new Person(provider.issuer));
  const consent = await person.open(back);
  t.regex(consent.text, /Allow access\?/);
  t.true(consent.text.includes(next.name));
  t.truthy(new URL((await person.press(consent, "Allow")).url).searchParams.get("code"));
});
