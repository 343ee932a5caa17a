import test from "ava";
import { apiAt } from "../harness/clients/api.ts";
import { createTestDatabase, engine, inspect } from "../harness/database/test-database.ts";
import { growth, readMetrics } from "../harness/metrics.ts";
import { startTestService } from "../harness/service.ts";

export const databases = "all";

const service = await startTestService();
const api = apiAt(service.url, await service.token(await service.createOrganization()));

test("every statement is observed with its operation, and none of its values", async (t) => {
  const database = await createTestDatabase();
  const statements: string[] = [];
  const own = inspect(database.url, {
    observer: {
      begin(operation, sql) {
        return (error) => void statements.push(`${operation} ${error ? "failed" : "ended"}: ${sql}`);
      },
    },
  });
  await own.migrate();
  statements.length = 0;
  const SECRET = "a-secret-value";
  const find = own.prepare<unknown[], "name">("select holder from leases where name = :name");
  await find({ name: SECRET });
  await own.transaction(async (trx) => {
    await trx("leases").insert({ name: SECRET, holder: SECRET, expires_at: 1 });
    await trx("leases").where({ name: SECRET }).update({ expires_at: 2 });
  });
  await t.throwsAsync(() => own.knex("leases").insert({ name: SECRET, holder: SECRET, expires_at: 1 }));
  await own.knex("leases").where({ name: SECRET }).delete();
  const kinds = statements.map((line) => line.replace(/:.*/s, ""));
  for (const kind of ["select", "insert", "update", "delete", "commit", "transaction"])
    t.true(kinds.includes(`${kind} ended`), kind);
  t.true(kinds.includes("insert failed"));
  t.is(kinds.includes("acquire ended"), engine !== "sqlite");
  t.false(statements.some((line) => line.includes(SECRET)));
});

test.serial("the metrics time each statement, and count no error for a violated constraint", async (t) => {
  const before = await readMetrics(service.url);
  const { slug } = await api.createLink();
  const { status } = await api.send("POST", "/v1/links", { json: { url: "https://example.com/", slug } });
  t.is(status, 409);
  const after = await readMetrics(service.url);
  const counts = growth(before, after, /^linkgate_database_operation_duration_seconds_count/);
  for (const operation of ["select", "insert"])
    t.true(
      Object.keys(counts).some((key) => key.includes(`"${operation}"`)),
      operation,
    );
  t.deepEqual(growth(before, after, /^linkgate_database_errors_total/), {});
});

test.serial("the metrics show how the connections of the pool are used", async (t) => {
  await Promise.all(Array.from({ length: 20 }, () => api.get("/v1/links")));
  const metrics = await readMetrics(service.url);
  const state = (name: string) => metrics.get(`linkgate_database_connections{state="${name}"}`);
  if (engine === "sqlite") t.deepEqual([state("in_use"), state("idle"), state("waiting")], Array(3));
  else {
    // On PostgreSQL, another is for requests to cancel.
    t.is(metrics.get("linkgate_database_connections_max"), engine === "postgres" ? 9 : 10);
    t.true((state("in_use") as number) + (state("idle") as number) > 0);
    t.is(state("waiting"), 0);
  }
});
