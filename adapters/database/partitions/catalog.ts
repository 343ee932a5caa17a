import type { Knex } from "knex";
import { PARTITIONED, type PartitionedTable, type Unit } from "./tables.ts";

/** A partition of a table. Times are epoch milliseconds; the default partition has none. */
export type Partition = {
  name: string;
  /** The start; -Infinity for what was there before the table was partitioned. */
  from?: number;
  to?: number;
};

export type TableState = {
  /** The table, with the unit of its partitions if they are ours. */
  table: PartitionedTable;
  /** Whether the table is partitioned: by `partitionTables`, or by an operator, whose partitions don't change. */
  state: "plain" | "ours" | "other";
  /** Whether a conversion has limited the keys of the table, and has not ended. */
  isLimited: boolean;
};

/** Returns the comment of a table that `partitionTables` has partitioned. */
export function markOf(unit: Unit): string {
  return `partitioned by linkgate, one partition for each ${unit}`;
}

/** Returns the constraint that limits the keys of a table while it is converted. */
export function limitOf({ name }: PartitionedTable): string {
  return `${name}_before_partitions`;
}

const UNITS: readonly Unit[] = ["day", "month"];

/** Reads the state of all tables. */
export async function readStates(knex: Knex): Promise<TableState[]> {
  const { rows } = await knex.raw(
    `select t.relname as name, t.relkind as kind, obj_description(t.oid, 'pg_class') as mark,
      (select count(*) from pg_constraint c where c.conrelid = t.oid
        and c.conname = t.relname || '_before_partitions') as limits
    from pg_class t where t.oid = any (array[${PARTITIONED.map(() => "to_regclass(?)").join(", ")}]::oid[])`,
    PARTITIONED.map(({ name }) => name),
  );
  return PARTITIONED.map((table) => {
    const row = rows.find(({ name }: { name: string }) => name === table.name);
    const unit = row?.kind === "p" && UNITS.find((unit) => row.mark === markOf(unit));
    const state = row?.kind !== "p" ? "plain" : unit ? "ours" : "other";
    return {
      table: { ...table, unit: unit || table.unit },
      state,
      isLimited: state === "plain" && Number(row?.limits) > 0,
    };
  });
}

/** Lists the partitions of a table that `partitionTables` has partitioned, oldest first, and the default partition last. */
export async function listPartitions(knex: Knex, table: PartitionedTable): Promise<Partition[]> {
  const { rows } = await knex.raw(
    `select c.relname as name, pg_get_expr(c.relpartbound, c.oid) as bound
    from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = to_regclass(?)`,
    [table.name],
  );
  return rows
    .map(({ name, bound }: { name: string; bound: string }) => ({ name, ...boundsOf(bound, table) }))
    .sort(byEnd);
}

function byEnd(one: Partition, other: Partition): number {
  return (one.to ?? Number.MAX_VALUE) - (other.to ?? Number.MAX_VALUE);
}

const BOUNDS = /^FOR VALUES FROM \('?(\w+)'?\) TO \('?(\w+)'?\)$/;

function boundsOf(bound: string, { timeOf }: PartitionedTable): { from?: number; to?: number } {
  const [, from, to] = BOUNDS.exec(bound) ?? [];
  if (from === undefined || to === undefined) return {};
  return { from: from === "MINVALUE" ? Number.NEGATIVE_INFINITY : timeOf(from), to: timeOf(to) };
}
