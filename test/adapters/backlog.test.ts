import test from "ava";
import { OPERATOR } from "../../resources/events/types.ts";
import { advanceClock } from "../harness/clock.ts";
import { createTestStorage } from "../harness/database/storage.ts";

export const databases = "all";

const storage = await createTestStorage();
const { first, database } = storage;
const { knex } = database;
test.after.always(() => storage.close());

test.serial("an empty database has no backlog", async (t) => {
  const { clockAheadSeconds, ...backlog } = await first.backlog();
  const nothing = { count: 0, seconds: 0 };
  t.deepEqual(backlog, { deliveries: nothing, mails: nothing, purgeSeconds: 0 });
  t.true(Math.abs(clockAheadSeconds) < 1);
});

test.serial(
  "the backlog counts deliveries and emails that are due, and says how long the oldest waits",
  async (t) => {
    const now = Date.now();
    const delivery = {
      webhook_id: "whk_1",
      type: "link.created" as const,
      status: "pending" as const,
      attempts: 0,
      log: "[]",
      created_at: now,
    };
    const later = { expires_at: now + 1e9 };
    await knex("deliveries").insert([
      { ...delivery, ...later, event_id: "evt_1", due_at: now - 5000 },
      { ...delivery, ...later, event_id: "evt_2", due_at: now - 1000 },
      { ...delivery, ...later, event_id: "evt_3", due_at: now + 60_000 },
      { ...delivery, ...later, event_id: "evt_4", due_at: null, status: "succeeded" as const },
    ]);
    const mail = { kind: "password_reset" as const, data: "{}", created_at: now };
    await knex("mails").insert({ ...mail, ...later, id: "eml_1", due_at: now - 3000 });
    const { deliveries, mails } = await first.backlog();
    t.is(deliveries.count, 2);
    t.is(Math.floor(deliveries.seconds), 5);
    t.deepEqual([mails.count, Math.floor(mails.seconds)], [1, 3]);
    await knex("deliveries").delete();
    await knex("mails").delete();
  },
);

test.serial("the backlog says how long the oldest expired row waits for the purge", async (t) => {
  const { organization } = await first.organizations.create("Acme", "growth", OPERATOR);
  t.is((await first.backlog()).purgeSeconds, 0);
  const seconds = Math.floor(Date.now() / 1000);
  await first.oidcAdapter("AccessToken").upsert("a-token", { exp: seconds + 60 }, 60);
  await knex("notices").insert({
    id: "ntc_1",
    user_id: organization.id,
    kind: "password_changed",
    data: "{}",
    created_at: Date.now(),
    expires_at: Date.now() + 90_000,
  } as never);
  advanceClock(120_000);
  const { purgeSeconds } = await first.backlog();
  t.true(purgeSeconds >= 59 && purgeSeconds <= 62, String(purgeSeconds));
  await first.purgeExpired();
  t.is((await first.backlog()).purgeSeconds, 0);
});

test.serial("the backlog says how far the clock is ahead of the database's", async (t) => {
  advanceClock(3_600_000);
  t.true((await first.backlog()).clockAheadSeconds > 3590);
});
