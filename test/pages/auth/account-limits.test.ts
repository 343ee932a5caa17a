import test from "ava";
import { createPasswords } from "../../../server/credentials/passwords.ts";
import { deviceCookie, newAddress } from "../../harness/clients/addresses.ts";
import { apiAt, isProblem, type Reply } from "../../harness/clients/api.ts";
import { createColleague } from "../../harness/clients/dashboard.ts";
import { addTotp, type Challenge, logIn } from "../../harness/clients/second-factor.ts";
import { advanceClock } from "../../harness/clock.ts";
import { purgeExpired } from "../../harness/database/purge.ts";
import { startWithStorage } from "../../harness/database/service-storage.ts";
import { atOnce } from "../../harness/database/storage.ts";
import { postForm, startTestService, type TestUser } from "../../harness/service.ts";

export const databases = "all";

const limited = { RATE_LIMIT: "on", TRUST_PROXY: "1" };
const { service, settings, second, knex } = await startWithStorage(limited);
const { storage } = service;
const { signInFailures } = storage;

const FREE_FAILURES = 10;
const MAX_FAILURES = 100;
const failuresTable = () => knex("sign_in_failures");

function signIn(username: string, password: string, cookie = "", { url } = service) {
  const headers = { "x-forwarded-for": newAddress(), ...(cookie && { cookie }) };
  return apiAt(url).send<unknown>("POST", "/auth/login", { json: { username, password }, headers });
}

type From = { address?: string; cookie?: string };

function send(login_token: string, fields: object, { address = newAddress(), cookie = "" }: From = {}) {
  const headers = { "x-forwarded-for": address, ...(cookie && { cookie }) };
  const json = { login_token, ...fields };
  return apiAt(service.url).send("POST", "/auth/login/second-factor", { json, headers });
}

async function prove({ username, password }: TestUser, fields: object, { cookie = "" }: From = {}) {
  const { body } = await signIn(username, password, cookie);
  return send((body as Challenge).login_token, fields, { cookie });
}

const delayAfter = (failures: number) =>
  failures <= FREE_FAILURES ? 0 : Math.min(1000 * 2 ** (failures - FREE_FAILURES), 900_000);

test.serial("guesses at any username wait longer and longer, and end after a hundred", async (t) => {
  const { id, username, password } = await service.createUser([]);
  const cookie = await deviceCookie(service, { username, password });
  for (const [name, userId] of Object.entries({ [username]: id, "no-such-user": undefined }))
    for (let failures = 1; failures <= MAX_FAILURES; failures++) {
      t.is((await signInFailures.attempt(name, userId)).outcome, "allowed");
      const next = await signInFailures.attempt(name, userId);
      const delay = delayAfter(failures);
      if (failures === MAX_FAILURES) t.is(next.outcome, "blocked");
      else if (delay > 0)
        t.true(next.outcome === "delayed" && delay - 60_000 < next.waitMs && next.waitMs <= delay);
      else failures++;
      advanceClock(delay);
    }

  const blocked = await signIn(username, password);
  isProblem(t, blocked, { status: 403, code: "password_reset_required" });
  const unknown = await signIn("no-such-user", password);
  const withoutId = ({ body }: Reply<unknown>) => ({ ...(body as object), request_id: "" });
  t.deepEqual(withoutId(unknown), withoutId(blocked));
  advanceClock(60 * 24 * 3600 * 1000);
  await purgeExpired(storage);
  const restarted = await startTestService(settings);
  t.is((await signIn(username, password, "", restarted)).status, 403, "also after months and a restart");
  t.is((await signIn(username, password, cookie)).status, 200, "on a known device");
  t.is((await signIn(username, password)).status, 403, "which doesn't end it for others");

  const notices = await storage.notices.list(id);
  t.is(notices.filter(({ kind }) => kind === "account_locked").length, 1);
  const token = await storage.accounts.createResetToken(id, 60_000);
  const reset = { password: "an entirely different one" };
  t.is((await postForm(`${service.url}/auth/reset-password/${token}`, reset)).status, 200);
  t.is((await signIn(username, reset.password)).status, 200);
});

test.serial("the right password resets the count, but not when it comes from a known device", async (t) => {
  const { id, username, password } = await service.createUser([]);
  const cookie = await deviceCookie(service, { username, password });
  const countOf = async () => (await failuresTable().whereNull("expires_at").pluck("failures"))[0];
  await failuresTable().delete();
  for (let times = 0; times < 8; times++) await signIn(username, "guess");
  t.is((await signIn(username, password, cookie)).status, 200);
  t.is(await countOf(), 8);
  t.is((await signIn(username, password)).status, 200);
  t.is(await countOf(), undefined);
  await signIn(username, "guess");
  t.is(await countOf(), 1);
  const { passwordHash = null } = (await storage.accounts.find(id)) ?? {};
  await storage.accounts.changePassword({ currentHash: passwordHash, newHash: "a hash" }, "", { id });
  t.is(await countOf(), undefined);
});

test.serial("of concurrent attempts in two processes, no more are allowed than in sequence", async (t) => {
  const user = await service.createUser([]);
  const attempts = await atOnce(60, (index) =>
    (index % 2 ? storage : second).signInFailures.attempt(user.username, user.id),
  );
  const allowed = attempts.filter(({ outcome }) => outcome === "allowed").length;
  t.true(allowed >= 1 && allowed <= FREE_FAILURES + 1, `${allowed}`);
  t.is((await failuresTable().where({ failures: allowed })).length, 1);
});

test.serial("after a hundred wrong codes, an app is refused until the password is new", async (t) => {
  const user = await addTotp(service, await createColleague(service, undefined));
  await storage.signInFailures.resetFactor(user.id);
  for (let failures = 1; failures <= MAX_FAILURES; failures++) {
    t.is((await signInFailures.attemptFactor(user.id)).outcome, "allowed");
    advanceClock(delayAfter(failures));
  }
  const refused = await prove(user, { totp: user.code() });
  isProblem(t, refused as never, { status: 403, code: "password_reset_required" });
  const notices = await storage.notices.list(user.id);
  t.is(notices.filter(({ kind }) => kind === "second_factor_locked").length, 1);

  const link = await storage.accounts.createResetToken(user.id, 60_000);
  await storage.accounts.resetPassword(link, await createPasswords().hash(user.password));
  t.is((await prove(user, { totp: user.code() })).status, 200);
});

/** Creates a user with an authenticator app and a known device, whose cookie is returned. */
async function protectedWithDevice() {
  const colleague = await createColleague(service, undefined);
  const cookie = await deviceCookie(service, colleague);
  return { user: await addTotp(service, colleague), cookie };
}

test.serial("wrong codes from elsewhere don't keep known devices and recovery codes out", async (t) => {
  const { user, cookie } = await protectedWithDevice();
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

test.serial("after ten wrong codes a device is unknown, whether or not the password is right", async (t) => {
  const { user, cookie } = await protectedWithDevice();
  const guess = async () => {
    for (let count = 0; count < FREE_FAILURES; count++)
      t.is((await prove(user, { totp: `00000${count}` }, { cookie })).status, 401);
  };
  await guess();
  const failures = await knex("known_devices").where({ user_id: user.id }).pluck("failures");
  t.true(failures.includes(FREE_FAILURES));
  await guess();
  t.is((await prove(user, { totp: user.code() }, { cookie })).status, 429);
});

test.serial("wrong recovery codes are limited per network", async (t) => {
  const user = await addTotp(service, await createColleague(service, undefined));
  const address = newAddress();
  const { login_token } = (await logIn(service, user)).body;
  const from = (recovery_code = "") => send(login_token, { recovery_code }, { address });
  for (let guess = 0; guess < 50; guess++) t.is((await from(`guess ${guess}`)).status, 401);
  isProblem(t, await from(user.recoveryCodes[0]), { status: 429, code: "too_many_requests" });
  t.is((await send(login_token, { recovery_code: user.recoveryCodes[0] })).status, 200, "another network");
});

test.serial("impossible usernames are not stored, and a registered one has no failures", async (t) => {
  await failuresTable().delete();
  for (const name of ["", "a b", "x".repeat(60_000), "!"]) t.is((await signIn(name, "guess")).status, 401);
  t.deepEqual(await failuresTable(), []);
  for (let times = 0; times < 3; times++) await signInFailures.attempt("taken-later", undefined);
  await service.createUser([], "taken-later");
  t.deepEqual(await failuresTable(), []);
});

test.serial("the twenty thousand unknown usernames that failed last are kept, and all users", async (t) => {
  await failuresTable().delete();
  const rows = Array.from({ length: 20_050 }, (_, index) => ({
    account_key: `${index}`.padStart(43, "u"),
    failures: 1,
    next_attempt_at: 0,
    expires_at: index < 5 ? null : Date.now() + 1_000_000 + index,
  }));
  while (rows.length > 0) await failuresTable().insert(rows.splice(0, 200));
  await purgeExpired(storage);
  const kept = await failuresTable().pluck("expires_at");
  t.is(kept.length, 20_005);
  t.is(kept.filter((expiry) => expiry === null).length, 5);
});
