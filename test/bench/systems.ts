import { interleaved, type Subject } from "./measure.ts";
import { noteForReadme } from "./readme-table.ts";
import { answered, compare, type Row } from "./table.ts";
import { againstRows, OURS, startVersions, type Version } from "./versions.ts";
import { count, expectStored, type Ours, type Reference, section, type Workspace } from "./workspace.ts";

/** What a reference stands for. */
const LABELS = {
  memory: "oidc-provider in memory",
  "node-oauth2-server": "node-oauth2-server",
  "better-auth": "better-auth",
  "oidc-provider-knex": "oidc-provider + Knex",
  floor: "floor with group commit",
};

type System = keyof typeof LABELS;
type Target = { atLeast?: number; onSlowDisks?: true };

/** A workload of linkgate and of other systems. */
export type Comparison = {
  name: string;
  /** The name in the table for the README. */
  title: string;
  load(server: Ours | Reference): Promise<Pick<Subject, "next" | "expected">>;
  references: Partial<Record<System, Target>>;
  /** The table of linkgate that has a row for each request. */
  storedIn?: string;
};

// A disk that syncs faster hides what a commit for each request costs.
const SLOW_SYNC_MS = 0.5;

/** Returns a section with a row for each reference. Names of references limit it to those. */
export function compareSystems(comparison: Comparison) {
  const { name, title, load, references, storedIn } = comparison;
  const run = (wanted: string[]) =>
    section(async (workspace): Promise<Row[]> => {
      const { ours, subjects } = await startVersions(startIn(workspace), load);
      const systems = Object.keys(references) as System[];
      const chosen: System[] = [];
      for (const system of systems) {
        if (wanted.length > 0 && !wanted.includes(system)) continue;
        const reference = await start(workspace, system);
        if (!reference) continue;
        chosen.push(system);
        subjects.push({ name: LABELS[system], server: reference.server, ...(await load(reference)) });
      }
      const measured = await interleaved(subjects);
      if (storedIn) expectStored(name, await count(ours.url, storedIn), answered(measured, OURS));
      noteForReadme(title, measured);
      const syncMs = workspace.syncMs();
      return [
        ...chosen.map((system) => {
          const { atLeast, onSlowDisks } = references[system] as Target;
          const applies = atLeast !== undefined && (!onSlowDisks || syncMs >= SLOW_SYNC_MS);
          const note = `sync ${syncMs.toFixed(2)} ms`;
          return compare(`${name} / ${LABELS[system]}`, measured, [OURS, LABELS[system]], {
            ...(applies && { atLeast }),
            note: onSlowDisks ? `${note}; the target, ${atLeast}, is for ${SLOW_SYNC_MS} ms or more` : note,
          });
        }),
        ...againstRows(name, measured),
      ];
    });
  return Object.assign(run, { parts: Object.keys(references) });
}

/** Starts a version on a SQLite database of its own. */
export function startIn(workspace: Workspace) {
  return ({ name, root }: Version) => workspace.ours(name, { root });
}

async function start(workspace: Workspace, system: System): Promise<Reference | undefined> {
  if (system === "floor") return workspace.floor();
  if (system !== "better-auth") return workspace.reference(system);
  if (workspace.hasBetterAuth()) return workspace.reference(system, {}, "references/better-auth.js");
  console.log("SKIPPED better-auth: run npm ci --prefix test/bench/references");
  return undefined;
}
