import test from "ava";
import { toLoggedError } from "../../server/log.ts";
import {
  describeStartupError,
  toFileError,
  toListenError,
  toStartupError,
} from "../../server/startup-errors.ts";

const errorWith = (code: string) => Object.assign(new Error("failed"), { code });

const LISTENING: [code: string, port: number, sentence: string][] = [
  ["EADDRINUSE", 3000, "Port 3000 is in use. Set another PORT, such as PORT=4000"],
  ["EACCES", 80, "PORT 80 needs more privileges. Use a port above 1023."],
  ["ENOTFOUND", 3000, "HOST links.invalid cannot be resolved."],
  ["EADDRNOTAVAIL", 3000, "HOST links.invalid is not an address of this machine."],
];

test("a server that can't listen says why, and suggests another port, also for metrics", (t) => {
  for (const [code, port, sentence] of LISTENING)
    t.is(toListenError(errorWith(code), "PORT", port, "links.invalid").message, sentence);
  const { message } = toListenError(errorWith("EADDRINUSE"), "METRICS_PORT", 9100, "localhost");
  t.is(message, "Port 9100 is in use. Choose another METRICS_PORT");
});

const CONNECTING: [code: string, reason: string][] = [
  ["ECONNREFUSED", "connection refused"],
  ["ENOTFOUND", "host not found"],
  ["28P01", "wrong user or password"],
  ["53300", "too many connections"],
  ["55P03", "another session holds a lock"],
  ["ERR_DATABASE_TIMEOUT", "no response in time"],
];

test("a database that can't be used is named with the reason, and without its password", (t) => {
  for (const [code, reason] of CONNECTING) {
    const sentence = describeStartupError(errorWith(code), "postgres://ada:secret@db.example/linkgate") ?? "";
    const start = `DATABASE_URL: cannot connect to postgres://ada@db.example/linkgate (${reason}). `;
    t.true(sentence.startsWith(start), sentence);
    t.true(sentence.length > start.length);
  }
});

const PATHS: [error: object, sentence: string][] = [
  [{ code: "EACCES" }, "Cannot write /data: permission denied."],
  [{ code: "ENOTDIR" }, "Cannot write /data: a part of the path is not a folder."],
  [{ code: "ENOENT", syscall: "mkdir" }, "Cannot write /data: it can't be created there."],
  [{ code: "ENOSPC" }, "Cannot write /data: the disk is full."],
];

test("a file that can't be written is named with the reason", (t) => {
  for (const [error, sentence] of PATHS) {
    const failure = Object.assign(new Error("failed"), { path: "/data", ...error });
    t.is((toFileError(failure) as Error).message, sentence);
  }
});

test("a network error of anything but the database is not blamed on DATABASE_URL", (t) => {
  const refused = errorWith("ECONNREFUSED");
  t.is(toFileError(refused), refused);
  const ofDatabase = toStartupError(refused, "postgres://db.example.com/linkgate");
  t.regex(String(ofDatabase), /DATABASE_URL: cannot connect to/);
});

test("the log shows the message, code and cause of an error, and no other property", (t) => {
  const error = Object.assign(new Error("no route", { cause: new TypeError("inner") }), {
    code: "ENOTFOUND_HOST",
    body: "a-value-that-must-not-be-logged",
  });
  const logged = toLoggedError(error);
  t.like(logged, { type: "Error", code: "ENOTFOUND_HOST", message: "no route" });
  t.like(logged.cause, { type: "TypeError", message: "inner" });
  t.false(JSON.stringify(logged).includes(error.body));
});
