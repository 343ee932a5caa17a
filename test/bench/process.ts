import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

/** A server in a process of its own. */
export type ServerProcess = {
  port: number;
  /** Resident memory in MB. */
  memory(): number;
  stop(): Promise<void>;
};

type StartOptions = {
  script: string;
  /** Options of Node itself. */
  flags?: string[];
  env: Record<string, string>;
  /** The line that tells that it listens; the port is its first group. */
  ready: RegExp;
  /** The cores that it may use. */
  cores?: number[];
};

// The generator has the other one.
const SERVER_CORES = [0];

// Of every server, its workers included; what is measured then is the profiler as well.
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

/** Pins a process to a core, where that can be done; what it starts later inherits that. */
export function pin(pid: number, core: number): void {
  if (hasTaskset) execFileSync("taskset", ["-apc", String(core), String(pid)], { stdio: "ignore" });
}

/** A command that runs on those cores, its threads included, where that can be done. */
function onCores(cores: number[], command: string[]): string[] {
  return hasTaskset ? ["taskset", "-c", cores.join(","), ...command] : command;
}

/** Starts a script and waits until it listens. */
export async function startServer(options: StartOptions): Promise<ServerProcess> {
  const { script, flags = [], env, ready, cores = SERVER_CORES } = options;
  const [command, ...words] = onCores(cores, [process.execPath, ...PROFILE, ...flags, script]) as [
    string,
    ...string[],
  ];
  const child = spawn(command, words, {
    env: { PATH: process.env.PATH, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const port = await readPort(child, ready);
  return {
    port,
    memory: () =>
      Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1] ?? 0) / 1024,
    async stop() {
      child.kill("SIGTERM");
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    },
  };
}

async function readPort(child: ChildProcess, ready: RegExp): Promise<number> {
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  for await (const line of lines) {
    const port = ready.exec(line)?.[1];
    if (port) {
      child.stdout?.resume();
      return Number(port);
    }
  }
  throw new Error("the server ended before it listened");
}
