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

test.serial("an IP address can register ten users per minute, and failed attempts count", async (t) => {
  const address = newAddress();
  const register = (username: string, password = "correct horse battery") =>
    post("/auth/register", { username, password }, address);
  for (let count = 0; count < 20; count++) t.is((await register("x", "short")).status, 422);
  for (let count = 0; count < 10; count++) t.is((await register(`throttled${count}`)).status, 201);
  isThrottled(t, await register("throttled10"));
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
