import test from "ava";
import { apiAt, isProblem, type Reply, read } from "../../harness/clients/api.ts";
import { advanceClock } from "../../harness/clock.ts";
import { atOnce } from "../../harness/database/storage.ts";
import { postForm, startTestService } from "../../harness/service.ts";

const service = await startTestService({ RATE_LIMIT: "on", TRUST_PROXY: "1" });

test.after.always(() => service.close());

let last = 0;
/** Returns an IP address in a new network. */
const newAddress = () => `198.51.${++last}.7`;

async function post(path: string, json: object, address: string, token?: string): Promise<Reply<unknown>> {
  const headers = { "x-forwarded-for": address };
  return apiAt(service.url, token).send("POST", path, { json, headers });
}

const signIn = (username: string, password: string, address: string) =>
  post("/auth/login", { username, password }, address);

function isThrottled(t: Parameters<typeof isProblem>[0], reply: Reply<unknown>) {
  isProblem(t, reply, { status: 429, code: "too_many_requests" });
  const seconds = Number(reply.headers.get("retry-after"));
  t.true(Number.isInteger(seconds) && seconds >= 1 && seconds <= 60, `${seconds}`);
}

// Serial, because some tests move the clock and only a few passwords are verified concurrently.
test.serial(
  "after five wrong passwords a program has to wait, and another IP address can still sign in",
  async (t) => {
    const { username, password } = await service.createUser([]);
    const address = newAddress();
    for (let count = 0; count < 5; count++) {
      isProblem(t, await signIn(username, `guess ${count}`, address), {
        status: 401,
        code: "invalid_credentials",
      });
    }
    for (const next of ["guess 6", password]) isThrottled(t, await signIn(username, next, address));
    t.is((await signIn(username, password, newAddress())).status, 200, "the account is not locked");
    advanceClock(61_000);
    t.is((await signIn(username, password, address)).status, 200);
  },
);

test.serial("thirty concurrent guesses get no further than sequential ones", async (t) => {
  const { username, password } = await service.createUser([]);
  const address = newAddress();
  const replies = await atOnce(30, (index) => signIn(username, `guess ${index}`, address));
  t.is(replies.filter(({ status }) => status === 401).length, 5);
  for (const reply of replies.filter(({ status }) => status !== 401)) isThrottled(t, reply);
  t.is((await signIn(username, password, newAddress())).status, 200);
});

test.serial("guesses at the pages, for tokens and for the current password share one limit", async (t) => {
  const { username, password } = await service.createUser([]);
  const address = newAddress();
  const { body } = await signIn(username, password, address);
  const token = (body as { access_token: string }).access_token;
  const guess = { current_password: "guess", new_password: "an entirely new one" };
  const form = { username, password: "guess" };
  const headers = { accept: "text/html", origin: service.url, "x-forwarded-for": address };
  const ways = [
    () => signIn(username, "guess", address),
    () => post("/dashboard/account/password", guess, address, token),
    async () => read(await postForm(`${service.url}/auth/login`, form, headers)),
  ];
  const statuses = [];
  for (let count = 0; count < 8; count++) statuses.push((await ways[count % 3]?.())?.status);
  t.deepEqual(statuses, [401, 422, 400, 401, 422, 429, 429, 429]);
  isThrottled(t, await post("/dashboard/account/password", guess, address, token));
});

test.serial("usernames that can't exist share one limit per IP address", async (t) => {
  const address = newAddress();
  const names = ["", "x".repeat(60_000), "a b", "!", "x".repeat(65)];
  for (const name of names) t.is((await signIn(name, "guess", address)).status, 401);
  isThrottled(t, await signIn("y".repeat(60_000), "guess", address));
});

test.serial("an IP address has ten attempts to register per minute, invalid ones included", async (t) => {
  const address = newAddress();
  const register = (username: string, password = "correct horse battery") =>
    post("/auth/register", { username, password }, address);
  for (let count = 0; count < 5; count++) t.is((await register("x", "short")).status, 422);
  for (let count = 0; count < 5; count++) t.is((await register(`throttled${count}`)).status, 201);
  isThrottled(t, await register("throttled10"));
  isThrottled(t, await register("x", "short"));
  t.is(await service.storage.accounts.findByUsername("throttled10"), undefined);
  advanceClock(61_000);
  t.is((await register("throttled10")).status, 201);
});

test.serial("refreshing is limited per IP address, not per token", async (t) => {
  const address = newAddress();
  const refresh = (token: string) => post("/auth/refresh", { refresh_token: token }, address);
  for (let batch = 0; batch < 10; batch++) {
    const replies = await atOnce(30, (index) => refresh(`lgr_${batch}-${index}`));
    for (const { status } of replies) t.is(status, 401);
  }
  isThrottled(t, await refresh("lgr_300"));
  advanceClock(61_000);
  t.is((await refresh("lgr_301")).status, 401);
});

test.serial("changes in the dashboard are limited per user, and reads are not", async (t) => {
  const { username, password } = await service.createUser([]);
  const { body } = await signIn(username, password, newAddress());
  const token = (body as { access_token: string }).access_token;
  const create = () => post("/dashboard/organizations", { name: "" }, newAddress(), token);
  for (let batch = 0; batch < 20; batch++) {
    for (const { status } of await atOnce(30, create)) t.is(status, 422);
  }
  isThrottled(t, await create());
  t.is((await apiAt(service.url, token).get("/dashboard/me")).status, 200);
  advanceClock(61_000);
  t.is((await create()).status, 422);
});

/** Returns an address in the given /64 of a /56, which is in a /48. */
const addressIn = (site: number, half: number, subnet: number) =>
  `2001:db8:${site}:${(half * 256 + subnet).toString(16)}::1`;

function postFrom(path: string, json: object, address: string, cookie = "") {
  const headers = { "x-forwarded-for": address, ...(cookie && { cookie }) };
  return apiAt(service.url).send("POST", path, { json, headers });
}

const signInFrom = (username: string, password: string, address: string, cookie?: string) =>
  postFrom("/auth/login", { username, password }, address, cookie);

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
    const replies = await atOnce(5, (index) => signInFrom(user.username, `guess ${index}`, address));
    for (const { status } of replies) statuses.add(status);
  }
  t.true(statuses.has(429));
  t.is((await signInFrom(user.username, user.password, "192.0.2.1", cookie)).status, 200);
  t.is(
    (await signInFrom(user.username, user.password, addressIn(1, 0, 3), cookie)).status,
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
          return signInFrom(username, "guess", addressIn(2, half, subnet));
        });
        failures += replies.filter(({ status }) => status === 401).length;
      }
    }
    return failures;
  };
  t.is(await failuresFrom(0, 5), 100, "of a /56");
  t.is(await failuresFrom(1, 5), 100, "of another /56");
  t.is(await failuresFrom(2, 1), 0, "of the /48");
  t.is((await signInFrom("name", "guess", addressIn(3, 0, 0))).status, 401, "another /48");
});

test.serial("a /56 can register twenty users per minute, and a /48 forty", async (t) => {
  advanceClock(61_000);
  let count = 0;
  const registeredFrom = async (half: number) => {
    let registered = 0;
    for (let subnet = 0; subnet < 6; subnet++) {
      const replies = await atOnce(10, () => {
        const user = { username: `sybil${count++}`, password: "correct horse battery" };
        return postFrom("/auth/register", user, addressIn(4, half, subnet));
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
    signInFrom(`flood-${index}`, "guess", addressIn(5, Math.floor(index / 50), index % 50)),
  );
  const honest = await Promise.all(
    users.map(({ username, password }, index) => signInFrom(username, password, `192.0.${index + 10}.1`)),
  );
  t.deepEqual([...new Set(honest.map(({ status }) => status))], [200]);
  t.true(
    (await flood).some(({ status }) => status === 503),
    "the flood itself has to wait",
  );
});
