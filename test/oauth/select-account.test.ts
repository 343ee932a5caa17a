import test, { type ExecutionContext } from "ava";
import { advanceClock } from "../harness/clock.ts";
import { ask, authorizeUrl, createApp, redeemCode, sendForm } from "../harness/oauth.ts";
import { type Page, Person } from "../harness/person.ts";
import { startTestService, type TestUser } from "../harness/service.ts";

const service = await startTestService();
const { app, own, user } = await createApp(service);
const other = await service.createUser([own.id]);
test.after.always(() => service.close());

const PROMPT = { prompt: "select_account", scope: "openid links:read" };
const CONTINUE = `Continue as ${user.username}`;
const ANOTHER = "Use another account";

const open = (person: Person, changes = {}) =>
  person.open(authorizeUrl(service, app, { ...PROMPT, ...changes }));

/** A browser with a session, on the page that follows. */
async function atChoice(changes = {}) {
  const person = await signedIn();
  return { person, page: await open(person, changes) };
}

async function signedIn(): Promise<Person> {
  const person = new Person(service.url);
  await person.signIn(await person.open(`${service.url}/auth/login`), user);
  return person;
}

const isChoice = ({ html }: Page) => html.querySelector("h1")?.text === "Choose an account";
const isForm = ({ html }: Page) => html.querySelector("#password") !== null;
const isConsent = ({ html }: Page, { username }: TestUser) =>
  html.querySelector("h1")?.text === "Allow access?" && html.toString().includes(username);

/** That a consent page leads to tokens of a user, who is signed in from then on. */
async function isAllowed(t: ExecutionContext, person: Person, consent: Page, { id, username }: TestUser) {
  const callback = new URL((await person.press(consent, "Allow")).url);
  const { body } = await redeemCode(service, app, String(callback.searchParams.get("code")));
  const [, payload = ""] = String(body.id_token).split(".");
  t.is(JSON.parse(Buffer.from(payload, "base64url").toString()).sub, id);
  t.is(await signedInAs(person), username);
}

async function signedInAs(person: Person): Promise<string | undefined> {
  const headers = { accept: "application/json" };
  const { status, text } = await person.open(`${service.url}/dashboard/me`, { headers });
  return status === 200 ? JSON.parse(text).user.username : undefined;
}

test("with a session, the user is shown and goes on without a password", async (t) => {
  const { person, page } = await atChoice();
  t.is(page.status, 200);
  t.true(isChoice(page));
  t.true(page.text.includes(app.name));
  t.deepEqual(
    page.html.querySelectorAll("button").map(({ text }) => text),
    [CONTINUE, ANOTHER],
  );
  const consent = await person.press(page, CONTINUE);
  t.true(isConsent(consent, user));
  await isAllowed(t, person, consent, user);
});

test("without a session, it is the sign-in, and nothing is chosen after it", async (t) => {
  const person = new Person(service.url);
  const page = await open(person);
  t.true(isForm(page));
  const consent = await person.signIn(page, user);
  t.true(isConsent(consent, user));
  await isAllowed(t, person, consent, user);
});

test("another account signs in, and its session replaces the one before", async (t) => {
  const { person, page } = await atChoice();
  const before = new Person(service.url);
  for (const cookie of await person.jar.getCookies(service.url))
    await before.jar.setCookie(cookie, service.url);
  const form = await person.press(page, ANOTHER);
  t.true(isForm(form));
  t.is(await signedInAs(person), user.username, "until another account has signed in");
  const consent = await person.signIn(form, other);
  t.true(isConsent(consent, other));
  t.false(consent.text.includes(user.username));
  await isAllowed(t, person, consent, other);
  t.is(await signedInAs(before), undefined, "the session of the one before has ended");
});

test("a wrong password for another account leaves the session alone", async (t) => {
  const { person, page } = await atChoice();
  const form = await person.press(page, ANOTHER);
  const again = await person.signIn(form, { ...other, password: "wrong" });
  t.is(again.status, 400);
  t.true(isForm(again));
  t.is(await signedInAs(person), user.username);
  t.true(isConsent(await person.signIn(again, other), other));
});

test("the same account may sign in as the other one", async (t) => {
  const { person, page } = await atChoice();
  const consent = await person.signIn(await person.press(page, ANOTHER), user);
  t.true(isConsent(consent, user));
  await isAllowed(t, person, consent, user);
});

test("the form for another account opens again, and the session alone does not answer it", async (t) => {
  const { person, page } = await atChoice();
  const form = await person.press(page, ANOTHER);
  t.true(isForm(await person.open(form.url)));
  t.true(isForm(await person.open(form.url)));
});

test("another account that signs in elsewhere in the browser answers the form", async (t) => {
  const { person, page } = await atChoice();
  const form = await person.press(page, ANOTHER);
  await person.signIn(await person.open(`${service.url}/auth/login?again=1`), other);
  const consent = await person.open(form.url);
  t.true(isConsent(consent, other));
  await isAllowed(t, person, consent, other);
});

for (const prompt of ["select_account consent", "consent select_account"]) {
  test(`prompt=${prompt} lets the user choose, then consent`, async (t) => {
    const { person, page } = await atChoice({ prompt });
    t.true(isChoice(page));
    t.true(isConsent(await person.press(page, CONTINUE), user));
  });
}

for (const prompt of ["select_account login", "login select_account consent"]) {
  test(`prompt=${prompt} asks for the password, with which any account is chosen`, async (t) => {
    for (const account of [user, other]) {
      const { person, page } = await atChoice({ prompt });
      t.true(isForm(page));
      t.true(isConsent(await person.signIn(page, account), account));
    }
  });
}

test("prompt=none beside select_account is invalid_request", async (t) => {
  const { page } = await atChoice({ prompt: "none select_account" });
  t.is(new URL(page.url).searchParams.get("error"), "invalid_request");
});

test("a pushed request may ask for it", async (t) => {
  const url = new URL(authorizeUrl(service, app, PROMPT));
  const { body } = await ask(service, "par", app, Object.fromEntries(url.searchParams));
  const query = new URLSearchParams({ client_id: app.clientId, request_uri: String(body.request_uri) });
  const person = await signedIn();
  const page = await person.open(`${service.url}/oauth/authorize?${query}`);
  t.true(isChoice(page));
  const consent = await person.press(page, CONTINUE);
  await isAllowed(t, person, consent, user);
});

test("sec 26: a choice without the token of the page is refused", async (t) => {
  const { person, page } = await atChoice();
  const { page: foreign } = await atChoice();
  const token = foreign.html.querySelector("[name=csrf]")?.attributes.value;
  for (const csrf of [undefined, "", "x", token]) {
    const answer = await sendForm(person, page, { csrf, account: "current" });
    t.is(answer.status, 400);
    t.is(answer.headers.get("location"), null);
  }
  t.true(isConsent(await person.press(page, CONTINUE), user));
});

test("sec 26, 28: a choice belongs to the browser that it was shown to", async (t) => {
  const { page } = await atChoice();
  const another = await signedIn();
  t.is((await another.open(page.url)).status, 400);
  for (const account of ["current", "other"]) {
    t.is((await sendForm(another, page, { account })).status, 400);
    t.is((await sendForm(new Person(service.url), page, { account })).status, 400);
  }
});

test("sec 28: a choice is made once", async (t) => {
  const { person, page } = await atChoice();
  await person.press(page, ANOTHER);
  const again = await sendForm(person, page, { account: "current" });
  t.is(again.status, 400);
  t.is(again.headers.get("location"), null);
});

test("sec 28: the other steps of an authorization are not open while an account is chosen", async (t) => {
  const { person, page } = await atChoice();
  const { origin, pathname } = new URL(page.url);
  const csrf = page.html.querySelector("[name=csrf]")?.attributes.value ?? "";
  const steps: [step: string, fields: Record<string, string>][] = [
    ["consent", { decision: "allow", organization_id: own.id }],
    ["sign-in", { username: other.username, password: other.password }],
  ];
  for (const [step, fields] of steps) {
    const body = new URLSearchParams({ csrf, ...fields });
    const answer = await person.open(`${origin}${pathname}/${step}`, { method: "POST", body });
    t.is(answer.status, 400, step);
  }
});

test("a choice of a session that has ended is refused", async (t) => {
  const { person, page } = await atChoice();
  await person.signIn(await person.open(`${service.url}/auth/login?again=1`), other);
  const late = await sendForm(person, page, { account: "current" });
  t.is(late.status, 400);
  t.is(late.headers.get("location"), null);
});

test.serial("a session that is older than max_age signs in, and nothing is chosen after it", async (t) => {
  const person = await signedIn();
  advanceClock(61_000);
  const page = await open(person, { max_age: "60" });
  t.true(isForm(page));
  t.true(isConsent(await person.signIn(page, user), user));
});
