import test from "ava";
import { advanceClock } from "../harness/clock.ts";
import { createTestStorage, OPERATOR } from "../harness/database/storage.ts";

export const databases = "all";

const { first, knex } = await createTestStorage();

test.serial("the backlog counts deliveries and emails that are due, and has the oldest's age", async (t) => {
  const now = Date.now();
  const own = { created_at: now, expires_at: now + 1e9 };
  const delivery = { webhook_id: "whk_1", type: "link.created" as const, attempts: 0, log: "[]", ...own };
  const pending = { ...delivery, status: "pending" as const };
  await knex("deliveries").insert([
    { ...pending, event_id: "evt_1", due_at: now - 5000 },
    { ...pending, event_id: "evt_2", due_at: now - 1000 },
    { ...pending, event_id: "evt_3", due_at: now + 60_000 },
    { ...delivery, status: "succeeded", event_id: "evt_4", due_at: null },
  ]);
  const mail = { kind: "password_reset" as const, data: "{}", id: "eml_1", due_at: now - 3000 };
  await knex("mails").insert({ ...own, ...mail });
  const { deliveries, mails } = await first.backlog();
  t.deepEqual([deliveries.count, Math.floor(deliveries.seconds)], [2, 5]);
  t.deepEqual([mails.count, Math.floor(mails.seconds)], [1, 3]);
  await knex("deliveries").delete();
  await knex("mails").delete();
  const { clockAheadSeconds, ...backlog } = await first.backlog();
  const nothing = { count: 0, seconds: 0 };
  t.deepEqual(backlog, { deliveries: nothing, mails: nothing, purgeSeconds: 0 });
  t.true(Math.abs(clockAheadSeconds) < 1);
});

test.serial("the backlog says how long the oldest expired row waits for the purge", async (t) => {
  await first.organizations.create("Acme", "growth", OPERATOR);
  t.is((await first.backlog()).purgeSeconds, 0);
  await first.oidcAdapter("AccessToken").upsert("a-token", { exp: Math.floor(Date.now() / 1000) + 60 }, 60);
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
