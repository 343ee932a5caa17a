import { setTimeout as sleep } from "node:timers/promises";
import test from "ava";
import { keepReason } from "../../adapters/database/errors.ts";
import { toLoggedError } from "../../server/log.ts";
import { createDegradedStates } from "../../server/observability/degraded.ts";

function states() {
  const lines: string[] = [];
  const write = (_: object, message: string) => void lines.push(message);
  return { lines, ...createDegradedStates({ error: write, info: write } as never) };
}

const ERROR = new Error("lost");
// Longer than some statements may succeed in a degraded state.
const END_MS = 1100;

test("a degraded state is logged once when it begins, and once when it ends", async (t) => {
  const { lines, redis, values } = states();
  for (let times = 0; times < 3; times++) redis(ERROR);
  redis();
  t.is(values().redis, 1, "others may still fail");
  t.is(lines.length, 1);
  await sleep(END_MS);
  for (let times = 0; times < 3; times++) redis();
  t.is(values().redis, 0);
  t.deepEqual(lines.slice(1), ["Redis is available again"]);
});

test("a connection that is lost and replaced is no degraded state of the database, several are", (t) => {
  const { lines, fail, succeed, values } = states();
  for (let times = 0; times < 5; times++) {
    fail("connection", ERROR);
    fail("connection", ERROR);
    succeed("acquire");
    succeed("select");
  }
  t.deepEqual(lines, []);
  for (let times = 0; times < 3; times++) fail("timeout", ERROR);
  t.is(values().database, 1);
});

test("reads don't end the state of a database that can't be written", async (t) => {
  for (const state of ["read_only", "disk_full"] as const) {
    const { lines, fail, succeed, values } = states();
    fail(state, ERROR);
    await sleep(END_MS);
    succeed("select");
    t.is(values()[state], 1);
    succeed("update");
    t.is(values()[state], 0);
    t.is(lines.length, 2);
  }
});

const MESSAGES: [message: string, logged: string][] = [
  ["the database system is starting up", "the database system is starting up"],
  ['password authentication failed for user "ada"', "password authentication failed for user …"],
  ['duplicate key value violates unique constraint "k"', "duplicate key value violates unique constraint …"],
  ["UNIQUE constraint failed: links.slug", "UNIQUE constraint failed …"],
  ["table links has no column named secret", "table links has no column …"],
  ["x".repeat(1000), "x".repeat(200)],
];

test("the message of a database error is logged up to the first value", (t) => {
  for (const [message, logged] of MESSAGES) {
    const error = Object.assign(new Error(message), { code: "23505" });
    t.is(toLoggedError(error).message, undefined, "it may have a statement in front of it");
    keepReason(error);
    error.message = `insert into "secret" - ${message}`;
    t.is(toLoggedError(error).message, logged);
  }
});
