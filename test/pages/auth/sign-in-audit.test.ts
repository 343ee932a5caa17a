import { setImmediate } from "node:timers/promises";
import test from "ava";
import type { Context } from "koa";
import { EVENT_DATA_SCHEMAS } from "../../../resources/events/schemas.ts";
import { Problem } from "../../../resources/http/problem.ts";
import { createSignInAudit } from "../../../server/auth/sign-in-audit.ts";
import { passwordProof } from "../../../server/auth/sign-in-proof.ts";
import { browserOf } from "../../harness/clients/dashboard.ts";
import { logIn } from "../../harness/clients/second-factor.ts";
import { advanceClock } from "../../harness/clock.ts";
import { atOnce } from "../../harness/database/storage.ts";
import { startTestService } from "../../harness/service.ts";
import { until } from "../../harness/webhooks.ts";

const service = await startTestService();

/** Returns a new user of two organizations, and what their logs say about sign-ins, oldest first. */
async function createUser() {
  const [one, other] = [await service.createOrganization(), await service.createOrganization()];
  const user = await service.createUser([one.id, other.id]);
  const log = async (id = one.id) =>
    (await service.storage.audit.list(id, {}, 100))
      .filter(({ type }) => /^member\.(sign|second|reauth|logged|session|data)/.test(type))
      .reverse();
  return { user, log, one, other };
}

test.serial("every sign-in and every end of a session is recorded in each organization", async (t) => {
  const { user, log, one, other } = await createUser();
  const { browser } = await browserOf(service, user);
  await logIn(service, user);
  await browser.signIn(await browser.open(`${service.url}/auth/login?again=1`), user);
  const account = await browser.open(`${service.url}/dashboard/account`);
  await browser.press(account, "Sign out everywhere else");
  await browser.press(await browser.open(`${service.url}/dashboard/account`), "Sign out");
  const expected = [
    ["member.signed_in", { user_id: user.id, methods: ["password"] }],
    ["member.signed_in", { user_id: user.id, methods: ["password"] }],
    ["member.reauthenticated", { user_id: user.id, methods: ["password"] }],
    ["member.session_ended", { user_id: user.id, sessions: 1 }],
    ["member.logged_out", { user_id: user.id }],
  ];
  for (const { id } of [one, other]) {
    const entries = await log(id);
    const recorded: unknown[] = entries.map(({ type, data }) => [type, data]);
    t.deepEqual(recorded, expected);
    t.true(entries.every(({ actor, address }) => actor === user.id && address !== null));
    for (const { type, data } of entries) t.deepEqual(EVENT_DATA_SCHEMAS[type].parse(data), data as never);
  }
});

test.serial("a flood of failed sign-ins leaves two entries per hour, which count all of them", async (t) => {
  const { user, log } = await createUser();
  const guess = { ...user, username: user.username.toUpperCase(), password: "a wrong password" };
  for (let hour = 0; hour < 2; hour++) {
    for (let batch = 0; batch < 5; batch++) await atOnce(8, () => logIn(service, guess));
    advanceClock(3600_001);
  }
  await logIn(service, guess);
  const entries = await until(async () => {
    const found = await log();
    return found.length >= 5 ? found : undefined;
  });
  for (const { type, actor } of entries) t.deepEqual([type, actor], ["member.sign_in_failed", "anonymous"]);
  t.deepEqual(entries.map(({ data }) => data.attempts).sort(), [1, 1, 1, 39, 39]);
});

test.serial("attempts that the rate limit rejects are recorded as such", async (t) => {
  const limited = await startTestService({ RATE_LIMIT: "on" });
  const { id } = await limited.createOrganization();
  const user = await limited.createUser([id]);
  const guess = { ...user, password: "a wrong password" };
  let status = 0;
  while (status !== 429) ({ status } = await logIn(limited, guess));
  const types = ["member.sign_in_throttled" as const];
  const find = async () => (await limited.storage.audit.list(id, { types }, 10))[0];
  t.like(await until(find), { actor: "anonymous", data: { user_id: user.id, attempts: 1 } });
});

test.serial("the entries of an account are in order, even if the first is stored slowly", async (t) => {
  const { user, log } = await createUser();
  const slow = Promise.withResolvers<void>();
  const begun: unknown[] = [];
  const { accounts, memberEvents } = service.storage;
  const record: typeof memberEvents.record = async (actor, event) => {
    begun.push(event.attempts);
    if (event.attempts === 1) await slow.promise;
    await memberEvents.record(actor, event);
  };
  const audit = createSignInAudit(accounts, { record }, (error) => t.fail(String(error)));
  const rejected = new Problem(401, "invalid_second_factor", "Incorrect code.");
  const verify = audit.verifyCode(() => Promise.reject(rejected));
  const pending = { issuer: "", jti: "a", proof: passwordProof(user.id), returnTo: "", expiresAt: 0 };
  for (let attempt = 0; attempt < 3; attempt++)
    await t.throwsAsync(verify({ ip: "192.0.2.1" } as Context, pending, {}), { is: rejected });
  const closed = audit.close();
  await setImmediate();
  t.deepEqual(begun, [1]);
  slow.resolve();
  await closed;
  const attempts = (await log()).map(({ data }) => data.attempts);
  t.deepEqual(attempts, [1, 2]);
});
