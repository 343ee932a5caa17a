import test from "ava";
import { errorKindOf } from "../../../adapters/database/errors.ts";
import { openDatabase } from "../../../adapters/database/index.ts";
import { operationOf } from "../../../adapters/database/statement-observer.ts";
import { apiAt } from "../../harness/clients/api.ts";
import { createTestDatabase, engine } from "../../harness/database/test-database.ts";
import { growth, type MetricValues, readMetrics } from "../../harness/metrics.ts";
import { startTestService } from "../../harness/service.ts";

export const databases = "all";

const service = await startTestService();
const api = apiAt(service.url, await service.token(await service.createOrganization()));
test.after.always(() => service.close());

const NAME = "linkgate_database_operation_duration_seconds";
const countOf = (metrics: MetricValues, operation: string) =>
  metrics.get(`${NAME}_count{operation="${operation}"}`) ?? 0;

test("every statement is observed with its operation, and none of its values", async (t) => {
  const database = await createTestDatabase();
  const statements: string[] = [];
  const own = openDatabase(database.url, {
    observer: {
      begin(operation, sql) {
        return (error) => void statements.push(`${operation} ${error ? "failed" : "ended"}: ${sql}`);
      },
    },
  });
  t.teardown(async () => {
    await own.close();
    await database.drop();
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

test.serial("the metrics have the durations of statements by operation", async (t) => {
  const before = await readMetrics(service.url);
  await api.createLink();
  const after = await readMetrics(service.url);
  for (const operation of ["select", "insert"])
    t.true(countOf(after, operation) > countOf(before, operation), operation);
});

test.serial("a violated constraint is not counted as a database error", async (t) => {
  const before = await readMetrics(service.url);
  const { slug } = await api.createLink();
  const { status } = await api.send("POST", "/v1/links", { json: { url: "https://example.com/", slug } });
  t.is(status, 409);
  const errors = growth(before, await readMetrics(service.url), /^linkgate_database_errors_total/);
  t.deepEqual(errors, {});
});

test.serial("the metrics show how the connections of the pool are used", async (t) => {
  await Promise.all(Array.from({ length: 20 }, () => api.get("/v1/links")));
  const metrics = await readMetrics(service.url);
  const state = (name: string) => metrics.get(`linkgate_database_connections{state="${name}"}`);
  if (engine === "sqlite") t.deepEqual([state("in_use"), state("idle"), state("waiting")], Array(3));
  else {
    t.is(metrics.get("linkgate_database_connections_max"), 10);
    t.true((state("in_use") as number) + (state("idle") as number) > 0);
    t.is(state("waiting"), 0);
  }
});

const KINDS: [error: object | undefined, kind: string | undefined][] = [
  [{ code: "SQLITE_FULL" }, "disk_full"],
  [{ code: "53100" }, "disk_full"],
  [{ code: "ER_DISK_FULL" }, "disk_full"],
  [{ code: "ERR_DATABASE_TIMEOUT" }, "timeout"],
  [{ code: "57014" }, "timeout"],
  [{ code: "ERR_POOL_BUSY" }, "pool_busy"],
  [{ code: "ECONNREFUSED" }, "connection"],
  [{ code: "40001" }, "conflict"],
  [{ code: "ER_LOCK_DEADLOCK" }, "conflict"],
  [{ code: "42P01" }, "other"],
  [{ code: "23505" }, undefined],
  [{ code: "23503" }, undefined],
  [{ code: "SQLITE_CONSTRAINT_FOREIGNKEY" }, undefined],
  [{ code: "ER_DUP_ENTRY" }, undefined],
  [new Error("not of the database"), undefined],
  [undefined, undefined],
];

test("database errors are classified by their codes", (t) => {
  for (const [error, kind] of KINDS) t.is(errorKindOf(error), kind as never, JSON.stringify(error));
});

test("statements are classified by what they do", (t) => {
  t.is(operationOf("SELECT 1"), "select");
  t.is(operationOf("with v as (select 1) select * from v"), "select");
  t.is(operationOf("with v as (insert into links values (?) returning id) select * from v"), "insert");
  t.is(operationOf("COMMIT;"), "commit");
  t.is(operationOf("create table links (id text)"), "other");
});
