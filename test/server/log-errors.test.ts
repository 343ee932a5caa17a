import test from "ava";
import { toLoggedError } from "../../server/log-errors.ts";
import { createTestStorage } from "../harness/database/storage.ts";
import { addressOf, startServer, stopPrograms } from "../harness/program.ts";
import { postForm } from "../harness/service.ts";

const storage = await createTestStorage();
const { knex } = storage.database;
test.after.always(stopPrograms);
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

test("a server logs a database error without the SQL and the values of the request", async (t) => {
  const server = startServer({
    settings: {
      PORT: "0",
      LOG_LEVEL: "error",
      DATABASE_URL: storage.url,
      ENCRYPTION_KEY: Buffer.from(storage.encryptionKey).toString("base64url"),
    },
  });
  const address = await addressOf(server);
  await knex.schema.renameTable("users", "missing_users");
  const answer = await postForm(`${address}/auth/login`, { username: SECRET, password: SECRET });
  t.is(answer.status, 500);
  await knex.schema.renameTable("missing_users", "users");
  const { stdout } = await server.stop();
  const [logged] = stdout.split("\n").filter((line) => line.startsWith("{"));
  const { err } = JSON.parse(logged ?? "{}") as { err?: Record<string, unknown> };
  t.regex(String(err?.code), /^\w+$/);
  t.is(err?.message, undefined);
  t.false(stdout.includes(SECRET), logged);
  t.notRegex(stdout, /select/i);
});
