import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { advanceClock } from "../../harness/clock.ts";
import { createTestStorage } from "../../harness/database/storage.ts";

export const databases = "all";

const storage = await createTestStorage();
const { first, second, database } = storage;
const { knex } = database;
test.after.always(() => storage.close());

let users = 0;

async function createReader() {
  const username = `Reader-${++users}`;
  const { id = "" } = (await first.accounts.create(username, "a hash", OPERATOR)) ?? {};
  await knex("users")
    .where({ id })
    .update({ email: `${username}@mail.example` });
  return { id, username, email: `${username}@mail.example` };
}

const deleteAll = () => knex("mails").delete();

test.serial("of several processes, one leases an email", async (t) => {
  await deleteAll();
  const { username, email } = await createReader();
  await first.accounts.requestReset(username);
  const leased = await Promise.all([first, second, first, second].map(({ mails }) => mails.lease(5)));
  t.deepEqual(
    leased.flat().map(({ kind, recipient, data }) => ({ kind, recipient, data })),
    [{ kind: "password_reset", recipient: email, data: { username } }],
  );
});

test.serial("an email whose process died is leased again with the same link", async (t) => {
  await deleteAll();
  const { username } = await createReader();
  await first.accounts.requestReset(username);
  const [before] = await first.mails.lease(5);
  t.deepEqual(await second.mails.lease(5), []);
  advanceClock(61_000);
  const [after] = await second.mails.lease(5);
  t.is(after?.id, before?.id);
  t.is(after?.token, before?.token);
  t.is(after?.attempts, 2);
  await first.mails.settle(before as NonNullable<typeof before>);
  t.truthy(
    (
      await knex("mails")
        .where({ id: after?.id ?? "" })
        .first("due_at")
    )?.due_at,
    "the lease was lost",
  );
});

test.serial(
  "a token of a queued email is stored encrypted, and deleted when the email is sent",
  async (t) => {
    await deleteAll();
    const { username } = await createReader();
    await first.accounts.requestReset(username);
    const [mail] = await first.mails.lease(5);
    const token = mail?.token ?? "";
    t.is(token.length, 43);
    for (const table of ["mails", "one_time_links"] as const) {
      t.false(JSON.stringify(await knex(table)).includes(token), table);
    }
    await first.mails.settle(mail as NonNullable<typeof mail>);
    const row = await knex("mails")
      .where({ id: mail?.id ?? "" })
      .first();
    t.is(row?.secret, null);
    t.is(row?.due_at, null);
    t.is(row?.data, "{}");
  },
);

test.serial("an email that fails is due again after its pause, and expires after a day", async (t) => {
  await deleteAll();
  const { username } = await createReader();
  await first.accounts.requestReset(username);
  const [mail] = await first.mails.lease(5);
  await first.mails.retry(mail as NonNullable<typeof mail>, 120_000);
  advanceClock(119_000);
  t.deepEqual(await second.mails.lease(5), []);
  advanceClock(2000);
  t.is((await second.mails.lease(5)).length, 1);
  advanceClock(24 * 3600_000);
  t.deepEqual(await second.mails.lease(5), []);
  await first.purgeExpired();
  t.is((await knex("mails")).length, 0);
});

test.serial(
  "no reset link is created for users without a password or address, nor for disabled users",
  async (t) => {
    await deleteAll();
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
  },
);

test.serial("of one kind of notice, five a day are emailed", async (t) => {
  await deleteAll();
  const { id, email } = await createReader();
  for (let count = 0; count < 7; count++) await first.accounts.createResetToken(id, 60_000);
  const mails = await first.mails.lease(20);
  t.is(mails.filter(({ recipient, kind }) => recipient === email && kind === "reset_link_created").length, 5);
  t.is((await first.notices.list(id)).length, 7);
});
