import test from "ava";
import { advanceClock } from "../../harness/clock.ts";
import { createTestStorage, OPERATOR } from "../../harness/database/storage.ts";

export const databases = "all";

const { first, second, knex } = await createTestStorage();

test.beforeEach(() => knex("mails").delete());

type Mail = Awaited<ReturnType<typeof first.mails.lease>>[number];
let users = 0;

async function createReader() {
  const username = `Reader-${++users}`;
  const email = `${username}@mail.example`;
  const { id = "" } = (await first.accounts.create(username, "a hash", OPERATOR)) ?? {};
  await knex("users").where({ id }).update({ email });
  return { id, username, email };
}

async function leaseReset() {
  const { username } = await createReader();
  await first.accounts.requestReset(username);
  return (await first.mails.lease(5))[0] as Mail;
}

const rowOf = ({ id }: { id: string }) => knex("mails").where({ id }).first();

test.serial("one process leases an email, and if it died, another one with the same link", async (t) => {
  const { username, email } = await createReader();
  await first.accounts.requestReset(username);
  const leases = await Promise.all([first, second, first, second].map(({ mails }) => mails.lease(5)));
  const leased = leases.flat();
  t.like(leased, [{ kind: "password_reset", recipient: email, data: { username } }]);
  t.is(leased.length, 1);
  const [before] = leased as [Mail];
  t.deepEqual(await second.mails.lease(5), []);
  advanceClock(61_000);
  const [after] = await second.mails.lease(5);
  t.like(after, { id: before.id, token: before.token, attempts: 2 });
  await first.mails.settle(before);
  t.truthy((await rowOf(before))?.due_at, "the lease was lost");
});

test.serial("a token of a queued email is stored encrypted, and deleted once it is sent", async (t) => {
  const mail = await leaseReset();
  const token = mail.token ?? "";
  t.is(token.length, 43);
  for (const table of ["mails", "one_time_links"] as const)
    t.false(JSON.stringify(await knex(table)).includes(token), table);
  await first.mails.settle(mail);
  t.like(await rowOf(mail), { secret: null, due_at: null, data: "{}" });
});

test.serial("an email that fails is due again after its pause, and expires after a day", async (t) => {
  await first.mails.retry(await leaseReset(), 120_000);
  advanceClock(119_000);
  t.deepEqual(await second.mails.lease(5), []);
  advanceClock(2000);
  t.is((await second.mails.lease(5)).length, 1);
  advanceClock(24 * 3600_000);
  t.deepEqual(await second.mails.lease(5), []);
  await first.purgeExpired();
  t.is((await knex("mails")).length, 0);
});

test.serial("users who are disabled or have no password or address get no reset link", async (t) => {
  const [disabled, silent] = [await createReader(), await createReader()];
  await knex("users").where({ id: disabled.id }).update({ disabled_at: Date.now() });
  await knex("users").where({ id: silent.id }).update({ email: null });
  const { id = "" } = (await first.accounts.create("sso-only", null, OPERATOR)) ?? {};
  await knex("users").where({ id }).update({ email: "sso@mail.example" });
  const before = (await knex("one_time_links")).length;
  for (const name of [disabled.username, silent.username, "sso-only", "unknown"])
    await first.accounts.requestReset(name);
  t.deepEqual(await second.mails.lease(10), []);
  t.is((await knex("one_time_links")).length, before);
  t.is((await knex("mails").where({ recipient: null })).length, 0);
});

test.serial("of one kind of notice, five a day are emailed", async (t) => {
  const { id, email } = await createReader();
  for (let count = 0; count < 7; count++) await first.accounts.createResetToken(id, 60_000);
  const mails = await first.mails.lease(20);
  t.is(mails.filter(({ recipient, kind }) => recipient === email && kind === "reset_link_created").length, 5);
  t.is((await first.notices.list(id)).length, 7);
});
