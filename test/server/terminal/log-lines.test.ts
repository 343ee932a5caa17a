import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { stripVTControlCharacters } from "node:util";
import test from "ava";
import { toLogLine } from "../../../server/terminal/log-lines.ts";
import { addressOf, ROOT, startServer, stopPrograms } from "../../harness/program.ts";
import { startOnTerminal, testOnTerminal } from "../../harness/terminal.ts";

const folders = mkdtempSync(path.join(tmpdir(), "linkgate-log-"));
test.after.always(stopPrograms);
test.after.always(() => rmSync(folders, { recursive: true, force: true }));

const SERVER = ["--import", `${ROOT}server/runtime.js`, `${ROOT}server/main.ts`];
const ESCAPE = "\u001b[";
let databases = 0;
const settingsOf = (settings: Record<string, string> = {}) => ({
  DATABASE_URL: `sqlite:${folders}/${databases++}/test.sqlite`, // with a key of its own
  PORT: "0",
  ...settings,
});

/** Starts a server on a terminal, requests a link that doesn't exist, and presses Ctrl-C when the line of it appears. */
async function logOnTerminal(settings: Record<string, string>): Promise<string> {
  const server = startOnTerminal(SERVER, [["no-such-link", "\x03"]], settingsOf(settings));
  const [, url] = await server.says(/linkgate listening on (http:\/\/[\w.:]+)/);
  await fetch(`${url}/no-such-link?token=hidden`);
  const { shown, code } = await server.ended;
  if (code !== 0) throw new Error(shown);
  return shown;
}

testOnTerminal("on a terminal, a request is a short colored line without its query", async (t) => {
  const shown = await logOnTerminal({});
  t.true(shown.includes(ESCAPE));
  t.regex(stripVTControlCharacters(shown), /^\d\d:\d\d:\d\d 404 GET {4}\/no-such-link \d+(\.\d)? ms\r?$/m);
  t.notRegex(shown, /hidden/);
});

testOnTerminal("NO_COLOR removes the colors on a terminal", async (t) => {
  const shown = await logOnTerminal({ NO_COLOR: "1" });
  t.false(shown.includes(ESCAPE));
  t.regex(shown, /^\d\d:\d\d:\d\d 404 GET/m);
});

testOnTerminal("LOG_FORMAT=json writes JSON on a terminal", async (t) => {
  const settings = settingsOf({ LOG_FORMAT: "json" });
  const server = startOnTerminal(SERVER, [["/:slug", "\x03"]], settings);
  const [, url] = await server.says(/linkgate listening on (http:\/\/[\w.:]+)/);
  await fetch(`${url}/no-such-link`);
  const { shown } = await server.ended;
  t.like(JSON.parse(/^\{.*"msg":"request"\}/m.exec(shown)?.[0] ?? ""), { route: "/:slug", status: 404 });
  t.notRegex(shown, /no-such-link/);
});

/** Starts a server without a terminal, and returns what it logs about requests to these paths. */
async function logOf(settings: Record<string, string>, paths: string[]): Promise<string[]> {
  const server = startServer({ settings: settingsOf(settings) });
  const url = await addressOf(server);
  const [, id, secret] = /client id {6}(\S+)\n {2}client secret {2}(\S+)/.exec(server.stdout) ?? [];
  const form = { grant_type: "client_credentials", client_id: `${id}`, client_secret: `${secret}` };
  const issued = await fetch(`${url}/oauth/token`, { method: "POST", body: new URLSearchParams(form) });
  const { access_token } = (await issued.json()) as { access_token: string };
  const headers = { Authorization: `Bearer ${access_token}` };
  for (const path of paths) await fetch(url + path.replace("<token>", access_token), { headers });
  const { stdout } = await server.stop();
  const logged = stdout.slice(stdout.indexOf("linkgate listening on")).trim().split("\n").slice(1);
  return logged.map((line) => line.replaceAll(`${id}`, "<client>"));
}

test("without a terminal, requests are JSON lines with the pattern of their path", async (t) => {
  const [issued, found] = await logOf({}, ["/v1/links/lnk_1"]);
  t.deepEqual(Object.keys(JSON.parse(issued ?? "")).sort(), [
    ...["address", "client_id", "level", "method", "ms", "msg", "request_id", "route", "status", "time"],
  ]);
  t.like(JSON.parse(found ?? ""), { level: "info", msg: "request", method: "GET", status: 404 });
});

test("LOG_FORMAT=text writes lines for people through a pipe: who sent each request, but no token", async (t) => {
  const paths = ["/v1/links/lnk_1", "/auth/reset-password/abc", "/<token>", "/no/such/path"];
  const lines = await logOf({ LOG_FORMAT: "text" }, paths);
  t.deepEqual(
    lines.map((line) => line.replace(/^\d\d:\d\d:\d\d /, "").replace(/[\d.]+ ms/, "n ms")),
    [
      "200 POST   /oauth/token n ms <client>",
      "404 GET    /v1/links/lnk_1 n ms <client>",
      "404 GET    /auth/reset-password/:token n ms",
      "404 GET    /:slug n ms",
      "404 GET    other n ms",
    ],
  );
});

test("a line that isn't a request shows its level, message, fields and errors", (t) => {
  const time = new Date(2026, 10, 26, 13, 5, 42).toISOString();
  const cause = { type: "Error", code: "ECONNREFUSED", message: "refused" };
  const err = { type: "Unavailable", message: "no database", stack: "    at read (file.ts:1:2)", cause };
  const line = toLogLine(JSON.stringify({ level: "error", time, request_id: "abc", err, msg: "outage" }));
  t.is(
    line,
    [
      "13:05:42 error outage request_id=abc",
      "  Unavailable: no database",
      "    at read (file.ts:1:2)",
      "  caused by",
      "  Error (ECONNREFUSED): refused",
      "",
    ].join("\n"),
  );
});

test("what a request contains can't control the terminal", (t) => {
  const time = new Date().toISOString();
  const text = "\u001b[2Jgone\r\n\u009b1A\u202etxt.exe";
  const err = { type: text, code: text, message: text, stack: text };
  const line = toLogLine(JSON.stringify({ level: "warn", time, msg: text, detail: text, err }));
  t.notRegex(line, /[^\P{Cc}\n]|\p{Bidi_Control}/u);
  t.is(line.match(/gone/g)?.length, 6);
});
