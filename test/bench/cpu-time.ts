import { readdirSync, readFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";

/** Returns the processor time of a process with all its threads and child processes so far, in milliseconds. */
export function cpuMsOf(pid: number, withChildren = true): number {
  return withChildren ? processesOf(pid).reduce((sum, each) => sum + ownCpuMs(each), 0) : ownCpuMs(pid);
}

/** Returns the processor time of all processes whose command line contains a text, in milliseconds. */
export function cpuMsOfCommands(text: string): number {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  const own = pids.filter((pid) => read(`/proc/${pid}/cmdline`).includes(text));
  return own.reduce((sum, pid) => sum + ownCpuMs(Number(pid)), 0);
}

/** Returns how often the threads of a process and its child processes have left their core so far, to wait or for another one. */
export function switchesOf(pid: number): number {
  const statuses = processesOf(pid).flatMap((each) =>
    list(`/proc/${each}/task`).map((thread) => read(`/proc/${each}/task/${thread}/status`)),
  );
  const counts = statuses.flatMap((status) => [...status.matchAll(/ctxt_switches:\s+(\d+)/g)]);
  return counts.reduce((sum, [, count]) => sum + Number(count), 0);
}

const SLEEPS = 500;

/** Returns the processor time that a process of Node takes to be woken by a timer, in microseconds. */
export async function wakeUs(): Promise<number> {
  const before = process.cpuUsage();
  for (let sleep = 0; sleep < SLEEPS; sleep++) await setTimeout(1);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / SLEEPS;
}

function processesOf(pid: number): number[] {
  const children = read(`/proc/${pid}/task/${pid}/children`).split(" ").filter(Boolean).map(Number);
  return [pid, ...children.flatMap(processesOf)];
}

/** Adds up the threads: the first number of schedstat is nanoseconds on a processor. */
function ownCpuMs(pid: number): number {
  const threads = list(`/proc/${pid}/task`).map((thread) => read(`/proc/${pid}/task/${thread}/schedstat`));
  return threads.reduce((sum, stat) => sum + Number(stat.split(" ", 1)[0]), 0) / 1e6;
}

// A thread or process may have ended since it was listed.
function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
