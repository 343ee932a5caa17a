import test from "ava";
import { toLoggedError } from "../../server/log-errors.ts";
import { createTestStorage } from "../harness/database/storage.ts";

const storage = await createTestStorage();
const { knex } = storage.database;
test.after.always(() => storage.close());

const SECRET = "a-value-that-must-not-be-logged";

test("the log shows neither the SQL nor the values of a database error", async (t) => {
  const lease = { name: SECRET, holder: SECRET, expires_at: 1 };
  await knex("leases").insert(lease);
  const errors = await Promise.all([
    t.throwsAsync(async () => knex("leases").insert(lease)),
    t.throwsAsync(async () => knex.raw(`select '${SECRET}' from missing_table`)),
    t.throwsAsync(async () => knex("leases").insert({ ...lease, [SECRET]: 1 } as never)),
  ]);
  for (const error of errors) {
    const text = JSON.stringify(toLoggedError(new Error("unavailable", { cause: error })));
    t.false(text.includes(SECRET), text);
    t.false(/insert into|select/i.test(text), text);
    t.regex(text, /"code":"\w+"/);
  }
});

test("the log shows the message, code and cause of any other error, and no other property", (t) => {
  const error = Object.assign(new Error("no route", { cause: new TypeError("inner") }), {
    code: "ENOTFOUND_HOST",
    body: SECRET,
  });
  const logged = toLoggedError(error);
  t.like(logged, { type: "Error", code: "ENOTFOUND_HOST", message: "no route" });
  t.like(logged.cause, { type: "TypeError", message: "inner" });
  t.false(JSON.stringify(logged).includes(SECRET));
});
