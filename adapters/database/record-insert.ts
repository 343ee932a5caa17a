import type { StoreBatch } from "./grouped-write.ts";
import type { Insertion } from "./insertion.ts";
import { toStorable } from "./postgres.ts";
import type { createPrepare } from "./prepared-statements.ts";
import type { Row } from "./sqlite/group-state.ts";

/**
 * Prepares one PostgreSQL statement for batches of any size: the rows of each table are one JSON parameter, so a batch
 * takes one round trip and one plan.
 */
export function prepareRecordInsert(
  { prepare }: ReturnType<typeof createPrepare>,
  { tables, followRecords, counter }: Insertion,
): StoreBatch {
  const insert = prepare<unknown, string>((q, parameters) => {
    const parts = tables.map(({ name, columns }, index) => {
      const list = columns.map((column) => `"${column}"`).join(", ");
      return `"new_${name}" as (insert into "${name}" (${list}) select ${list}
        from json_populate_recordset(null::"${name}", ?) ${after(tables[index - 1]?.name)} returning *)`;
    });
    const last = tables.at(-1)?.name as string;
    const names = tables.map(({ name }) => name);
    if (followRecords) parts.push(`"followed" as (${followRecords(`"new_${last}"`)})`);
    const end = counter ? counter.records("?", "?", after(last)) : "select 1";
    if (counter) names.push("counter", "number");
    return q.raw(`with ${parts.join(", ")} ${end}`, names.map((name) => parameters[name]) as never[]);
  });

  return async (batch, number) => {
    const records = (index: number) => JSON.stringify(batch.map((rows) => toRecord(rows[index] as Row)));
    const values = Object.fromEntries(tables.map(({ name }, index) => [name, records(index)]));
    await insert(counter ? { ...values, counter: records(tables.length), number } : values);
  };
}

/**
 * Returns a condition that is always true, but makes PostgreSQL finish another part of the statement first. Without it,
 * the order of the parts is undefined, and statements that lock rows in different orders can deadlock.
 */
function after(name: string | undefined): string {
  return name ? `where (select count(*) from "new_${name}") >= 0` : "";
}

/** Returns a row that PostgreSQL accepts as JSON. Replaces what it can't store, as `PostgresClient` does for parameters. */
function toRecord(row: Row): Row {
  const replaced: Row = {};
  let isReplaced = false;
  for (const [column, value] of Object.entries(row)) {
    if (typeof value === "number" && !Number.isFinite(value)) throw new TypeError(`${column} is ${value}`);
    if (typeof value !== "string") continue;
    const storable = toStorable(value);
    if (storable === value) continue;
    replaced[column] = storable;
    isReplaced = true;
  }
  return isReplaced ? { ...row, ...replaced } : row;
}
