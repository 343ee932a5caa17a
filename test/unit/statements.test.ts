import test from "ava";
import { errorKindOf } from "../../adapters/database/errors.ts";
import { operationOf } from "../../adapters/database/statement-observer.ts";

const KINDS: Record<string, string[]> = {
  disk_full: ["SQLITE_FULL", "53100", "ER_DISK_FULL"],
  timeout: ["ERR_DATABASE_TIMEOUT", "57014"],
  pool_busy: ["ERR_POOL_BUSY"],
  connection: ["ECONNREFUSED"],
  conflict: ["40001", "ER_LOCK_DEADLOCK"],
  other: ["42P01"],
};
// Violated constraints, which the caller expects.
const NO_ERRORS = ["23505", "23503", "SQLITE_CONSTRAINT_FOREIGNKEY", "ER_DUP_ENTRY"];

test("database errors are classified by their codes", (t) => {
  for (const [kind, codes] of Object.entries(KINDS))
    for (const code of codes) t.is(errorKindOf({ code }), kind as never, code);
  for (const error of [...NO_ERRORS.map((code) => ({ code })), new Error("not of the database"), undefined])
    t.is(errorKindOf(error), undefined, JSON.stringify(error));
});

test("statements are classified by what they do", (t) => {
  t.is(operationOf("SELECT 1"), "select");
  t.is(operationOf("with v as (select 1) select * from v"), "select");
  t.is(operationOf("with v as (insert into links values (?) returning id) select * from v"), "insert");
  t.is(operationOf("COMMIT;"), "commit");
  t.is(operationOf("create table links (id text)"), "other");
});
