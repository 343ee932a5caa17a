import type { Knex } from "knex";

/** The table that a copy creates first in its target, and deletes last. It has rows while the copy is unfinished. */
export const COPY_PROGRESS = "copy_progress";

/** The database is the target of a copy that isn't complete. */
export class UnfinishedCopy extends Error {
  override readonly name = "UnfinishedCopy";
  constructor(source: string) {
    super(
      `The database contains an unfinished copy of ${source}. Run "linkgate copy" again to finish it, or use another database.`,
    );
  }
}

/** Returns the source of the unfinished copy that a database contains, if there is one. */
export async function sourceOfCopy(knex: Knex): Promise<string | undefined> {
  if (!(await knex.schema.hasTable(COPY_PROGRESS))) return undefined;
  const row = await knex<{ source: string }>(COPY_PROGRESS as never).first("source");
  return (row as { source: string } | undefined)?.source;
}

/** Rejects a database that contains an unfinished copy. @throws UnfinishedCopy */
export async function rejectUnfinishedCopy(knex: Knex): Promise<void> {
  const source = await sourceOfCopy(knex);
  if (source !== undefined) throw new UnfinishedCopy(source);
}
