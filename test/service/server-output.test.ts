import { mkdtempSync, writeFileSync } from "node:fs";
import path from "node:path";
import { stripVTControlCharacters } from "node:util";
import test from "ava";
import { toLogLine } from "../../server/terminal/log-lines.ts";
import { PRODUCTION } from "../harness/production.ts";
import { addressOf, ROOT, startServer, temporaryFolder } from "../harness/program.ts";
import { bearer, populate } from "../harness/service.ts";
import { startOnTerminal, testOnTerminal } from "../harness/terminal.ts";

const folders = temporaryFolder("output");

const SERVER = ["--import", `${ROOT}server/runtime.js`, `${ROOT}server/main.ts`];
const ESCAPE = "\u001b[";
// Tests run concurrently, and the generated encryption key in a folder belongs to a single database.
const newFolder = () => mkdtempSync(`${folders}/`);
const settingsOf = (settings: Record<string, string>, folder = newFolder()) => ({
  DATABASE_URL: `sqlite:${folder}/test.sqlite`,
  PORT: "0",
  ...settings,
});

/** Starts a server on a terminal, and presses Ctrl-C when a text appears. */
const startUntil = (text: string, settings: Record<string, string>) =>
  startOnTerminal(SERVER, [[text, "\x03"]], settings);

async function shownBy({ ended }: ReturnType<typeof startUntil>): Promise<string> {
  const { shown, code } = await ended;
  if (code !== 0) throw new Error(shown);
  return shown.replaceAll("\r\n", "\n");
}

async function logOnTerminal(text: string, settings: Record<string, string> = {}): Promise<string> {
  const server = startUntil(text, settingsOf(settings));
  const [, url] = await server.says(/linkgate listening on (http:\/\/[\w.:]+)[^\w.:]/);
  await fetch(`${url}/no-such-link?token=hidden`);
  return shownBy(server);
}

testOnTerminal("on a terminal, a request is a short colored line without its query", async (t) => {
  const shown = await logOnTerminal("no-such-link");
  t.true(shown.includes(ESCAPE));
  const line = /^\d\d:\d\d:\d\d 404 GET {4}\/no-such-link \d+(\.\d)? ms$/m;
  t.regex(stripVTControlCharacters(shown), line);
  t.notRegex(shown, /hidden/);
});

testOnTerminal("LOG_FORMAT=json writes JSON on a terminal", async (t) => {
  const shown = await logOnTerminal("/:slug", { LOG_FORMAT: "json" });
  t.like(JSON.parse(/^\{.*"msg":"request"\}/m.exec(shown)?.[0] ?? ""), { route: "/:slug", status: 404 });
  t.notRegex(shown, /no-such-link/);
});

test("LOG_FORMAT=text writes lines for people through a pipe: who sent each request, but no token", async (t) => {
  const server = startServer({ settings: settingsOf({ LOG_FORMAT: "text" }) });
  const url = await addressOf(server);
  const [, id = "", secret = ""] = /client id {6}(\S+)\n {2}client secret {2}(\S+)/.exec(server.stdout) ?? [];
  const token = await populate(url, undefined as never).token({ clientId: id, clientSecret: secret });
  const paths = ["/v1/links/lnk_1", "/auth/reset-password/abc", `/${token}`, "/no/such/path"];
  for (const path of paths) await fetch(url + path, { headers: bearer(token) });
  const { stdout } = await server.stop();
  const logged = stdout.slice(stdout.indexOf("linkgate listening on")).trim().split("\n").slice(1);
  const lines = logged.map((line) => line.replaceAll(id, "<client>"));
  const untimed = lines.map((line) => line.replace(/^\d\d:\d\d:\d\d /, "").replace(/[\d.]+ ms/, "n ms"));
  t.deepEqual(untimed, [
    "200 POST   /oauth/token n ms <client>",
    "404 GET    /v1/links/lnk_1 n ms <client>",
    "404 GET    /auth/reset-password/:token n ms",
    "404 GET    /:slug n ms",
    "404 GET    other n ms",
  ]);
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

testOnTerminal("the first start is a page on a terminal, and later ones say where things run", async (t) => {
  const folder = newFolder();
  const start = (settings: Record<string, string>) =>
    shownBy(startUntil("linkgate listening on", settingsOf(settings, folder)));
  const first = await start({});
  t.true(first.includes(ESCAPE), "with colors");
  const page = stripVTControlCharacters(first);
  const [, base] = /^linkgate listening on (\S+)$/m.exec(page) ?? [];
  const places = {
    Dashboard: `${base}/dashboard`,
    API: `${base}/v1`,
    MCP: `${base}/mcp`,
    Docs: `${base}/docs`,
    Database: `${folder}/test.sqlite`,
  };
  for (const [name, place] of Object.entries(places))
    t.true(page.includes(`\n  ${name.padEnd(9)}  ${place}\n`), name);
  t.regex(
    page,
    /\n {2}client secret {2}lgs_.*\n {2}password {7}.*\n1\. .*\n2\. .*\n3\. .*\nlinkgate listening on/s,
  );

  const quiet = { NO_COLOR: "1", LOG_LEVEL: "silent", BASE_URL: "https://links.example.com" };
  const second = await start(quiet);
  t.false(second.includes("\x1b"));
  t.notRegex(second, /secret|password/);
  for (const name of Object.keys(places)) t.regex(second, new RegExp(`^  ${name} `, "m"));
  t.notRegex(page, /Address/, "the base URL is where it listens");
  t.regex(second, /^ {2}Address {4}http:\/\/127\.0\.0\.1:\d+$/m);
  t.is(second.match(/^linkgate listening on /gm)?.length, 1);
});

test("`.env` is read, the environment wins, and an empty variable falls back to `.env`", async (t) => {
  const folder = newFolder();
  writeFileSync(
    path.join(folder, ".env"),
    "PORT=0\nBASE_URL=http://localhost:1111\nLOG_LEVEL=silent\nDATABASE_URL=sqlite:from-file.sqlite\n",
  );
  const settings = { ...PRODUCTION, BASE_URL: "http://localhost:2222", LOG_LEVEL: "" };
  const server = startServer({ cwd: folder, settings });
  t.is(await addressOf(server), "http://localhost:2222");
  const { code, stdout } = await server.stop();
  t.is(code, 0);
  t.is(stdout, "linkgate listening on http://localhost:2222\n");
});
