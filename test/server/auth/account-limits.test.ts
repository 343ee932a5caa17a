import test from "ava";
import { sha256 } from "../../../adapters/crypto/hash.ts";
import { createPasswords } from "../../../server/credentials/passwords.ts";
import { apiAt, isProblem, type Reply } from "../../harness/clients/api.ts";
import { createColleague } from "../../harness/clients/dashboard.ts";
import { addTotp, type Challenge, logIn, proveFactor } from "../../harness/clients/second-factor.ts";
import { advanceClock } from "../../harness/clock.ts";
import { purgeExpired } from "../../harness/database/purge.ts";
import { atOnce, createTestStorage } from "../../harness/database/storage.ts";
import { startTestService, type TestUser } from "../../harness/service.ts";

export const databases = "all";

const { url, encryptionKey, database, first: storage, second, close } = await createTestStorage();
const settings = {
  DATABASE_URL: url,
  ENCRYPTION_KEY: Buffer.from(encryptionKey).toString("base64url"),
  RATE_LIMIT: "on",
  TRUST_PROXY: "1",
};
let service = await startTestService(settings);
test.after.always(async () => {
  await service.close();
  await close();
});

const FREE_FAILURES = 10;
const MAX_FAILURES = 100;
const { signInFailures } = storage;

let last = 0;
/** Returns an IP address in a new network. */
const newAddress = () => `203.${Math.floor(++last / 250)}.${last % 250}.7`;

function signIn(username: string, password: string, cookie = ""): Promise<Reply<unknown>> {
  const headers = { "x-forwarded-for": newAddress(), ...(cookie && { cookie }) };
  return apiAt(service.url).send("POST", "/auth/login", { json: { username, password }, headers });
}

/** Signs in as a browser does. Returns the cookie of the device. */
async function deviceOf({ username, password }: { username: string; password: string }) {
  const { headers } = await fetch(`${service.url}/auth/login`, {
    method: "POST",
    body: new URLSearchParams({ username, password }),
    headers: { accept: "text/html", origin: service.url, "x-forwarded-for": newAddress() },
    redirect: "manual",
  });
  return headers
    .getSetCookie()
    .find((line) => line.startsWith("device="))
    ?.split(";")[0];
}

type From = { address?: string; cookie?: string | undefined };

/** Sends the second factor of a login. */
function send(login_token: string, fields: object, { address = newAddress(), cookie = "" }: From = {}) {
  const headers = { "x-forwarded-for": address, ...(cookie && { cookie }) };
  const json = { login_token, ...fields };
  return apiAt(service.url).send("POST", "/auth/login/second-factor", { json, headers });
}

/** Signs in with the password and a second factor. */
async function prove({ username, password }: TestUser, fields: object, { cookie }: From = {}) {
  const { body } = await signIn(username, password, cookie);
  return send((body as Challenge).login_token, fields, { cookie: cookie ?? "" });
}

/** Returns the delay that a number of failures causes. */
function delayAfter(failures: number): number {
  return failures <= FREE_FAILURES ? 0 : Math.min(1000 * 2 ** (failures - FREE_FAILURES), 900_000);
}

/** Guesses as fast as it is allowed, until a reset is required. */
async function guessUntilBlocked(t: Parameters<typeof isProblem>[0], username: string) {
  for (let failures = 1; failures <= MAX_FAILURES; failures++) {
    const start = Date.now();
    isProblem(t, await signIn(username, `guess ${failures}`), { status: 401, code: "invalid_credentials" });
    const delay = delayAfter(failures);
    if (delay === 0) continue;
    const [next = 0] = await database
      .knex("sign_in_failures")
      .where({ account_key: sha256(username) })
      .pluck("next_attempt_at");
    t.true(next - Date.now() <= delay && delay <= next - start, `${failures}`);
    if (failures === 30) {
      const reply = await signIn(username, "too early");
      isProblem(t, reply, { status: 429, code: "too_many_requests" });
      t.true(Number(reply.headers.get("retry-after")) > 60);
    }
    advanceClock(delay);
  }
  isProblem(t, await signIn(username, "one more"), { status: 403, code: "password_reset_required" });
}

test.serial(
  "guesses from many networks wait longer and longer, and end after a hundred; unknown usernames answer alike",
  async (t) => {
    const user = await service.createUser([]);
    const cookie = await deviceOf(user);
    await guessUntilBlocked(t, user.username);
    await guessUntilBlocked(t, "no-such-user");

    const { username, password } = user;
    const blocked = await signIn(username, password);
    isProblem(t, blocked, { status: 403, code: "password_reset_required" });
    const unknown = await signIn("no-such-user", password);
    const withoutId = ({ body }: Reply<unknown>) => ({ ...(body as object), request_id: "" });
    t.deepEqual(withoutId(unknown), withoutId(blocked));
    advanceClock(60 * 24 * 3600 * 1000);
    await purgeExpired(storage);
    await service.close();
    service = await startTestService(settings);
    t.is((await signIn(username, password)).status, 403, "also after months and a restart");
    t.is((await signIn(username, password, cookie)).status, 200, "on a known device");
    t.is((await signIn(username, password)).status, 403, "which doesn't end it for others");

    const notices = await storage.notices.list(user.id);
    t.is(notices.filter(({ kind }) => kind === "account_locked").length, 1);
    const token = await storage.accounts.createResetToken(user.id, 60_000);
    const page = await fetch(`${service.url}/auth/reset-password/${token}`, {
      method: "POST",
      body: new URLSearchParams({ password: "an entirely different one" }),
    });
    t.is(page.status, 200);
    t.is((await signIn(username, "an entirely different one")).status, 200);
  },
);

test.serial(
  "the right password from an unknown device resets the count, from a known device it doesn't",
  async (t) => {
    const { id, username, password } = await service.createUser([]);
    const cookie = await deviceOf({ username, password });
    const countOf = async () =>
      (await database.knex("sign_in_failures").whereNull("expires_at").pluck("failures"))[0];
    await database.knex("sign_in_failures").delete();
    for (let times = 0; times < 8; times++) await signIn(username, "guess");
    t.is((await signIn(username, password, cookie)).status, 200);
    t.is(await countOf(), 8);
    t.is((await signIn(username, password)).status, 200);
    t.is(await countOf(), undefined);
    await signIn(username, "guess");
    t.is(await countOf(), 1);
    await storage.accounts.changePassword(
      { currentHash: (await storage.accounts.find(id))?.passwordHash ?? null, newHash: "a hash" },
      "",
      { id },
    );
    t.is(await countOf(), undefined);
  },
);

test.serial("the page says what to do, and is the same for unknown usernames", async (t) => {
  const { username } = await service.createUser([]);
  const texts = [];
  for (const name of [username, "unknown"]) {
    await signIn(name, "guess");
    const delayed = database.knex("sign_in_failures").where({ account_key: sha256(name) });
    await delayed.update({ next_attempt_at: Date.now() + 10 * 60_000 - 1000 });
    const reply = await fetch(`${service.url}/auth/login`, {
      method: "POST",
      body: new URLSearchParams({ username: name, password: "guess" }),
      headers: { accept: "text/html", origin: service.url, "x-forwarded-for": newAddress() },
    });
    t.is(reply.status, 429);
    t.truthy(reply.headers.get("retry-after"));
    t.is(reply.headers.get("cache-control"), "no-store");
    texts.push(
      (await reply.text()).replaceAll(name, "NAME").replace(/challenge&quot;:&quot;[\w-]+/, "CHALLENGE"),
    );
  }
  t.regex(texts[0] ?? "", /Too many attempts\. Try again in 10 minutes\./);
  t.is(texts[0], texts[1]);
});

test.serial(
  "of concurrent attempts in two processes, no more are allowed than one after the other",
  async (t) => {
    const user = await service.createUser([]);

    const attempts = await atOnce(60, (index) =>
      (index % 2 ? storage : second).signInFailures.attempt(user.username, user.id),
    );
    const allowed = attempts.filter(({ outcome }) => outcome === "allowed").length;
    t.true(allowed >= 1 && allowed <= FREE_FAILURES + 1, `${allowed}`);
    const [row] = await database.knex("sign_in_failures").where({ failures: allowed }).select("failures");
    t.is(row?.failures, allowed);
  },
);

test.serial(
  "after a hundred wrong codes in a row, an authenticator app is refused until the password is new",
  async (t) => {
    const user = await addTotp(service, await createColleague(service, undefined));
    await storage.signInFailures.resetFactor(user.id);
    for (let failures = 1; failures <= MAX_FAILURES; failures++) {
      t.is((await signInFailures.attemptFactor(user.id)).outcome, "allowed");
      advanceClock(delayAfter(failures));
    }
    const refused = await prove(user, { totp: user.code() });
    isProblem(t, refused as never, { status: 403, code: "password_reset_required" });
    const kinds = (await storage.notices.list(user.id)).map(({ kind }) => kind);
    t.is(kinds.filter((kind) => kind === "second_factor_locked").length, 1);

    const link = await storage.accounts.createResetToken(user.id, 60_000);
    await storage.accounts.resetPassword(link, await createPasswords().hash(user.password));
    t.is((await prove(user, { totp: user.code() })).status, 200);
  },
);

test.serial("wrong codes delay further ones, also after a restart, and not recovery codes", async (t) => {
  const user = await addTotp(service, await createColleague(service, undefined));
  const { login_token } = (await logIn(service, user)).body;
  for (let guess = 0; guess < FREE_FAILURES; guess++)
    t.is((await proveFactor(service, login_token, { totp: `00000${guess}` })).status, 401);
  await service.close();
  service = await startTestService(settings);
  const { login_token: later } = (await logIn(service, user)).body;
  t.is((await proveFactor(service, later, { totp: "000010" })).status, 401);
  const delayed = await proveFactor(service, later, { totp: user.code() });
  isProblem(t, delayed as never, { status: 429, code: "too_many_requests" });
  t.is((await proveFactor(service, later, { recovery_code: user.recoveryCodes[0] })).status, 200);
});

test.serial("wrong codes from elsewhere don't keep known devices and recovery codes out", async (t) => {
  const colleague = await createColleague(service, undefined);
  const cookie = await deviceOf(colleague);
  const user = await addTotp(service, colleague);
  t.is((await prove(user, { totp: user.code() })).status, 200);
  for (let guess = 0; guess < FREE_FAILURES; guess++)
    t.is((await prove(user, { totp: `00000${guess}` })).status, 401);
  advanceClock(60_000); // for a code of another time step
  const elsewhere = await prove(user, { totp: user.code() });
  isProblem(t, elsewhere as never, { status: 429, code: "too_many_requests" });
  t.is((await prove(user, { recovery_code: user.recoveryCodes[0] }, { cookie })).status, 200);
  t.is((await prove(user, { totp: user.code() }, { cookie })).status, 200);
  t.is((await prove(user, { totp: user.code(2) })).status, 429, "a known device proves nothing for others");
  t.is((await prove(user, { recovery_code: user.recoveryCodes[1] })).status, 200);
});

test.serial(
  "after ten wrong codes, a device is unknown; the right password doesn't change that",
  async (t) => {
    const colleague = await createColleague(service, undefined);
    const cookie = await deviceOf(colleague);
    const user = await addTotp(service, colleague);
    for (let guess = 0; guess < FREE_FAILURES; guess++)
      t.is((await prove(user, { totp: `00000${guess}` }, { cookie })).status, 401);
    const failures = () => database.knex("known_devices").where({ user_id: user.id }).pluck("failures");
    t.true((await failures()).includes(FREE_FAILURES));
    for (let guess = 0; guess < FREE_FAILURES; guess++)
      t.is((await prove(user, { totp: `00000${guess}` }, { cookie })).status, 401);
    t.is((await prove(user, { totp: user.code() }, { cookie })).status, 429);
  },
);

test.serial("wrong recovery codes are limited per network", async (t) => {
  const user = await addTotp(service, await createColleague(service, undefined));
  const address = newAddress();
  const { login_token } = (await logIn(service, user)).body;
  const from = (recovery_code = "") => send(login_token, { recovery_code }, { address });
  for (let guess = 0; guess < 50; guess++) t.is((await from(`guess ${guess}`)).status, 401);
  isProblem(t, await from(user.recoveryCodes[0]), { status: 429, code: "too_many_requests" });
  t.is((await send(login_token, { recovery_code: user.recoveryCodes[0] })).status, 200, "another network");
});

test.serial("usernames that no user can have are not stored", async (t) => {
  await database.knex("sign_in_failures").delete();
  for (const name of ["", "a b", "x".repeat(60_000), "!"]) t.is((await signIn(name, "guess")).status, 401);
  t.deepEqual(await database.knex("sign_in_failures"), []);
});

test.serial("a username that is registered starts without failures", async (t) => {
  for (let times = 0; times < 3; times++) await signIn("taken-later", "guess");
  await service.createUser([], "taken-later");
  t.deepEqual(await signInFailures.attempt("taken-later", "usr_1"), { outcome: "allowed" });
  t.is((await database.knex("sign_in_failures").where({ failures: 1 })).length >= 1, true);
});

test.serial(
  "of the unknown usernames the twenty thousand of the last failures are kept, and all users",
  async (t) => {
    const { knex } = database;
    await knex("sign_in_failures").delete();
    const rows = Array.from({ length: 20_050 }, (_, index) => ({
      account_key: `${index}`.padStart(43, "u"),
      failures: 1,
      next_attempt_at: 0,
      expires_at: index < 5 ? null : Date.now() + 1_000_000 + index,
    }));
    while (rows.length > 0) await knex("sign_in_failures").insert(rows.splice(0, 200));
    await purgeExpired(storage);
    const [{ total } = { total: 0 }] = await knex("sign_in_failures").count({ total: "*" });
    t.is(Number(total), 20_005);
    t.is((await knex("sign_in_failures").whereNull("expires_at")).length, 5);
  },
);
