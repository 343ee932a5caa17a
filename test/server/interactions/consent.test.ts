import test from "ava";
import { authorizeUrl, createApp, openConsent, redeemCode, sendForm } from "../harness/oauth.ts";
import { type Page, Person } from "../harness/person.ts";
import { startTestService } from "../harness/service.ts";

const service = await startTestService();
const { app, own, user } = await createApp(service);
test.after.always(() => service.close());

const ALLOW = { decision: "allow", organization_id: own.id };

async function atConsent() {
  const person = new Person(service.url);
  return { person, page: await openConsent(person, user, authorizeUrl(service, app)) };
}

/** Whether the right form still leads to a code: nothing before has used it up. */
async function canStillAllow(person: Person, page: Page): Promise<boolean> {
  return new URL((await person.press(page, "Allow")).url).searchParams.has("code");
}

const FORGED: Record<string, string | undefined> = {
  "no form token": undefined,
  "an empty form token": "",
  "another form token": "x".repeat(43),
  "a form token of half the length": "AAAA",
};

for (const [what, csrf] of Object.entries(FORGED)) {
  test(`sec 26: a consent with ${what} is refused and changes nothing`, async (t) => {
    const { person, page } = await atConsent();
    const { status, headers } = await sendForm(person, page, { ...ALLOW, csrf });
    t.is(status, 400);
    t.is(headers.get("location"), null);
    t.true(await canStillAllow(person, page));
  });
}

test("sec 26: the form token of one authorization is no good for another", async (t) => {
  const [first, second] = [await atConsent(), await atConsent()];
  const csrf = first.page.html.querySelector("[name=csrf]")?.attributes.value;
  t.is((await sendForm(second.person, second.page, { ...ALLOW, csrf })).status, 400);
});

test("sec 26: a sign-in without the form token is refused, right password or not", async (t) => {
  const person = new Person(service.url);
  const page = await person.open(authorizeUrl(service, app));
  const { username, password } = user;
  t.is((await sendForm(person, page, { username, password, csrf: undefined })).status, 400);
  t.truthy((await person.open(page.url)).html.querySelector("#password"));
});

test("sec 26: a consent by GET is none", async (t) => {
  const { person, page } = await atConsent();
  const csrf = page.html.querySelector("[name=csrf]")?.attributes.value ?? "";
  const query = new URLSearchParams({ csrf, ...ALLOW });
  const answer = await person.open(`${page.url}/consent?${query}`);
  t.is(answer.status, 404);
  t.true(await canStillAllow(person, page));
});

test("sec 26, 28: another browser can neither see, sign in at, nor allow an authorization", async (t) => {
  const { person, page } = await atConsent();
  const stranger = new Person(service.url);
  const itsOwn = await openConsent(stranger, user, authorizeUrl(service, app));
  for (const other of [new Person(service.url), stranger]) {
    t.is((await other.open(page.url)).status, 400);
    const { status, headers } = await sendForm(other, page, ALLOW);
    t.is(status, 400);
    t.is(headers.get("location"), null);
  }
  t.true(await canStillAllow(stranger, itsOwn));
  t.true(await canStillAllow(person, page));
});

test("sec 28: another browser cannot go on where one has allowed", async (t) => {
  const { person, page } = await atConsent();
  const allowed = await sendForm(person, page, ALLOW);
  const resume = String(allowed.headers.get("location"));
  t.regex(resume, /\/oauth\/authorize\/[\w-]+$/);
  for (const other of [new Person(service.url), (await atConsent()).person]) {
    const answer = await other.open(resume);
    t.is(answer.status, 400);
    t.false(answer.url.includes("code="));
  }
  t.true((await person.open(resume)).url.includes("code="));
});

test("sec 28: a cookie that was changed opens nothing", async (t) => {
  const { person, page } = await atConsent();
  const cookie = await person.jar.getCookieString(page.url);
  for (const changed of [
    cookie.replace(/interaction\.sig=[^;]+/, "interaction.sig=AAAA"),
    cookie.replace(/interaction\.sig=[^;]+;? ?/, ""),
    cookie.replace(/interaction=[^;]+/, "interaction=AAAA"),
  ]) {
    t.not(changed, cookie);
    t.is((await fetch(page.url, { headers: { cookie: changed } })).status, 400);
  }
});

test("sec 28: a finished authorization is over: neither page, nor form, nor way on", async (t) => {
  const { person, page } = await atConsent();
  const resume = String((await sendForm(person, page, ALLOW)).headers.get("location"));
  const cookies = await person.jar.getCookieString(resume);
  t.true((await person.open(resume)).url.includes("code="));
  const again = await fetch(resume, { headers: { cookie: cookies }, redirect: "manual" });
  t.is(again.status, 400);
  t.is((await person.open(page.url)).status, 400);
  t.is((await sendForm(person, page, ALLOW)).status, 400);
});

test("sec 28: one approval gone on with 10 times at once gives one code", async (t) => {
  for (let round = 0; round < 5; round++) {
    const { person, page } = await atConsent();
    const resume = String((await sendForm(person, page, ALLOW)).headers.get("location"));
    const cookie = await person.jar.getCookieString(resume);
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => fetch(resume, { headers: { cookie }, redirect: "manual" })),
    );
    const codes = answers.flatMap(({ headers }) => {
      const location = URL.parse(headers.get("location") ?? "");
      return location?.searchParams.get("code") ?? [];
    });
    t.is(codes.length, 1);
    for (const { status } of answers) t.true(status === 303 || status === 400, String(status));
    t.is((await redeemCode(service, app, String(codes[0]))).status, 200);
  }
});

test("sec 28: one form sent 10 times at once gives at most one code", async (t) => {
  const { person, page } = await atConsent();
  const answers = await Promise.all(Array.from({ length: 10 }, () => sendForm(person, page, ALLOW)));
  for (const { status } of answers) t.true(status === 303 || status === 400, String(status));
  const resumes = answers.flatMap(({ headers }) => headers.get("location") ?? []);
  t.true(resumes.length >= 1);
  const cookie = await person.jar.getCookieString(String(resumes[0]));
  const ends = await Promise.all(
    resumes.map((url) => fetch(url, { headers: { cookie }, redirect: "manual" })),
  );
  t.is(ends.filter(({ headers }) => headers.get("location")?.includes("code=")).length, 1);
});

test("the step of consent cannot be done before the sign-in", async (t) => {
  const person = new Person(service.url);
  const page = await person.open(authorizeUrl(service, app));
  const form = page.html.querySelector("form");
  form?.setAttribute("action", String(form.attributes.action).replace("sign-in", "consent"));
  t.is((await sendForm(person, page, ALLOW)).status, 400);
});

test("a decision that is not allow is a no", async (t) => {
  for (const decision of ["cancel", "", "ALLOW", "yes", undefined]) {
    const { person, page } = await atConsent();
    const { headers } = await sendForm(person, page, { ...ALLOW, decision });
    const end = await person.open(String(headers.get("location")));
    t.is(new URL(end.url).searchParams.get("error"), "access_denied", String(decision));
  }
});

test("an authorization can be begun again after a no", async (t) => {
  const { person, page } = await atConsent();
  await person.press(page, "Cancel");
  t.true(await canStillAllow(person, await person.open(authorizeUrl(service, app))));
});
