import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { cpuMsOf, switchesOf } from "./cpu-time.ts";

/** A server that runs as a child process. */
export type ServerProcess = {
  port: number;
  /** Resident memory in MB. */
  memory(): number;
  /** The most resident memory in MB since `resetPeak`. */
  peakMemory(): number;
  resetPeak(): void;
  /** The processor time that it has used, with all threads and workers, in milliseconds. */
  cpuMs(): number;
  /** How often its threads and workers have left their core, to wait or for another process. */
  switches(): number;
  /** The number of open files and sockets. */
  openFiles(): number;
  /** The bytes that it has written to its standard output since it listens. */
  logged(): number;
  stop(): Promise<void>;
};

export type StartOptions = {
  script: string;
  /** Node options. */
  flags?: string[];
  env: Record<string, string>;
  cwd?: string;
  /** Matches the line that the server prints when it listens. The first group is the port. */
  ready: RegExp;
  /** The CPU cores that it may use. */
  cores?: number[];
};

// The load generator runs on the other core.
const SERVER_CORES = [0];

// Profiles every server with its workers. Measurements then include the profiler.
const PROFILES = process.env.BENCH_PROFILES;
const PROFILE = PROFILES ? ["--cpu-prof", "--cpu-prof-interval=500", "--cpu-prof-dir", PROFILES] : [];

const hasTaskset = (() => {
  try {
    execFileSync("taskset", ["-V"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
})();

/** Pins a process to a core if the system supports it. Its later children inherit that. */
export function pin(pid: number, core: number): void {
  if (hasTaskset) execFileSync("taskset", ["-apc", String(core), String(pid)], { stdio: "ignore" });
}

/** Returns a command that runs on these cores, with all threads, if the system supports it. */
function onCores(cores: number[], command: string[]): string[] {
  return hasTaskset ? ["taskset", "-c", cores.join(","), ...command] : command;
}

/** Starts a script and waits until it listens. */
export async function startServer(options: StartOptions): Promise<ServerProcess> {
  const { script, flags = [], env, cwd, ready, cores = SERVER_CORES } = options;
  const [command, ...words] = onCores(cores, [process.execPath, ...PROFILE, ...flags, script]) as [
    string,
    ...string[],
  ];
  const child = spawn(command, words, {
    env: { PATH: process.env.PATH, ...env },
    ...(cwd && { cwd }),
    stdio: ["ignore", "pipe", "inherit"],
  });
  const port = await readPort(child, ready);
  let logged = 0;
  child.stdout?.on("data", (chunk: Buffer) => {
    logged += chunk.length;
  });
  return {
    port,
    memory: () => memoryOf(child, /VmRSS:\s+(\d+)/),
    peakMemory: () => memoryOf(child, /VmHWM:\s+(\d+)/),
    // Linux resets the peak (VmHWM) when 5 is written.
    resetPeak: () => writeFileSync(`/proc/${child.pid}/clear_refs`, "5"),
    cpuMs: () => cpuMsOf(child.pid as number),
    switches: () => switchesOf(child.pid as number),
    openFiles: () => readdirSync(`/proc/${child.pid}/fd`).length,
    logged: () => logged,
    async stop() {
      child.kill("SIGTERM");
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    },
  };
}

function memoryOf({ pid }: ChildProcess, line: RegExp): number {
  return Number(line.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024;
}

async function readPort(child: ChildProcess, ready: RegExp): Promise<number> {
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  for await (const line of lines) {
    const port = ready.exec(line)?.[1];
    if (port) return Number(port);
  }
  throw new Error("the server exited before it listened");
}
