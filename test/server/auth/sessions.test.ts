import test from "ava";
import { apiAt, isMissing } from "../../harness/api.ts";
import { advanceClock } from "../../harness/clock.ts";
import { browserOf, createColleague, firstPartyToken } from "../../harness/dashboard.ts";
import { authorizeUrl, createApp } from "../../harness/oauth.ts";
import { Person } from "../../harness/person.ts";
import { startTestService, type TestUser } from "../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());

const DAY_MS = 24 * 3600_000;
const ACCOUNT = `${service.url}/dashboard/account`;
const SESSIONS = "/dashboard/account/sessions";

type Listed = {
  id: string;
  means: string;
  address: string;
  user_agent: string | null;
  created_at: string;
  last_seen_at: string | null;
  current: boolean;
};

async function isIn(person: Person): Promise<boolean> {
  return !(await person.open(ACCOUNT)).html.querySelector("form[action='/auth/login']");
}

async function listOf(person: Person): Promise<Listed[]> {
  const { text } = await person.open(service.url + SESSIONS, { headers: { accept: "application/json" } });
  return JSON.parse(text).data;
}

/** Somebody else with the cookies that a browser has now. */
async function thiefOf(person: Person): Promise<Person> {
  const thief = new Person(service.url);
  for (const cookie of await person.jar.getCookies(service.url)) {
    await thief.jar.setCookie(`${cookie.key}=${cookie.value}; path=/`, service.url);
  }
  return thief;
}

const idOf = async (person: Person) =>
  (await person.jar.getCookies(service.url)).find(({ key }) => key === "session")?.value;

test("sec 115: a session that was planted in a browser is not the one that is signed in there", async (t) => {
  const [user, attacker] = [await service.createUser([]), await service.createUser([])];
  const plants: Record<string, Person> = {
    "made up": new Person(service.url),
    "of the attacker": (await browserOf(service, attacker)).person,
  };
  await plants["made up"]?.jar.setCookie("session=chosen-by-somebody-else", service.url);
  for (const [what, planter] of Object.entries(plants)) {
    t.truthy(await idOf(planter), what);
    const victim = await thiefOf(planter);
    const page = await victim.signIn(await victim.open(`${service.url}/auth/login?again=1`), user);
    t.is(page.status, 200, what);
    t.not(await idOf(victim), await idOf(planter), what);
    t.true((await victim.open(ACCOUNT)).text.includes(user.username));
    t.false((await planter.open(ACCOUNT)).text.includes(user.username), what);
  }
});

test("sec 115: signing in again gives the session a new id, and the old one is dead", async (t) => {
  const user = await service.createUser([]);
  const { person } = await browserOf(service, user);
  const thief = await thiefOf(person);
  t.true(await isIn(thief));
  const page = await person.open(`${service.url}/auth/login?again=1`);
  await person.signIn(page, user);
  t.not(await idOf(person), await idOf(thief));
  t.false(await isIn(thief));
  t.true(await isIn(person));
});

test("a new password gives the session a new id", async (t) => {
  const user = await service.createUser([]);
  const { person } = await browserOf(service, user);
  const thief = await thiefOf(person);
  await person.press(await person.open(ACCOUNT), "Change the password", {
    current_password: user.password,
    new_password: "an entirely new one",
  });
  t.true(await isIn(person));
  t.false(await isIn(thief));
});

test("sec 116: who signs out is out on the server as well, and the browser forgets the cookie", async (t) => {
  const { person, page } = await browserOf(service, await service.createUser([]));
  const thief = await thiefOf(person);
  const out = await person.press(page, "Sign out");
  t.is(out.url, `${service.url}/auth/login`);
  t.is(await idOf(person), undefined);
  t.false(await isIn(thief));
});

test("sec 116: what is under way when somebody signs out does not sign in again", async (t) => {
  const { app } = await createApp(service);
  for (let round = 0; round < 5; round++) {
    const { person, page } = await browserOf(service, await service.createUser([]));
    const thief = await thiefOf(person);
    const readers = Array.from({ length: 16 }, (_, index) =>
      thief.open(index % 2 ? ACCOUNT : authorizeUrl(service, app)),
    );
    await Promise.all([...readers.slice(0, 8), person.press(page, "Sign out"), ...readers.slice(8)]);
    t.false(await isIn(thief));
    t.falsy((await thief.open(authorizeUrl(service, app))).text.includes("Allow access?"));
  }
});

test("sec 118: a person sees where he or she is signed in, by browser and by program", async (t) => {
  const user = await service.createUser([]);
  const { person } = await browserOf(service, user);
  const token = await firstPartyToken(service, user);
  await person.open(ACCOUNT, { headers: { "user-agent": "Mozilla/5.0 (X11; Linux) Firefox/140.0" } });
  const other = await browserOf(service, user);
  await other.person.open(ACCOUNT);
  const listed = await listOf(person);
  t.deepEqual(listed.map(({ means }) => means).sort(), ["session", "session", "token"]);
  t.is(listed.filter(({ current }) => current).length, 1);
  for (const { address, created_at, last_seen_at, means } of listed) {
    t.regex(address, /127\.0\.0\.1|::1/);
    t.true(Math.abs(Date.parse(created_at) - Date.now()) < 60_000);
    t.is(last_seen_at === null, means === "token");
  }
  const { body } = await apiAt(service.url, token).send<{ data: Listed[] }>("GET", SESSIONS);
  t.deepEqual(
    body.data.filter(({ current }) => current).map(({ means }) => means),
    ["token"],
  );
  t.regex((await person.open(ACCOUNT)).text, /A program/);
});

/** Ends a sign-in of the person in two ways. */
const ENDINGS: Record<string, (user: TestUser, id: string) => Promise<number>> = {
  async JSON(user, id) {
    const token = await firstPartyToken(service, user);
    return (await apiAt(service.url, token).send("DELETE", `${SESSIONS}/${id}`)).status;
  },
  async "a form"(user, id) {
    const { person } = await browserOf(service, user);
    const page = await person.open(ACCOUNT);
    const form = page.html
      .querySelectorAll("form")
      .find(({ attributes }) => attributes.action === `${SESSIONS}/${id}/delete`);
    return (await person.submit(page, {}, form ?? null)).status === 200 ? 204 : 500;
  },
};

for (const [how, end] of Object.entries(ENDINGS)) {
  test(`sec 118: a sign-in is ended by ${how}, whichever it was, and stays ended`, async (t) => {
    const user = await service.createUser([]);
    const { person } = await browserOf(service, user);
    const own = (await listOf(person))[0]?.id as string;
    const token = await firstPartyToken(service, user);
    const program = (await listOf(person)).find(({ means }) => means === "token")?.id as string;
    t.is(await end(user, program), 204);
    t.is((await apiAt(service.url, token).send("GET", "/dashboard/me")).status, 401);
    t.true(await isIn(person));
    t.is(await end(user, own), 204);
    t.false(await isIn(person));
    t.false(await isIn(person));
  });
}

test("sec 118: all others are ended at once, by JSON and by a form; the own one goes on", async (t) => {
  const user = await service.createUser([]);
  const { person } = await browserOf(service, user);
  const other = await browserOf(service, user);
  const token = await firstPartyToken(service, user);
  const page = await person.press(await person.open(ACCOUNT), "End all others");
  t.regex(page.text, /Every other sign-in was ended/);
  t.false(await isIn(other.person));
  t.is((await apiAt(service.url, token).send("GET", "/dashboard/me")).status, 401);
  t.deepEqual(
    (await listOf(person)).map(({ current }) => current),
    [true],
  );
  const program = apiAt(service.url, await firstPartyToken(service, user));
  t.is((await program.send("DELETE", SESSIONS)).status, 204);
  t.is((await program.send("GET", "/dashboard/me")).status, 200);
  t.false(await isIn(person));
});

test("sec 118: a sign-in of somebody else, or of nobody, is not ended", async (t) => {
  const { person } = await browserOf(service, await service.createUser([]));
  const [{ id = "" } = {}] = await listOf(person);
  const stranger = await createColleague(service, undefined);
  for (const wrong of [id, "nobody", "%00", "x".repeat(300)]) {
    isMissing(t, await stranger.api.send("DELETE", `${SESSIONS}/${wrong}`));
  }
  t.true(await isIn(person));
});

// One after the other: each moves the clock.
test.serial("sec 117: a session that is used goes on; one that nobody uses for 7 days is over", async (t) => {
  const { person } = await browserOf(service, await service.createUser([]));
  for (let count = 0; count < 3; count++) {
    advanceClock(7 * DAY_MS - 3600_000);
    t.true(await isIn(person), `${count}`);
  }
  advanceClock(7 * DAY_MS);
  t.false(await isIn(person));
});

test.serial(
  "sec 117: a session that is used every day is over after 30, up to the last second",
  async (t) => {
    const { app } = await createApp(service);
    const { person } = await browserOf(service, await service.createUser([]));
    for (let day = 0; day < 29; day++) {
      advanceClock(DAY_MS);
      t.true(await isIn(person), `${day}`);
    }
    advanceClock(DAY_MS - 3000);
    for (let count = 0; count < 10; count++) {
      await person.open(authorizeUrl(service, app));
      advanceClock(500);
    }
    t.false(await isIn(person));
  },
);

test.serial("sec 117: signing in again begins the 30 days anew", async (t) => {
  const user = await service.createUser([]);
  const { person } = await browserOf(service, user);
  for (let round = 0; round < 2; round++) {
    for (let day = 0; day < 4; day++) {
      advanceClock(6 * DAY_MS);
      t.true(await isIn(person), `${round} ${day}`);
    }
    await person.signIn(await person.open(`${service.url}/auth/login?again=1`), user);
  }
});
