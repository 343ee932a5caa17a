import test from "ava";
import { advanceClock } from "../harness/clock.ts";
import {
  allow,
  authorizeUrl,
  codeFor,
  createApp,
  openConsent,
  redeemCode,
  sendForm,
} from "../harness/oauth.ts";
import { Person } from "../harness/person.ts";
import { startTestService } from "../harness/service.ts";

const service = await startTestService();
const { app, own, user } = await createApp(service);
test.after.always(() => service.close());

const answer = async (person: Person, url: string) => new URL((await person.open(url)).url).searchParams;

async function signedIn(): Promise<Person> {
  const person = new Person(service.url);
  await allow(service, user, authorizeUrl(service, app), { person });
  return person;
}

test("sec 25: prompt=none without a session is login_required", async (t) => {
  const query = await answer(new Person(service.url), authorizeUrl(service, app, { prompt: "none" }));
  t.is(query.get("error"), "login_required");
  t.is(query.get("iss"), service.url);
  t.is(query.get("state"), "a-state");
  t.is(query.get("code"), null);
});

test("sec 25: prompt=none with a session is consent_required, whatever was allowed before", async (t) => {
  const person = await signedIn();
  const query = await answer(person, authorizeUrl(service, app, { prompt: "none" }));
  t.is(query.get("error"), "consent_required");
  t.is(query.get("code"), null);
});

test("sec 25: prompt=none leaves nothing to go on with", async (t) => {
  const person = new Person(service.url);
  await person.open(authorizeUrl(service, app, { prompt: "none" }));
  t.deepEqual(
    (await person.jar.getCookies(`${service.url}/interaction/x`)).filter(({ key }) => key === "interaction"),
    [],
  );
});

test("consent is asked again by every authorization, the sign-in is not", async (t) => {
  const person = await signedIn();
  const page = await person.open(authorizeUrl(service, app));
  t.is(page.html.querySelector("#password"), null);
  t.regex(page.text, /Allow access\?/);
});

for (const prompt of ["login", "login consent"]) {
  test(`prompt=${prompt} asks for the password although there is a session`, async (t) => {
    const person = await signedIn();
    const page = await person.open(authorizeUrl(service, app, { prompt }));
    t.truthy(page.html.querySelector("#password"));
    const consent = await person.signIn(page, user);
    const callback = new URL((await person.press(consent, "Allow")).url);
    t.truthy(callback.searchParams.get("code"));
  });
}

test("prompt=consent shows the consent page alone", async (t) => {
  const person = await signedIn();
  const page = await person.open(authorizeUrl(service, app, { prompt: "consent" }));
  t.is(page.html.querySelector("#password"), null);
});

test("a wrong password at prompt=login leads nowhere", async (t) => {
  const person = await signedIn();
  const page = await person.open(authorizeUrl(service, app, { prompt: "login" }));
  const again = await person.signIn(page, { ...user, password: "wrong" });
  t.is(again.status, 400);
  t.truthy(again.html.querySelector("#password"));
});

test("at prompt=login another person can sign in, and the access is his", async (t) => {
  const person = await signedIn();
  const other = await service.createUser([own.id]);
  const page = await person.open(authorizeUrl(service, app, { prompt: "login", scope: "openid links:read" }));
  const consent = await person.signIn(page, other);
  t.true(consent.text.includes(other.username));
  t.false(consent.text.includes(user.username));
  const callback = new URL((await person.press(consent, "Allow")).url);
  const { body } = await redeemCode(service, app, String(callback.searchParams.get("code")));
  const [, payload = ""] = String(body.id_token).split(".");
  t.is(JSON.parse(Buffer.from(payload, "base64url").toString()).sub, other.id);
});

test("what the one before allowed goes on when another person has signed in", async (t) => {
  const person = new Person(service.url);
  const first = await redeemCode(service, app, await codeFor(service, app, user, { person }));
  const other = await service.createUser([own.id]);
  const page = await person.open(authorizeUrl(service, app, { prompt: "login" }));
  await person.signIn(page, other);
  const { status } = await fetch(`${service.url}/v1/organization`, {
    headers: { authorization: `Bearer ${first.body.access_token}` },
  });
  t.is(status, 200);
});

test.serial("max_age asks again when the sign-in is older", async (t) => {
  const person = await signedIn();
  const url = authorizeUrl(service, app, { scope: "openid links:read", max_age: "60" });
  t.is((await person.open(url)).html.querySelector("#password"), null);
  advanceClock(61_000);
  t.truthy((await person.open(url)).html.querySelector("#password"));
  const zero = authorizeUrl(service, app, { scope: "openid links:read", max_age: "0" });
  t.truthy((await person.open(zero)).html.querySelector("#password"));
});

test.serial("sec 117: a sign-in that is not used lasts 7 days", async (t) => {
  const person = await signedIn();
  advanceClock(8 * 24 * 3600_000);
  const page = await person.open(authorizeUrl(service, app));
  t.truthy(page.html.querySelector("#password"));
  t.regex((await openConsent(person, user, authorizeUrl(service, app))).text, /Allow access\?/);
});

test.serial("a page that is left open for 15 minutes is over", async (t) => {
  const person = await signedIn();
  const page = await person.open(authorizeUrl(service, app));
  advanceClock(16 * 60_000);
  const answer = await sendForm(person, page, { decision: "allow", organization_id: own.id });
  t.is(answer.status, 400);
  t.is(answer.headers.get("location"), null);
});
