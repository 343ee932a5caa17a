import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

export type ServerProcess = Awaited<ReturnType<typeof startServer>>;

export type StartOptions = {
  script: string;
  /** Node options. */
  flags?: string[];
  env?: Record<string, string>;
  cwd?: string;
  /** Matches the line that the server prints when it listens. The first group is the port. */
  ready?: RegExp;
  /** The CPU cores that it may use. */
  cores?: number[];
};

// The load generator runs on one core, and by default each server on the other.
const GENERATOR_CORE = 1;
const SERVER_CORES = [0];

// Profiles every server with its workers. Measurements then include the profiler.
const PROFILES = process.env.BENCH_PROFILES;
const PROFILE = PROFILES ? ["--cpu-prof", "--cpu-prof-interval=500", "--cpu-prof-dir", PROFILES] : [];
const hasTaskset = spawnSync("taskset", ["-V"]).status === 0;

/** Pins this process to a core if the system supports it. Its later children inherit that. */
export function pinGenerator(): void {
  if (hasTaskset)
    execFileSync("taskset", ["-apc", String(GENERATOR_CORE), String(process.pid)], { stdio: "ignore" });
}

/** Starts a script and waits until it listens. */
export async function startServer(options: StartOptions) {
  const { script, flags = [], env, cwd, ready = /^listening on (\d+)$/, cores = SERVER_CORES } = options;
  const pinned = hasTaskset ? ["taskset", "-c", cores.join(",")] : [];
  const [command = "", ...words] = [...pinned, process.execPath, ...PROFILE, ...flags, script];
  const child = spawn(command, words, {
    env: { PATH: process.env.PATH, ...env },
    ...(cwd && { cwd }),
    stdio: ["ignore", "pipe", "inherit"],
  });
  const port = await readPort(child, ready);
  const pid = child.pid as number;
  let logged = 0;
  child.stdout.on("data", (chunk: Buffer) => {
    logged += chunk.length;
  });
  const memory = (line: RegExp) => Number(line.exec(read(`/proc/${pid}/status`))?.[1] ?? 0) / 1024;
  return {
    port,
    /** Resident memory in MB. */
    memory: () => memory(/VmRSS:\s+(\d+)/),
    /** The most resident memory in MB since `resetPeak`. */
    peakMemory: () => memory(/VmHWM:\s+(\d+)/),
    // Linux resets the peak (VmHWM) when 5 is written.
    resetPeak: () => writeFileSync(`/proc/${pid}/clear_refs`, "5"),
    /** The processor time that it has used, with all threads and workers, in milliseconds. */
    cpuMs: () => cpuMsOf(pid),
    openFiles: () => readdirSync(`/proc/${pid}/fd`).length,
    /** The bytes that it has written to its standard output since it listens. */
    logged: () => logged,
    async stop() {
      child.kill("SIGTERM");
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    },
  };
}

async function readPort(child: ChildProcess, ready: RegExp): Promise<number> {
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
    const port = ready.exec(line)?.[1];
    if (port) return Number(port);
  }
  throw new Error("the server exited before it listened");
}

/** Returns the processor time of a process with all its threads and child processes so far, in milliseconds. */
export function cpuMsOf(pid: number): number {
  const children = read(`/proc/${pid}/task/${pid}/children`).split(" ").filter(Boolean).map(Number);
  return children.reduce((sum, child) => sum + cpuMsOf(child), ownCpuMs(pid));
}

/** Returns the processor time of a process without its children. */
export function ownCpuMs(pid: number): number {
  const threads = tasksOf(pid).map((thread) => read(`/proc/${pid}/task/${thread}/schedstat`));
  // The first number is nanoseconds on a processor.
  return threads.reduce((sum, stat) => sum + Number(stat.split(" ", 1)[0]), 0) / 1e6;
}

const read = (file: string) => unlessEnded(() => readFileSync(file, "utf8"), "");
const tasksOf = (pid: number) => unlessEnded(() => readdirSync(`/proc/${pid}/task`), []);

/** Reads of a thread or process, which may have ended since it was listed. */
function unlessEnded<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch {
    return otherwise;
  }
}
