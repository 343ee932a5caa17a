import type { Engine } from "../../adapters/database/engine.ts";
import { createTestDatabase, serverOf } from "../harness/database/test-database.ts";
import { cleanUp } from "./cleanup.ts";
import type { Row } from "./table.ts";
import { section, type Workspace } from "./workspace.ts";

const ENGINES: Record<Engine, string> = { sqlite: "SQLite full", postgres: "PostgreSQL", mysql: "MariaDB" };

/** Runs on a new database of each engine that this machine has, or of those that `parts` name. */
export async function onEachDatabase(
  parts: string[],
  run: (workspace: Workspace, url: string, name: string) => Promise<Row[]>,
): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [engine, name] of Object.entries(ENGINES)) {
    if (parts.length > 0 && !parts.includes(engine)) continue;
    if (engine !== "sqlite" && !serverOf(engine)) {
      console.log(`SKIPPED ${name}: TEST_${engine.toUpperCase()}_URL is not set`);
      continue;
    }
    const database = await createTestDatabase({ empty: true, on: engine });
    const drop = cleanUp(database.drop);
    try {
      rows.push(...(await section((workspace) => run(workspace, database.url, name))));
    } finally {
      await drop();
    }
  }
  return rows;
}

/** The engines as parts of a section. */
export const ENGINE_PARTS = Object.keys(ENGINES);
