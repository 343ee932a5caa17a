import { randomBytes } from "node:crypto";
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import knexFactory, { type Knex } from "knex";
import { type Engine, knexConfig } from "../../adapters/database/engine.ts";
import type { NewClient } from "../../adapters/oauth/clients.ts";
import manifest from "../../package.json" with { type: "json" };
import { createTestDatabase, serverOf } from "../harness/database/test-database.ts";
import { freePort } from "../harness/program.ts";
import { median } from "./load.ts";
import { type ServerProcess, type StartOptions, startServer } from "./process.ts";
import type { Seeded, SeedOptions } from "./seed.ts";
import type { Row } from "./table.ts";

/** A running server: linkgate or another system. */
export type Server = {
  server: ServerProcess;
  host: string;
  clients: NewClient[];
  /** Of a link to follow. */
  slug: string;
  /** An access token, if none has to be fetched. */
  token?: string;
  /** Counts what is stored, in a system that has to store each request. */
  stored?(): Promise<number>;
};
/** linkgate on a seeded database. */
export type Ours = Server & Seeded & { port: number };

/** `root` is the checkout of another version. */
type Restart = {
  port?: number;
  workers?: number;
  cores?: number[];
  env?: Record<string, string>;
  root?: string;
};

/** BENCH_SCALE=0.01 makes tables smaller and measurements shorter, to try a change of the benchmark. */
export const SCALE = Number(process.env.BENCH_SCALE ?? 1);
export const ROOT = fileURLToPath(new URL("../../", import.meta.url));
// As in `npm start`: with a larger young generation, the garbage of requests is collected there.
const FLAGS = manifest.scripts.start.split(" ").filter((word) => word.startsWith("--max-"));
/** The client that may introspect every token. */
export const RESOURCE_SERVER: NewClient = {
  clientId: "resource-server",
  clientSecret: randomBytes(32).toString("base64url"),
};

/** What this machine lacks for a measurement. */
export class Skipped extends Error {}

/** The servers, databases and files of a measurement, which are removed after it. */
export class Workspace {
  readonly #folder = mkdtempSync(path.join(tmpdir(), "linkgate-bench-"));
  readonly #undo: (() => unknown)[] = [() => rmSync(this.#folder, { recursive: true, force: true })];

  /** Registers what has to be undone, even if the run is interrupted. */
  defer(undo: () => unknown): void {
    this.#undo.push(undo);
  }

  /** Undoes everything, the latest first. */
  async close(): Promise<void> {
    for (let undo = this.#undo.pop(); undo; undo = this.#undo.pop()) await undo();
  }

  file(name: string): string {
    return path.join(this.#folder, name);
  }

  /** Returns the URL of a new database. That of SQLite is on the disk, not in memory. */
  async database(engine: Engine, name: string = engine): Promise<string> {
    if (engine === "sqlite") return `sqlite:${this.file(name)}.sqlite`;
    if (!serverOf(engine)) throw new Skipped(`TEST_${engine.toUpperCase()}_URL is not set`);
    const { url, drop } = await createTestDatabase({ empty: true, on: engine });
    this.defer(drop);
    return url;
  }

  async start(options: StartOptions): Promise<ServerProcess> {
    const server = await startServer(options);
    this.defer(server.stop);
    return server;
  }

  /** Starts linkgate on an empty database. */
  async ours(url: string, options: Restart & SeedOptions = {}): Promise<Ours> {
    const port = await freePort();
    const script = path.join(options.root ?? ROOT, "test/bench/seed.ts");
    const { seed }: typeof import("./seed.ts") = await import(script);
    return this.restart(await seed(url, { port, ...options }), { port, ...options });
  }

  /** Starts linkgate on a seeded database, configured as in production but without rate limits. */
  async restart(seeded: Seeded, { root = ROOT, workers = 1, env, ...options }: Restart = {}): Promise<Ours> {
    const port = options.port ?? (await freePort());
    const server = await this.start({
      script: path.join(root, "server/main.ts"),
      // `npm start` imports this first. It caches compiled code.
      flags: [...FLAGS, "--import", path.join(root, "server/runtime.js")],
      env: {
        PORT: String(port),
        DATABASE_URL: seeded.url,
        ENCRYPTION_KEY: seeded.key,
        RATE_LIMIT: "off",
        LOG_LEVEL: "warn",
        WORKERS: String(workers),
        RESOURCE_SERVER_SECRET: RESOURCE_SERVER.clientSecret,
        ...env,
      },
      ready: /listening on .*?(\d+)$/,
      ...(options.cores && { cores: options.cores }),
    });
    return { ...seeded, server, port, host: `localhost:${port}` };
  }

  /** Describes how long the disk takes to sync a write at the end of a file: the median of 300. */
  syncNote(): string {
    const handle = openSync(this.file("sync"), "w");
    const page = Buffer.alloc(8192, 1);
    const times = Array.from({ length: 300 }, () => {
      const start = performance.now();
      writeSync(handle, page);
      fdatasyncSync(handle);
      return performance.now() - start;
    });
    closeSync(handle);
    return `sync ${median(times).toFixed(2)} ms`;
  }
}

/** Rows that are measured together. */
export type Section = {
  /** What can be run on its own: `section/part`. */
  parts?: string[];
  /** Whether each part is measured by itself, with servers and files of its own. */
  apart?: boolean;
  /** Whether it takes so long that it runs with `--full` or by its name only. */
  long?: boolean;
  run(workspace: Workspace, parts: string[]): Promise<Row[]>;
};

const NAMES: Record<Engine, string> = { sqlite: "SQLite full", postgres: "PostgreSQL", mysql: "MariaDB" };

type OnDatabase = (workspace: Workspace, url: string, name: string) => Promise<Row[]>;

/** A section whose parts are engines, each with a new database. */
export function eachDatabase(run: OnDatabase, engines = Object.keys(NAMES) as Engine[]): Section {
  return {
    parts: engines,
    apart: true,
    run: async (workspace, [engine]) =>
      run(workspace, await workspace.database(engine as Engine), NAMES[engine as Engine]),
  };
}

// A statement may add or count millions of rows.
const STATEMENT_MS = 3_600_000;

export async function withDatabase<T>(url: string, work: (knex: Knex) => Promise<T>): Promise<T> {
  const knex = knexFactory({ ...knexConfig(url, { timeoutMs: STATEMENT_MS }), pool: { min: 1, max: 1 } });
  try {
    return await work(knex);
  } finally {
    await knex.destroy();
  }
}

export function count(url: string, table: string, column?: string): Promise<number> {
  return withDatabase(url, async (knex) => {
    const [row] = column ? await knex(table).sum({ total: column }) : await knex(table).count({ total: "*" });
    return Number(row?.total ?? 0);
  });
}

/** @throws Error if a confirmed write is not in the database */
export function expectStored(name: string, stored: number, answered: number): void {
  if (stored < answered) throw new Error(`${name}: ${answered} were confirmed and ${stored} are stored`);
}
