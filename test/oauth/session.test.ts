import test from "ava";
import { allow, authorizeUrl, createApp, openConsent } from "../harness/oauth.ts";
import { Person } from "../harness/person.ts";
import { startTestService } from "../harness/service.ts";

const service = await startTestService();
const { app, user } = await createApp(service);
test.after.always(() => service.close());

async function sessionOf(person: Person): Promise<string | undefined> {
  const cookies = await person.jar.getCookies(service.url);
  return cookies.find(({ key }) => key === "session")?.value;
}

test("sec 115: a session that was set by somebody else is not the one that is signed in", async (t) => {
  const person = new Person(service.url);
  await person.jar.setCookie("session=chosen-by-somebody-else", service.url);
  await person.jar.setCookie("session.sig=chosen-by-somebody-else", service.url);
  await openConsent(person, user, authorizeUrl(service, app));
  const session = await sessionOf(person);
  t.truthy(session);
  t.not(session, "chosen-by-somebody-else");
});

test("sec 115: signing in again gives a new session, and the old one is dead", async (t) => {
  const person = new Person(service.url);
  await allow(service, user, authorizeUrl(service, app), { person });
  const before = (await person.jar.getCookies(service.url)).filter(({ key }) => key.startsWith("session"));
  const again = await person.open(authorizeUrl(service, app, { prompt: "login" }));
  await person.signIn(again, user);
  t.not(await sessionOf(person), before.find(({ key }) => key === "session")?.value);

  const thief = new Person(service.url);
  for (const cookie of before) await thief.jar.setCookie(cookie.toString(), service.url);
  const page = await thief.open(authorizeUrl(service, app));
  t.truthy(page.html.querySelector("#password"), "the old cookie asks for the password");
});
