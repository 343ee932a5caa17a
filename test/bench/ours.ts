import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import manifest from "../../package.json" with { type: "json" };
import { type ServerProcess, startServer } from "./process.ts";
import type { Seeded, SeedOptions } from "./seed.ts";

/** The checkout of this benchmark. */
export const ROOT = fileURLToPath(new URL("../..", import.meta.url));
// As in `npm start`: with a larger young generation, the garbage of requests is collected there.
const FLAGS = manifest.scripts.start.split(" ").filter((word) => word.startsWith("--max-"));
// What `npm start` imports first. It caches compiled code.
const RUNTIME = "server/runtime.js";
/** The encryption key of all databases. */
export const KEY = randomBytes(32).toString("base64url");
export const RESOURCE_SERVER_SECRET = randomBytes(32).toString("base64url");

/** Creates a database with the data that the workloads need, as the version in a checkout does. */
export async function seed(url: string, options: Partial<SeedOptions> = {}, root = ROOT): Promise<Seeded> {
  const script = path.join(root, "test/bench/seed.ts");
  const argument = JSON.stringify({ clients: 1, codes: 0, port: 0, ...options, url, key: KEY });
  const { stdout } = await promisify(execFile)(process.execPath, [script, argument], { maxBuffer: 2 ** 28 });
  return JSON.parse(stdout) as Seeded;
}

/** Starts linkgate on a seeded database, configured as in production but without rate limits. */
export function startOurs(
  url: string,
  options: {
    port: number;
    workers?: number;
    cores?: number[];
    env?: Record<string, string>;
    root?: string;
  },
): Promise<ServerProcess> {
  const root = options.root ?? ROOT;
  return startServer({
    script: path.join(root, "server/main.ts"),
    flags: [...FLAGS, "--import", path.join(root, RUNTIME)],
    env: {
      PORT: String(options.port),
      DATABASE_URL: url,
      ENCRYPTION_KEY: KEY,
      RATE_LIMIT: "off",
      LOG_LEVEL: "warn",
      WORKERS: String(options.workers ?? 1),
      RESOURCE_SERVER_SECRET,
      ...options.env,
    },
    ready: /listening on .*?(\d+)$/,
    ...(options.cores && { cores: options.cores }),
  });
}
