import type { Knex } from "knex";
import { limitOf, markOf } from "./catalog.ts";
import { createPart, createPartition, dateOf, literalOf } from "./create.ts";
import type { PartitionedTable } from "./tables.ts";

type Index = { name: string; definition: string; constraint: string | null };

/**
 * Puts a partitioned table in the place of a table, which becomes its first partition, or the default one. The caller has
 * proved that its keys are before the boundary, or not in the partition that begins there. Part of the caller's transaction.
 */
export async function replaceTable(
  trx: Knex.Transaction,
  table: PartitionedTable,
  boundary: number,
): Promise<void> {
  const { name } = table;
  await trx.raw("lock table ?? in access exclusive mode", [name]);
  await becomeOwner(trx, name);
  const old = table.isPartlyTimed ? `${name}_default` : `${name}_before_${dateOf(boundary)}`;
  const indexes = await sharedIndexes(trx, table);
  const grants = await grantsOf(trx, name);

  await trx.raw("alter table ?? rename to ??", [name, old]);
  for (const index of indexes)
    await trx.raw("alter index ?? rename to ??", [index.name, `${index.name}_old`]);
  await trx.raw(`create table ?? (like ?? including all excluding indexes) partition by range (??)`, [
    name,
    old,
    table.key,
  ]);
  await trx.raw("alter table ?? drop constraint ??", [name, limitOf(table)]);
  // With the same indexes, those of the old table are attached, not created.
  for (const index of indexes) {
    if (index.constraint)
      await trx.raw(`alter table ?? add constraint ?? ${index.constraint}`, [name, index.name]);
    else await trx.raw(index.definition);
  }
  for (const grant of grants) await trx.raw(grant);

  if (table.isPartlyTimed) {
    await trx.raw("alter table ?? attach partition ?? default", [name, old]);
  } else {
    await trx.raw(
      `alter table ?? attach partition ?? for values from (minvalue) to (${literalOf(table.keyAt(boundary))})`,
      [name, old],
    );
    await createPart(trx, table, `${name}_default`);
    await trx.raw("alter table ?? attach partition ?? default", [name, `${name}_default`]);
  }
  await createPartition(trx, table, boundary);
  await trx.raw("alter table ?? drop constraint ??", [old, limitOf(table)]);
  await trx.raw(`comment on table ?? is '${markOf(table.unit)}'`, [name]);
}

/** Creates the new tables as the owner of the old one, also if a superuser runs the command. */
async function becomeOwner(trx: Knex.Transaction, name: string): Promise<void> {
  const { rows } = await trx.raw(
    "select pg_get_userbyid(relowner) as owner from pg_class where oid = to_regclass(?)",
    [name],
  );
  await trx.raw("set local role ??", [rows[0].owner]);
}

/** Lists the indexes that the partitioned table has as well: all but the unique index that each partition has for itself. */
async function sharedIndexes(trx: Knex.Transaction, { name, ownIndex }: PartitionedTable): Promise<Index[]> {
  const { rows } = await trx.raw(
    `select c.relname as name, pg_get_indexdef(i.indexrelid) as definition, pg_get_constraintdef(k.oid) as "constraint"
    from pg_index i join pg_class c on c.oid = i.indexrelid
      left join pg_constraint k on k.conindid = i.indexrelid and k.contype in ('p', 'u')
    where i.indrelid = to_regclass(?) order by c.relname`,
    [name],
  );
  return rows.filter((index: Index) => index.name !== `${name}_${ownIndex?.suffix}`);
}

/** Returns the statements that grant what other roles may do with a table. */
async function grantsOf(trx: Knex.Transaction, name: string): Promise<string[]> {
  const { rows } = await trx.raw(
    `select format('grant %s on table %s to %s%s', a.privilege_type, c.relname,
      case a.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end,
      case when a.is_grantable then ' with grant option' else '' end) as statement
    from pg_class c, aclexplode(c.relacl) a where c.oid = to_regclass(?) and a.grantee <> c.relowner`,
    [name],
  );
  return rows.map((row: { statement: string }) => row.statement);
}
