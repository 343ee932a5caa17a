import { randomUUID } from "node:crypto";
import test from "ava";
import { createTestStorage, settledAtOnce } from "../../harness/database/storage.ts";

export const databases = "all";

const { first, second, knex } = await createTestStorage();

const [one, other] = [first.oidcAdapter("Session"), second.oidcAdapter("Session")];

const session = (accountId = "usr_a") => ({ uid: randomUUID(), accountId, kind: "Session" });
const either = (index: number) => (index % 2 ? one : other);

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

test("an ended session leaves an empty row, and a late save does not restore it", async (t) => {
  const payload = session("usr_gone");
  const id = randomUUID();
  await one.upsert(id, payload, 60);
  await other.destroy(id);
  const rows = await knex("sessions").where({ user_id: "usr_gone" });
  t.is(rows.map((row) => `${row.payload} ${row.uid}`).join(), "{} null");
  await one.upsert(id, payload, 60);
  for (const adapter of [one, other]) {
    t.is(await adapter.find(id), undefined);
    t.is(await adapter.findByUid(payload.uid), undefined);
  }
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

test("concurrent saves of a session all succeed, also first ones, and don't revive one that ends meanwhile", async (t) => {
  for (let round = 0; round < 10; round++) {
    const [payload, id] = [session(), randomUUID()];
    const save = async (index: number) => either(index).upsert(id, payload, 60);
    for (const saved of await settledAtOnce(10, save)) t.is(saved.status, "fulfilled");
    t.is((await one.find(id))?.uid, payload.uid);
    const saveOrEnd = async (index: number) => (index === 5 ? one.destroy(id) : save(index));
    for (const saved of await settledAtOnce(11, saveOrEnd)) t.is(saved.status, "fulfilled");
    t.is(await other.find(id), undefined);
  }
});

test("a session that has ended gets no new id, and an active one gets one", async (t) => {
  const payload = session();
  const ids = [randomUUID(), randomUUID(), randomUUID(), randomUUID()] as const;
  await one.upsert(ids[0], payload, 60);
  const renew = (adapter: typeof one, id: string) => adapter.upsert(id, { ...payload, replaces: ids[0] }, 60);
  await Promise.all([renew(other, ids[1]), renew(one, ids[2])]);
  const found = await Promise.all(ids.map((id) => one.find(id)));
  const [renewed, ...others] = found.filter(Boolean);
  t.deepEqual(others, []);
  t.is((renewed as { replaces?: string } | undefined)?.replaces, undefined);
  await other.destroy(String(renewed?.jti));
  await one.upsert(ids[3], { ...payload, replaces: renewed?.jti }, 60);
  t.is(await one.find(ids[3]), undefined);
});

const [here, there] = [first.oidcAdapter("Interaction"), second.oidcAdapter("Interaction")];

const prompt = { name: "login", reasons: [], details: {} };
const payload = { kind: "Interaction", returnTo: "https://example.com/", prompt };

test("an interaction is readable and writable in every process, and stored without the session id", async (t) => {
  const [id, cookie] = [randomUUID(), randomUUID()];
  const login = { accountId: "usr_a" };
  const session = { ...login, cookie };
  await here.upsert(id, { ...payload, session }, 60);
  t.deepEqual(await there.find(id), { ...payload, session: login, jti: id });
  await there.upsert(id, { ...payload, session, result: { login } }, 60);
  t.deepEqual((await here.find(id))?.result, { login });
  t.false(JSON.stringify(await knex("interactions").select("payload")).includes(cookie));
});

test("concurrent completions of one interaction succeed exactly once", async (t) => {
  for (let round = 0; round < 10; round++) {
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
  for (const again of [async () => there.upsert(id, payload, 60), async () => there.destroy(id)])
    t.is((await t.throwsAsync<Error & { error: string }>(again))?.error, "invalid_request");
  t.is(await here.find(id), undefined);
});
