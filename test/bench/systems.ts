import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { copyFileSync, existsSync, symlinkSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { NewClient } from "../../adapters/oauth/clients.ts";
import { startKutt } from "./kutt.ts";
import type { NextRequest } from "./load.ts";
import { interleaved, type Subject } from "./measure.ts";
import { type SeedOptions, seed } from "./seed.ts";
import { answered, compare } from "./table.ts";
import {
  createsLinks,
  exchanges,
  followsLink,
  introspectsTokens,
  issuesTokens,
  refreshes,
} from "./workloads.ts";
import type { Ours, Section, Server, Workspace } from "./workspace.ts";
import { count, expectStored, ROOT, Skipped } from "./workspace.ts";

/** The name of linkgate among the subjects of a measurement. */
const OURS = "linkgate";

type System = { label: string; start(workspace: Workspace): Promise<Server> };

/** The versions that `--against` names. */
const versions: { label: string; start(workspace: Workspace, options?: SeedOptions): Promise<Ours> }[] = [];

/** Checks out another version, to be measured beside this one. It uses the packages that are installed here. */
export function addVersion(run: Workspace, ref: string): void {
  const root = run.file("against");
  const git = (...words: string[]) => execFileSync("git", words, { cwd: ROOT, encoding: "utf8" }).trim();
  const label = git("rev-parse", "--short", `${ref}^{commit}`);
  git("worktree", "add", "--detach", root, label);
  run.defer(() => git("worktree", "remove", "--force", root));
  symlinkSync(`${ROOT}node_modules`, `${root}/node_modules`);
  copyFileSync(`${ROOT}test/bench/seed.ts`, `${root}/test/bench/seed.ts`);
  const start = async (workspace: Workspace, options?: SeedOptions) =>
    workspace.ours(await workspace.database("sqlite", label), { ...options, root });
  versions.push({ label, start });
}

const SYSTEMS = {
  memory: { label: "oidc-provider in memory", start: startMemory },
  "node-oauth2-server": {
    label: "node-oauth2-server",
    start: (workspace) => startReference(workspace, "servers/node-oauth2-server.ts"),
  },
  "better-auth": { label: "better-auth", start: startBetterAuth },
  "oidc-provider-knex": {
    label: "oidc-provider + Knex",
    start: (workspace) => startReference(workspace, "servers/oidc-provider-knex.ts"),
  },
  floor: { label: "floor with group commit", start: startFloor },
  kutt: { label: "Kutt", start: startKutt },
  postgres: {
    label: "on PostgreSQL",
    start: async (workspace) => workspace.ours(await workspace.database("postgres")),
  },
} satisfies Record<string, System>;

/** A workload of linkgate and of other systems. */
type Comparison = {
  name: string;
  load(server: Server): Promise<Omit<Subject, "name">> | Omit<Subject, "name">;
  references: (keyof typeof SYSTEMS)[];
  /** The least ratio to the first reference. */
  atLeast: number;
  /** The table of linkgate that has a row for each request, or a column that counts them. */
  storedIn?: [table: string, column?: string];
};

/** T: tokens with the client credentials grant. */
export const tokens = compareSystems({
  name: "T, SQLite full",
  load: issuesTokens,
  references: ["memory", "node-oauth2-server", "better-auth", "oidc-provider-knex", "postgres"],
  atLeast: 0.7,
  storedIn: ["tokens"],
});

/** R: links created with a token. */
export const resources = compareSystems({
  name: "R, SQLite full",
  load: createsLinks,
  references: ["floor", "node-oauth2-server", "better-auth", "oidc-provider-knex", "postgres"],
  atLeast: 0.6,
  storedIn: ["links"],
});

/** Redirects of short links, whose clicks are counted. */
export const redirects = compareSystems({
  name: "redirect, SQLite full",
  load: followsLink,
  references: ["floor", "kutt", "postgres"],
  atLeast: 1.2,
  storedIn: ["links", "clicks"],
});

/** I: introspection over HTTP. */
export const introspection = compareSystems({
  name: "I, SQLite",
  load: introspectsTokens,
  references: ["memory", "better-auth", "oidc-provider-knex"],
  atLeast: 0.9,
});

function compareSystems({ name, load, references, atLeast, storedIn }: Comparison): Section {
  return {
    parts: references,
    async run(workspace, wanted) {
      const ours = await workspace.ours(await workspace.database("sqlite"));
      const subjects: Subject[] = [{ name: OURS, ...(await load(ours)) }];
      const started: { part: string; label: string; server: Server }[] = [];
      const systems = references
        .filter((part) => wanted.includes(part))
        .map((part): [string, System] => [part, SYSTEMS[part]]);
      for (const version of versions) systems.push([version.label, version]);
      for (const [part, { label, start }] of systems) {
        const server = await start(workspace).catch((error: unknown) => skip(label, error));
        if (!server) continue;
        started.push({ part, label, server });
        subjects.push({ name: label, ...(await load(server)) });
      }
      const measured = await interleaved(subjects);
      const note = `${ours.server.memory().toFixed(0)} MB, ${workspace.syncNote()}`;
      await ours.server.stop(); // a graceful stop stores the last clicks
      if (storedIn) expectStored(name, await count(ours.url, ...storedIn), answered(measured, OURS));
      for (const { label, server } of started)
        if (server.stored) expectStored(label, await server.stored(), answered(measured, label));
      return started.map(({ part, label }) => {
        const target = part === references[0] ? { atLeast, note } : { note };
        return compare(`${name} / ${label}`, measured, [OURS, label], target);
      });
    },
  };
}

function skip(label: string, error: unknown): undefined {
  if (!(error instanceof Skipped)) throw error;
  console.log(`SKIPPED ${label}: ${error.message}`);
}

/** Starts a server with a client and a SQLite database of its own. */
async function startReference(workspace: Workspace, script: string, env: Record<string, string> = {}) {
  const clientId = `lgc_${randomBytes(16).toString("base64url")}`;
  const clientSecret = randomBytes(32).toString("base64url");
  const server = await workspace.start({
    script: fileURLToPath(new URL(script, import.meta.url)),
    env: {
      CLIENT_ID: clientId,
      CLIENT_SECRET: clientSecret,
      DATABASE: workspace.file(`${script.replaceAll("/", "-")}.sqlite`),
      ...env,
    },
  });
  return { server, host: `localhost:${server.port}`, clients: [{ clientId, clientSecret }], slug: "" };
}

function startMemory(workspace: Workspace): Promise<Server> {
  return startReference(workspace, "servers/memory.ts");
}

async function startBetterAuth(workspace: Workspace): Promise<Server> {
  if (!existsSync(new URL("references/node_modules/better-auth", import.meta.url)))
    throw new Skipped("run npm ci --prefix test/bench/references");
  return startReference(workspace, "references/better-auth.js");
}

async function startFloor(workspace: Workspace): Promise<Server> {
  const url = await workspace.database("sqlite", "floor");
  const { slug } = await seed(url);
  const token = randomBytes(32).toString("base64url");
  const env = { DATABASE: url.slice("sqlite:".length), TOKEN: token, SLUG: slug };
  return { ...(await startReference(workspace, "servers/floor.ts", env)), slug, token };
}

// Creating them takes longer than exchanging them, so the rounds of the exchange are short.
const CODES = 45_000;
const EXCHANGE_S = 1;
const REFRESH_S = 2;
// 1.8 × 1,130 per second, on a machine where oidc-provider in memory issued 7,523 tokens per second (T).
const MIN_RATIO = 0.27;

/** Code exchange and refresh: each is compared with T of oidc-provider in memory. */
export const exchange: Section = {
  async run(workspace) {
    const ours = await workspace.ours(await workspace.database("sqlite"), { codes: CODES });
    const all = [{ name: OURS, version: ours, refreshTokens: [] as string[] }];
    for (const { label, start } of versions)
      all.push({ name: label, version: await start(workspace, { codes: CODES }), refreshTokens: [] });
    const T = { name: "memory", ...issuesTokens(await startMemory(workspace)) };
    type Load = (version: Ours, refreshTokens: string[]) => NextRequest;
    const measure = async (name: string, load: Load, seconds: number, tokens: number) => {
      const before = await count(ours.url, "tokens");
      const subjects = all.map(({ name, version, refreshTokens }): Subject => {
        return { name, server: version.server, next: load(version, refreshTokens), expected: 200 };
      });
      const results = await interleaved([...subjects, T], { seconds });
      const stored = (await count(ours.url, "tokens")) - before;
      expectStored(`tokens of ${name}`, stored, tokens * answered(results, OURS));
      const target = { atLeast: MIN_RATIO, note: workspace.syncNote() };
      const title = `${name}, SQLite full`;
      return [
        compare(`${title} / T of oidc-provider in memory`, results, [OURS, "memory"], target),
        ...versions.map(({ label }) => compare(`${title} / ${label}`, results, [OURS, label])),
      ];
    };
    return [
      // A used code is kept. An access token and a refresh token are added.
      ...(await measure("code exchange", (one, tokens) => exchanges(one.host, one, tokens), EXCHANGE_S, 2)),
      ...(await measure("refresh", refreshesOf, REFRESH_S, 1)),
    ];
  },
};

const refreshesOf = ({ host, clients }: Ours, refreshTokens: string[]) =>
  refreshes(host, clients[0] as NewClient, refreshTokens);
