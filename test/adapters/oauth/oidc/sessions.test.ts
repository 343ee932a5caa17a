import { randomUUID } from "node:crypto";
import test from "ava";
import { createTestStorage, settledAtOnce } from "../../../harness/database/storage.ts";

export const databases = "all";

const storage = await createTestStorage();

test.after.always(() => storage.close());

const { first, second, database } = storage;
const [one, other] = [first.oidcAdapter("Session"), second.oidcAdapter("Session")];

const session = (changes: object = {}) => ({
  uid: randomUUID(),
  accountId: "usr_a",
  kind: "Session",
  ...changes,
});

test("a session is found in every process by its id and by its uid", async (t) => {
  const payload = session();
  const id = randomUUID();
  await one.upsert(id, payload, 60);
  t.deepEqual(await other.find(id), { ...payload, jti: id });
  // The id is a secret that is not stored, so a lookup by uid does not return it.
  t.deepEqual(await other.findByUid(payload.uid), payload);
  await other.upsert(id, { ...payload, accountId: "usr_b" }, 60);
  t.is((await one.find(id))?.accountId, "usr_b");
});

test("a late save does not restore an ended session", async (t) => {
  const payload = session();
  const id = randomUUID();
  await one.upsert(id, payload, 60);
  await other.destroy(id);
  await one.upsert(id, payload, 60);
  for (const adapter of [one, other]) {
    t.is(await adapter.find(id), undefined);
    t.is(await adapter.findByUid(payload.uid), undefined);
  }
});

test("a session that is ended during concurrent saves stays ended", async (t) => {
  for (let round = 0; round < 20; round++) {
    const payload = session();
    const id = randomUUID();
    await one.upsert(id, payload, 60);
    const results = await settledAtOnce(11, async (index) => {
      if (index === 5) await one.destroy(id);
      else await (index % 2 ? one : other).upsert(id, payload, 60);
    });
    t.true(results.every(({ status }) => status === "fulfilled"));
    t.is(await other.find(id), undefined);
  }
});

test("the data of an ended session is deleted from its row", async (t) => {
  const id = randomUUID();
  await one.upsert(id, session({ accountId: "usr_gone" }), 60);
  await one.destroy(id);
  const rows = await database.knex("sessions").where({ user_id: "usr_gone" });
  t.is(rows.length, 1);
  t.is(rows[0]?.payload, "{}");
  t.is(rows[0]?.uid, null);
});

test("a late save under the previous id of a session is ignored", async (t) => {
  const payload = session();
  const [old, renewed] = [randomUUID(), randomUUID()];
  await one.upsert(old, payload, 60);
  await one.destroy(old);
  await one.upsert(renewed, payload, 60);
  await t.notThrowsAsync(async () => other.upsert(randomUUID(), { ...payload, accountId: "usr_other" }, 60));
  t.is((await other.findByUid(payload.uid))?.accountId, "usr_a");
  t.is((await other.find(renewed))?.accountId, "usr_a");
});

test("concurrent first saves of a session all succeed", async (t) => {
  for (let round = 0; round < 10; round++) {
    const payload = session();
    const id = randomUUID();
    const results = await settledAtOnce(10, async (index) =>
      (index % 2 ? one : other).upsert(id, payload, 60),
    );
    t.true(results.every(({ status }) => status === "fulfilled"));
    t.is((await one.find(id))?.uid, payload.uid);
  }
});

test("a session that has ended gets no new id, and an active one gets one", async (t) => {
  const payload = session();
  const ids = [randomUUID(), randomUUID(), randomUUID(), randomUUID()] as const;
  await one.upsert(ids[0], payload, 60);
  const replies = [ids[1], ids[2]].map((id, index) =>
    (index ? one : other).upsert(id, { ...payload, replaces: ids[0] }, 60),
  );
  await Promise.all(replies);
  const found = await Promise.all(ids.map((id) => one.find(id)));
  const [renewed, ...others] = found.filter(Boolean);
  t.deepEqual(others, []);
  t.is((renewed as { replaces?: string } | undefined)?.replaces, undefined);
  await other.destroy(String(renewed?.jti));
  await one.upsert(ids[3], { ...payload, replaces: renewed?.jti }, 60);
  t.is(await one.find(ids[3]), undefined);
});

const [here, there] = [first.oidcAdapter("Interaction"), second.oidcAdapter("Interaction")];

const payload = {
  kind: "Interaction",
  returnTo: "https://example.com/",
  prompt: { name: "login", reasons: [], details: {} },
};

test("an interaction is readable and writable in every process", async (t) => {
  const id = randomUUID();
  await here.upsert(id, payload, 60);
  t.deepEqual(await there.find(id), { ...payload, jti: id });
  await there.upsert(id, { ...payload, result: { login: { accountId: "usr_a" } } }, 60);
  t.deepEqual((await here.find(id))?.result, { login: { accountId: "usr_a" } });
});

test("concurrent completions of one interaction succeed exactly once", async (t) => {
  for (let round = 0; round < 20; round++) {
    const id = randomUUID();
    await here.upsert(id, payload, 60);
    const results = await settledAtOnce(10, async (index) => (index % 2 ? here : there).destroy(id));
    t.is(results.filter(({ status }) => status === "fulfilled").length, 1);
    for (const result of results)
      if (result.status === "rejected") t.is(result.reason.error, "invalid_request");
  }
});

test("a completed interaction cannot be found, saved or completed again", async (t) => {
  const id = randomUUID();
  await here.upsert(id, payload, 60);
  await here.destroy(id);
  t.is(await there.find(id), undefined);
  for (const again of [async () => there.upsert(id, payload, 60), async () => there.destroy(id)]) {
    t.is((await t.throwsAsync<Error & { error: string }>(again))?.error, "invalid_request");
  }
  t.is(await here.find(id), undefined);
});

test("an unknown interaction cannot be completed", async (t) => {
  await t.throwsAsync(async () => here.destroy(randomUUID()));
});

test("an interaction is stored without the session id", async (t) => {
  const cookie = randomUUID();
  const id = randomUUID();
  await here.upsert(id, { ...payload, session: { accountId: "usr_a", cookie } }, 60);
  t.deepEqual((await there.find(id))?.session, { accountId: "usr_a" });
  const rows: { payload: string }[] = await database.knex("interactions").select("payload");
  t.false(rows.some((row) => row.payload.includes(cookie)));
});
