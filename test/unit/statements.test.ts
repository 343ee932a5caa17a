import test from "ava";
import { errorKindOf, isConnectionLost } from "../../adapters/database/errors.ts";
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

type DriverError = { code?: string; errno?: number; syscall?: string; message?: string };

const LOST: Record<string, DriverError[]> = {
  "a socket": [
    { code: "ENOENT", syscall: "connect" },
    { code: "ECONNRESET", syscall: "read" },
    { message: "Connection terminated unexpectedly" },
  ],
  "PostgreSQL, also while it stops or starts": ["08006", "53300", "57P01"].map((code) => ({ code })),
  PgBouncer: [
    { code: "08P01", message: "server login has been failing, try again later (server_login_retry)" },
    { code: "08P01", message: "query_wait_timeout" },
    { code: "08P01", message: "server conn crashed?" },
  ],
  "MariaDB and MySQL": [
    { code: "ER_SERVER_SHUTDOWN", errno: 1053 },
    { errno: 1927, message: "Connection was killed" },
    { errno: 2013, message: "Lost connection to server during query" },
    { code: "PROTOCOL_CONNECTION_LOST" },
  ],
  Galera: [
    {
      code: "ER_UNKNOWN_COM_ERROR",
      errno: 1047,
      message: "WSREP has not yet prepared node for application use",
    },
  ],
};
// A full disk, a statement that took too long, one that is wrong, and a packet that is too large.
const NOT_LOST: DriverError[] = [
  { code: "53100" },
  { code: "57014" },
  { code: "42P01" },
  { code: "ER_NET_PACKET_TOO_LARGE", errno: 1153 },
  { code: "ENOENT", syscall: "open" },
];

test("errors of a connection are outages, by their class, for each driver and proxy", (t) => {
  for (const [of, errors] of Object.entries(LOST))
    for (const error of errors) t.true(isConnectionLost(error), `${of}: ${JSON.stringify(error)}`);
  for (const error of NOT_LOST) t.false(isConnectionLost(error), JSON.stringify(error));
});

test("statements are classified by what they do", (t) => {
  t.is(operationOf("SELECT 1"), "select");
  t.is(operationOf("with v as (select 1) select * from v"), "select");
  t.is(operationOf("with v as (insert into links values (?) returning id) select * from v"), "insert");
  t.is(operationOf("COMMIT;"), "commit");
  t.is(operationOf("create table links (id text)"), "other");
});
