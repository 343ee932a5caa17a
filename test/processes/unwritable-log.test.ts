import { randomBytes } from "node:crypto";
import { constants, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";
import test from "ava";
import pLimit from "p-limit";
import { sendRaw } from "../harness/clients/raw.ts";
import { mountSmallDisk } from "../harness/database/small-disk.ts";
import { createTestDatabase } from "../harness/database/test-database.ts";
import { readMetrics } from "../harness/metrics.ts";
import { freePort } from "../harness/port.ts";
import { type Ending, Program, ROOT, runShell, stopPrograms } from "../harness/program.ts";
import { skip } from "../harness/skip.ts";
import { hasPython } from "../harness/terminal.ts";
import { until } from "../harness/webhooks.ts";

const SERVER = [process.execPath, "--import", `${ROOT}server/runtime.js`, `${ROOT}server/main.ts`];
const inTurn = pLimit(3);
const LOST = "linkgate_log_lines_lost_total";
const REQUESTS = 20;
// What a pipe of Linux holds.
const PIPE_BYTES = 65_536;

const disks = Object.fromEntries(
  ["json1", "json2", "text1", "text2"].map((name) => [name, mountSmallDisk("16k")]),
);
test.after.always(() => {
  stopPrograms();
  for (const disk of Object.values(disks)) disk?.unmount();
});

type Started = { url: string; program: Program };
type Output = {
  /** Starts the server with this output. */
  start(settings: Record<string, string>): Program;
  /** From then on, nothing can be written. */
  fail?(program: Program): void;
  /** The system's code. */
  error: string;
  /** What is missing on this machine. */
  missing?: string | false;
};

const inShell = (redirection: string) => (settings: Record<string, string>) =>
  new Program("bash", ["-c", `exec "$@" ${redirection}`, "bash", ...SERVER], { settings });

const OUTPUTS: Record<string, (format: string, workers: string) => Output> = {
  "a full disk": (format, workers) => {
    const disk = disks[format + workers];
    return {
      start: inShell(`> ${disk?.folder}/log`),
      fail: () => disk?.fill(),
      error: "ENOSPC",
      missing: !disk && "an in-memory file system can't be mounted (needs Linux and root)",
    };
  },
  "a terminal that is gone": () => ({
    start: (settings) =>
      new Program("python3", [`${ROOT}test/harness/vanishing-terminal.py`, JSON.stringify(SERVER)], {
        settings,
      }),
    fail: (program) => program.write("\n"),
    error: "EIO",
    missing: !hasPython && "there is no python3",
  }),
  "a closed pipe": () => ({ start: inShell("> >(head -c 1 > /dev/null)"), error: "EPIPE" }),
  "/dev/full": () => ({ start: inShell("> /dev/full"), error: "ENOSPC" }),
};

/** Starts a server on an empty database. Its output may tell nothing, so this waits until it responds. */
async function startOn(output: Output, settings: Record<string, string>): Promise<Started> {
  const port = await freePort();
  const database = await createTestDatabase();
  const program = output.start({
    DATABASE_URL: database.url,
    ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
    NODE_ENV: "production",
    REGISTRATION: "closed",
    SELF_SERVICE_PLANS: "off",
    PORT: String(port),
    BASE_URL: `http://127.0.0.1:${port}`,
    ...settings,
  });
  const url = `http://127.0.0.1:${port}`;
  await until(async () => (await fetch(`${url}/healthz`).catch(() => undefined))?.ok);
  return { url, program };
}

async function request(url: string): Promise<number[]> {
  const statuses = Array.from({ length: REQUESTS }, async () => (await sendRaw(url, "/v1/links")).status);
  return Promise.all(statuses);
}

/** What `/readyz` says about the log. With workers, any of them responds. */
async function logState(
  url: string,
): Promise<{ status: string; log?: { lost_lines: number; error?: string } }> {
  const { status, text } = await sendRaw(url, "/readyz");
  if (status !== 200) throw new Error(`${status} ${text}`);
  return JSON.parse(text);
}

async function lostLines(url: string): Promise<number> {
  return (await readMetrics(url)).get(LOST) ?? Number.NaN;
}

/** Sends requests until their lines are lost. */
async function untilLost(url: string, error: string): Promise<void> {
  await until(async () => {
    await request(url);
    return (await logState(url)).log?.error === error || undefined;
  });
}

function assertStopped({ code, stderr }: Ending): void {
  if (code !== 0) throw new Error(`the server exited with ${code}:\n${stderr}`);
}

for (const [what, describe] of Object.entries(OUTPUTS))
  for (const LOG_FORMAT of ["json", "text"])
    for (const WORKERS of ["1", "2"]) {
      const title = `with its log on ${what} (${LOG_FORMAT}, WORKERS=${WORKERS}), the server serves requests, counts lost lines and stops`;
      const output = describe(LOG_FORMAT, WORKERS);
      if (output.missing) {
        skip(title, output.missing);
        continue;
      }
      test(title, async (t) => {
        await inTurn(async () => {
          const { url, program } = await startOn(output, { LOG_FORMAT, WORKERS });
          output.fail?.(program);
          await untilLost(url, output.error);
          // The primary process may still have to log that it is listening.
          await until(async () => {
            const before = await lostLines(url);
            t.deepEqual([...new Set(await request(url))], [401]);
            return (await lostLines(url)) === before + REQUESTS || undefined;
          });
          t.is((await logState(url)).status, "ready");
          assertStopped(await program.stop());
        });
      });
    }

const recovery =
  "when the disk of the log has space again, the log says how many lines are lost, and continues";
const disk = mountSmallDisk("16k");
test.after.always(() => disk?.unmount());
if (!disk) skip(recovery, "an in-memory file system can't be mounted (needs Linux and root)");
else
  test(recovery, async (t) => {
    const file = path.join(disk.folder, "log");
    const output: Output = { start: inShell(`>> ${file}`), error: "ENOSPC" };
    const { url, program } = await startOn(output, { LOG_FORMAT: "json" });
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
    assertStopped(await program.stop());

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
  const folder = mkdtempSync(path.join(tmpdir(), "linkgate-log-"));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const pipe = path.join(folder, "pipe");
  await runShell(`mkfifo ${pipe}`);
  const reader = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
  const { url, program } = await startOn({ start: inShell(`> ${pipe}`), error: "" }, { LOG_FORMAT: "json" });
  let sent = 0;
  for (; sent < 700; sent += REQUESTS) await request(url);
  t.is(await lostLines(url), 0);
  const log = text(new Socket({ fd: reader }));
  assertStopped(await program.stop());
  const all = await log;
  t.true(all.length > PIPE_BYTES, "the pipe was full");
  t.is(all.split("\n").filter((line) => parsed(line)?.msg === "request").length, sent);
});

test("workers end with a primary process that is killed", async (t) => {
  const { url, program } = await startOn(
    { start: inShell("> /dev/full"), error: "ENOSPC" },
    { LOG_FORMAT: "json", WORKERS: "2" },
  );
  await request(url);
  program.kill("SIGKILL");
  // The output stays open until every process has ended.
  t.is((await program.ended).signal, "SIGKILL");
  await t.throwsAsync(fetch(`${url}/healthz`));
});
