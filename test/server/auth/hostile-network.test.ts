import test from "ava";
import { apiAt } from "../../harness/clients/api.ts";
import { advanceClock } from "../../harness/clock.ts";
import { atOnce } from "../../harness/database/storage.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService({ RATE_LIMIT: "on", TRUST_PROXY: "1" });
test.after.always(() => service.close());

/** Returns an address in the given /64 of a /56, which is in a /48. */
const addressIn = (site: number, half: number, subnet: number) =>
  `2001:db8:${site}:${(half * 256 + subnet).toString(16)}::1`;

function post(path: string, json: object, address: string, cookie = "") {
  const headers = { "x-forwarded-for": address, ...(cookie && { cookie }) };
  return apiAt(service.url).send("POST", path, { json, headers });
}

const signIn = (username: string, password: string, address: string, cookie?: string) =>
  post("/auth/login", { username, password }, address, cookie);

/** Signs in as a browser does. Returns the cookie of the device. */
async function deviceOf({ username, password }: { username: string; password: string }, address: string) {
  const { headers } = await fetch(`${service.url}/auth/login`, {
    method: "POST",
    body: new URLSearchParams({ username, password }),
    headers: { accept: "text/html", origin: service.url, "x-forwarded-for": address },
    redirect: "manual",
  });
  const cookies = headers.getSetCookie().map((line) => line.split(";")[0] ?? "");
  return cookies.find((cookie) => cookie.startsWith("device=")) ?? "";
}

test.serial("guesses from a /56 don't lock a user out of a known device", async (t) => {
  const user = await service.createUser([]);
  const cookie = await deviceOf(user, "192.0.2.1");
  t.regex(cookie, /^device=/);
  const statuses = new Set<number>();
  for (let subnet = 0; subnet < 25; subnet++) {
    const address = addressIn(1, 0, subnet);
    const replies = await atOnce(5, (index) => signIn(user.username, `guess ${index}`, address));
    for (const { status } of replies) statuses.add(status);
  }
  t.true(statuses.has(429));
  t.is((await signIn(user.username, user.password, "192.0.2.1", cookie)).status, 200);
  t.is(
    (await signIn(user.username, user.password, addressIn(1, 0, 3), cookie)).status,
    200,
    "on their network",
  );
});

test.serial("a /56 and a /48 have limits on sign-ins of their own", async (t) => {
  advanceClock(61_000);
  const failuresFrom = async (half: number, subnets: number) => {
    let failures = 0;
    for (let subnet = 0; subnet < subnets; subnet++) {
      for (let wave = 0; wave < 6; wave++) {
        const replies = await atOnce(5, (index) => {
          const username = `name-${half}-${subnet}-${wave}-${index}`;
          return signIn(username, "guess", addressIn(2, half, subnet));
        });
        failures += replies.filter(({ status }) => status === 401).length;
      }
    }
    return failures;
  };
  t.is(await failuresFrom(0, 5), 100, "of a /56");
  t.is(await failuresFrom(1, 5), 100, "of another /56");
  t.is(await failuresFrom(2, 1), 0, "of the /48");
  t.is((await signIn("name", "guess", addressIn(3, 0, 0))).status, 401, "another /48");
});

test.serial("a /56 can register twenty users per minute, and a /48 forty", async (t) => {
  advanceClock(61_000);
  let count = 0;
  const registeredFrom = async (half: number) => {
    let registered = 0;
    for (let subnet = 0; subnet < 6; subnet++) {
      const replies = await atOnce(10, () => {
        const user = { username: `sybil${count++}`, password: "correct horse battery" };
        return post("/auth/register", user, addressIn(4, half, subnet));
      });
      registered += replies.filter(({ status }) => status === 201).length;
    }
    return registered;
  };
  t.is(await registeredFrom(0), 20);
  t.is(await registeredFrom(1), 20);
  t.is(await registeredFrom(2), 0);
});

test.serial("a flood from one /48 doesn't block the sign-ins of others", async (t) => {
  advanceClock(61_000);
  const users = [];
  for (let index = 0; index < 20; index++) users.push(await service.createUser([]));
  const flood = atOnce(150, (index) =>
    signIn(`flood-${index}`, "guess", addressIn(5, Math.floor(index / 50), index % 50)),
  );
  const honest = await Promise.all(
    users.map(({ username, password }, index) => signIn(username, password, `192.0.${index + 10}.1`)),
  );
  t.deepEqual([...new Set(honest.map(({ status }) => status))], [200]);
  t.true(
    (await flood).some(({ status }) => status === 503),
    "the flood itself has to wait",
  );
});
