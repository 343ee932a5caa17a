import { constants, openSync, readFileSync } from "node:fs";
import { Socket } from "node:net";
import path from "node:path";
import { text } from "node:stream/consumers";
import test from "ava";
import { sendRaw } from "../harness/clients/raw.ts";
import { mountSmallDisk } from "../harness/database/small-disk.ts";
import { atOnce } from "../harness/database/storage.ts";
import { createTestDatabase } from "../harness/database/test-database.ts";
import { settingsFor } from "../harness/inhabited.ts";
import { readMetrics } from "../harness/metrics.ts";
import { PRODUCTION } from "../harness/production.ts";
import { Program, ROOT, runShell, temporaryFolder } from "../harness/program.ts";
import { skip } from "../harness/skip.ts";
import { hasPython } from "../harness/terminal.ts";
import { until } from "../harness/webhooks.ts";

const SERVER = [process.execPath, "--import", `${ROOT}server/runtime.js`, `${ROOT}server/main.ts`];
const LOST = "linkgate_log_lines_lost_total";
const REQUESTS = 20;
// What a pipe of Linux holds.
const PIPE_BYTES = 65_536;

const disk = mountSmallDisk("16k");
const NO_DISK = "an in-memory file system can't be mounted (needs Linux and root)";

type Settings = Record<string, string>;
type Start = (settings: Settings) => Program;
type Output = {
  settings: Settings;
  start: Start;
  /** From then on, nothing can be written. */
  fail?(program: Program): void;
  error: string;
  missing?: string | false;
};

function inShell(redirection: string): Start {
  const args = ["-c", `exec "$@" ${redirection}`, "bash", ...SERVER];
  return (settings) => new Program("bash", args, { settings });
}

const VANISHING = [`${ROOT}test/harness/vanishing-terminal.py`, JSON.stringify(SERVER)];

const OUTPUTS: Record<string, Output> = {
  "a terminal that is gone": {
    settings: { LOG_FORMAT: "text", WORKERS: "1" },
    start: (settings) => new Program("python3", VANISHING, { settings }),
    fail: (program) => program.write("\n"),
    error: "EIO",
    missing: !hasPython && "there is no python3",
  },
  "a closed pipe": {
    settings: { LOG_FORMAT: "text", WORKERS: "2" },
    start: inShell("> >(head -c 1 > /dev/null)"),
    error: "EPIPE",
  },
  "/dev/full": {
    settings: { LOG_FORMAT: "json", WORKERS: "2" },
    start: inShell("> /dev/full"),
    error: "ENOSPC",
  },
};

/** Starts a server on an empty database. Its output may tell nothing, so this waits until it responds. */
async function startOn(start: Start, changes: Settings) {
  const settings = await settingsFor((await createTestDatabase()).url);
  const { BASE_URL: url = "" } = settings;
  const program = start({ ...settings, ...PRODUCTION, ...changes });
  await until(async () => (await fetch(`${url}/healthz`).catch(() => undefined))?.ok);
  return { url, program };
}

const request = (url: string) => atOnce(REQUESTS, async () => (await sendRaw(url, "/v1/links")).status);

type LogState = { lost_lines: number; error?: string };

/** What `/readyz` says about the log. With workers, any of them responds. */
async function logState(url: string): Promise<{ status: string; log?: LogState }> {
  const { status, text } = await sendRaw(url, "/readyz");
  if (status !== 200) throw new Error(`${status} ${text}`);
  return JSON.parse(text);
}

async function lostLines(url: string): Promise<number> {
  return (await readMetrics(url)).get(LOST) ?? Number.NaN;
}

async function untilLost(url: string, error: string): Promise<void> {
  await until(async () => {
    await request(url);
    return (await logState(url)).log?.error === error || undefined;
  });
}

for (const [what, output] of Object.entries(OUTPUTS)) {
  const title = `with its log on ${what}, the server serves requests, counts lost lines and stops`;
  if (output.missing) {
    skip(title, output.missing);
    continue;
  }
  test(title, async (t) => {
    const { url, program } = await startOn(output.start, output.settings);
    output.fail?.(program);
    await untilLost(url, output.error);
    // The primary process may still have to log that it is listening.
    await until(async () => {
      const before = await lostLines(url);
      t.deepEqual([...new Set(await request(url))], [401]);
      return (await lostLines(url)) === before + REQUESTS || undefined;
    });
    t.is((await logState(url)).status, "ready");
    t.is((await program.stop()).code, 0);
  });
}

const recovery =
  "when the disk of the log has space again, the log says how many lines are lost, and continues";
if (!disk) skip(recovery, NO_DISK);
else
  test(recovery, async (t) => {
    const file = path.join(disk.folder, "log");
    const { url, program } = await startOn(inShell(`>> ${file}`), { LOG_FORMAT: "json" });
    disk.fill();
    await untilLost(url, "ENOSPC");
    const lost = await lostLines(url);
    disk.empty();
    const { log } = await until(async () => {
      const state = await logState(url);
      return state.log?.error === undefined ? state : undefined;
    });
    t.deepEqual(log, { lost_lines: lost });
    await sendRaw(url, "/v1/webhooks");
    t.is((await program.stop()).code, 0);

    const lines = readFileSync(file, "utf8").trimEnd().split("\n");
    const reports = lines.map(parsed);
    const at = reports.findIndex((line) => line?.lost_lines !== undefined);
    t.like(reports[at], { level: "warn", lost_lines: lost });
    t.like(reports.at(-1), { msg: "request", status: 401 });
    // The line that was being written.
    t.is(reports.indexOf(undefined), at - 1);
    t.is(reports.lastIndexOf(undefined), at - 1);
  });

function parsed(line: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

test("a reader of the log that stalls delays nothing, and gets every line later", async (t) => {
  const pipe = path.join(temporaryFolder("log"), "pipe");
  await runShell(`mkfifo ${pipe}`);
  const reader = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
  const { url, program } = await startOn(inShell(`> ${pipe}`), { LOG_FORMAT: "json" });
  let sent = 0;
  for (; sent < 700; sent += REQUESTS) await request(url);
  t.is(await lostLines(url), 0);
  const log = text(new Socket({ fd: reader }));
  t.is((await program.stop()).code, 0);
  const all = await log;
  t.true(all.length > PIPE_BYTES, "the pipe was full");
  t.is(all.split("\n").filter((line) => parsed(line)?.msg === "request").length, sent);
});

test("workers end with a primary process that is killed", async (t) => {
  const { url, program } = await startOn(inShell("> /dev/full"), { LOG_FORMAT: "json", WORKERS: "2" });
  await request(url);
  program.kill("SIGKILL");
  // The output stays open until every process has ended.
  t.is((await program.ended).signal, "SIGKILL");
  await t.throwsAsync(fetch(`${url}/healthz`));
});
