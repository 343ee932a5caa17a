import { randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import knexFactory from "knex";
import { knexConfig } from "../../adapters/database/engine.ts";
import type { NewClient } from "../../adapters/oauth/clients.ts";
import { freePort } from "../harness/port.ts";
import { cleanUp } from "./cleanup.ts";
import { seed, startOurs } from "./ours.ts";
import { type ServerProcess, type StartOptions, startServer } from "./process.ts";
import type { Seeded, SeedOptions } from "./seed.ts";
import { syncMs } from "./sync.ts";

export type Ours = Seeded & { server: ServerProcess; port: number; host: string };

type Seeds = Partial<Pick<SeedOptions, "clients" | "codes">>;
type Options = Seeds & { cores?: number[]; root?: string };
type Restart = {
  port?: number;
  workers?: number;
  cores?: number[];
  env?: Record<string, string>;
  root?: string;
};

/** Starts the servers and databases of a section, and removes them after it. */
export class Workspace {
  readonly #folder = mkdtempSync(path.join(tmpdir(), "linkgate-bench-"));
  readonly #servers: ServerProcess[] = [];

  /** The path of a file of this section. */
  file(name: string): string {
    return path.join(this.#folder, name);
  }

  /** Describes how long the disk takes to sync, for the rows that depend on it. */
  syncNote(): string {
    return `sync ${this.syncMs().toFixed(2)} ms`;
  }

  /** Returns how long the disk takes to sync, in milliseconds. */
  syncMs(): number {
    return syncMs(this.file("sync"));
  }

  /** Starts linkgate on a new SQLite database. */
  async ours(name: string, options: Options = {}): Promise<Ours> {
    return this.oursOn(`sqlite:${this.file(name)}.sqlite`, options);
  }

  /** Starts linkgate on an empty database of any engine. */
  async oursOn(url: string, { cores, root, ...seeds }: Options = {}): Promise<Ours> {
    const port = await freePort();
    const seeded = await seed(url, { ...seeds, port }, root);
    return this.restart(seeded, { port, ...(cores && { cores }), ...(root && { root }) });
  }

  /** Starts linkgate on a seeded database. */
  async restart(seeded: Seeded, options: Restart = {}): Promise<Ours> {
    const port = options.port ?? (await freePort());
    const server = this.#keep(await startOurs(seeded.url, { ...options, port }));
    return { ...seeded, server, port, host: `localhost:${port}` };
  }

  /** Starts a reference server, with a client and a SQLite database of its own. */
  async reference(
    name: string,
    env: Record<string, string> = {},
    script = `servers/${name}.ts`,
  ): Promise<Reference> {
    const client = inventClient();
    const server = await this.start({
      script: fileURLToPath(new URL(script, import.meta.url)),
      env: {
        CLIENT_ID: client.clientId,
        CLIENT_SECRET: client.clientSecret,
        DATABASE: this.file(`${name}.sqlite`),
        ...env,
      },
      ready: /^listening on (\d+)$/,
    });
    return { server, clients: [client], host: `localhost:${server.port}` };
  }

  /** Starts the floor on a new linkgate database. */
  async floor(): Promise<Reference & { token: string; slug: string }> {
    const { slug } = await seed(`sqlite:${this.file("floor")}.sqlite`);
    const token = randomBytes(32).toString("base64url");
    return { ...(await this.reference("floor", { TOKEN: token, SLUG: slug })), token, slug };
  }

  /** Returns whether the package of better-auth is installed. */
  hasBetterAuth(): boolean {
    return existsSync(new URL("references/node_modules/better-auth", import.meta.url));
  }

  /** Starts another server. */
  async start(options: StartOptions): Promise<ServerProcess> {
    return this.#keep(await startServer(options));
  }

  /** Stops the servers and removes the files. */
  readonly close = cleanUp(async () => {
    await Promise.all(this.#servers.map((server) => server.stop()));
    rmSync(this.#folder, { recursive: true, force: true });
  });

  #keep(server: ServerProcess): ServerProcess {
    this.#servers.push(server);
    return server;
  }
}

export type Reference = { server: ServerProcess; clients: NewClient[]; host: string; token?: string };

/** Creates a client that only a reference server knows. */
function inventClient(): NewClient {
  return {
    clientId: `lgc_${randomBytes(16).toString("base64url")}`,
    clientSecret: randomBytes(32).toString("base64url"),
  };
}

// Large tables are counted, too.
const STATEMENT_MS = 3_600_000;

/** Counts rows or sums a column, to check that every confirmed write is stored. */
export async function count(url: string, table: string, column?: string): Promise<number> {
  const knex = knexFactory(knexConfig(url, { timeoutMs: STATEMENT_MS }));
  try {
    const [row] = column ? await knex(table).sum({ total: column }) : await knex(table).count({ total: "*" });
    return Number(row?.total ?? 0);
  } finally {
    await knex.destroy();
  }
}

/** @throws Error if a confirmed write is not in the database */
export function expectStored(name: string, stored: number, answered: number): void {
  if (stored < answered) throw new Error(`${name}: ${answered} were confirmed and ${stored} are stored`);
}

/** Runs a section, and always cleans up after it. */
export async function section<T>(run: (workspace: Workspace) => Promise<T>): Promise<T> {
  const workspace = new Workspace();
  try {
    return await run(workspace);
  } finally {
    await workspace.close();
  }
}
