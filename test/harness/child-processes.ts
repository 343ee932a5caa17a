import { execFile } from "node:child_process";
import { promisify } from "node:util";

export async function childrenOf(pid: number): Promise<number[]> {
  const { stdout } = await promisify(execFile)("ps", ["-A", "-o", "pid=,ppid="]);
  const pairs = [...stdout.matchAll(/(\d+) +(\d+)/g)];
  return pairs.filter(([, , parent]) => Number(parent) === pid).map(([, child]) => Number(child));
}
