import { randomUUID } from "node:crypto";
import test from "ava";
import { createTestStorage, settledAtOnce } from "../../../harness/database/storage.ts";

const storage = await createTestStorage();
const { first, second, database } = storage;
const [one, other] = [first.oidcAdapter("Interaction"), second.oidcAdapter("Interaction")];
test.after.always(() => storage.close());

const payload = {
  kind: "Interaction",
  returnTo: "https://example.com/",
  prompt: { name: "login", reasons: [], details: {} },
};

test("an interaction is readable and writable in every process", async (t) => {
  const id = randomUUID();
  await one.upsert(id, payload, 60);
  t.deepEqual(await other.find(id), { ...payload, jti: id });
  await other.upsert(id, { ...payload, result: { login: { accountId: "usr_a" } } }, 60);
  t.deepEqual((await one.find(id))?.result, { login: { accountId: "usr_a" } });
});

test("concurrent completions of one interaction succeed exactly once", async (t) => {
  for (let round = 0; round < 20; round++) {
    const id = randomUUID();
    await one.upsert(id, payload, 60);
    const results = await settledAtOnce(10, async (index) => (index % 2 ? one : other).destroy(id));
    t.is(results.filter(({ status }) => status === "fulfilled").length, 1);
    for (const result of results)
      if (result.status === "rejected") t.is(result.reason.error, "invalid_request");
  }
});

test("a completed interaction cannot be found, saved or completed again", async (t) => {
  const id = randomUUID();
  await one.upsert(id, payload, 60);
  await one.destroy(id);
  t.is(await other.find(id), undefined);
  for (const again of [async () => other.upsert(id, payload, 60), async () => other.destroy(id)]) {
    t.is((await t.throwsAsync<Error & { error: string }>(again))?.error, "invalid_request");
  }
  t.is(await one.find(id), undefined);
});

test("an unknown interaction cannot be completed", async (t) => {
  await t.throwsAsync(async () => one.destroy(randomUUID()));
});

test("an interaction is stored without the session id", async (t) => {
  const cookie = randomUUID();
  const id = randomUUID();
  await one.upsert(id, { ...payload, session: { accountId: "usr_a", cookie } }, 60);
  t.deepEqual((await other.find(id))?.session, { accountId: "usr_a" });
  const rows: { payload: string }[] = await database.knex("interactions").select("payload");
  t.false(rows.some((row) => row.payload.includes(cookie)));
});
