import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import knexFactory from "knex";
import { knexConfig } from "../../adapters/database/engine.ts";
import type { NewClient } from "../../adapters/oauth/clients.ts";
import { freePort } from "../harness/port.ts";
import { type Seeded, seed, startOurs } from "./ours.ts";
import { type ServerProcess, type StartOptions, startServer } from "./process.ts";

/** Starts the servers and databases of a section, and removes them after it. */
export class Workspace {
  readonly #folder = mkdtempSync(path.join(tmpdir(), "linkgate-bench-"));
  readonly #servers: ServerProcess[] = [];

  /** The path of a file of this section. */
  file(name: string): string {
    return path.join(this.#folder, name);
  }

  /** Starts linkgate on a new SQLite database. */
  async ours(name: string, options: { clients?: number; codes?: number; normal?: boolean } = {}) {
    const url = `sqlite:${this.file(name)}.sqlite${options.normal ? "?synchronous=normal" : ""}`;
    return this.oursOn(url, options);
  }

  /** Starts linkgate on an empty database of any engine. */
  async oursOn(
    url: string,
    { cores, ...seeds }: { clients?: number; codes?: number; cores?: number[] } = {},
  ): Promise<Ours> {
    const port = await freePort();
    const seeded = await seed(url, { ...seeds, port });
    return this.restart(seeded, { port, ...(cores && { cores }) });
  }

  /** Starts linkgate on a seeded database. */
  async restart(
    seeded: Seeded,
    options: { port?: number; workers?: number; cores?: number[]; env?: Record<string, string> } = {},
  ): Promise<Ours> {
    const port = options.port ?? (await freePort());
    const server = this.#keep(await startOurs(seeded.url, { ...options, port }));
    return { ...seeded, server, port, host: `localhost:${port}` };
  }

  /** Starts a reference server. */
  async reference(
    script: "memory" | "nodeoauth" | "floor",
    client: NewClient,
    env: Record<string, string> = {},
  ) {
    return this.#keep(
      await startServer({
        script: fileURLToPath(new URL(`./servers/${script}.ts`, import.meta.url)),
        env: { CLIENT_ID: client.clientId, CLIENT_SECRET: client.clientSecret, ...env },
        ready: /^listening on (\d+)$/,
      }),
    );
  }

  /** Starts another server. */
  async start(options: StartOptions): Promise<ServerProcess> {
    return this.#keep(await startServer(options));
  }

  async close(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.stop()));
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #keep(server: ServerProcess): ServerProcess {
    this.#servers.push(server);
    return server;
  }
}

export type Ours = Seeded & { server: ServerProcess; port: number; host: string };

/** Counts rows or sums a column, to check that every confirmed write is stored. */
export async function count(url: string, table: string, column?: string): Promise<number> {
  const knex = knexFactory(knexConfig(url));
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
