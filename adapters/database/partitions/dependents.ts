import type { Knex } from "knex";
import type { PartitionedTable } from "./tables.ts";

const DEPENDENTS = `select * from (
    select 'the view ' || v.relname as name from pg_depend d
      join pg_rewrite r on d.classid = 'pg_rewrite'::regclass and r.oid = d.objid
      join pg_class v on v.oid = r.ev_class, given where d.refobjid = given.oid
    union select 'the trigger ' || tgname from pg_trigger, given where tgrelid = given.oid and not tgisinternal
    union select 'the policy ' || polname from pg_policy, given where polrelid = given.oid
    union select 'the foreign key ' || conname from pg_constraint, given
      where contype = 'f' and given.oid in (conrelid, confrelid)
    union select 'the publication ' || p.pubname from pg_publication_rel r
      join pg_publication p on p.oid = r.prpubid, given where r.prrelid = given.oid
    union select 'the invalid index ' || c.relname from pg_index i
      join pg_class c on c.oid = i.indexrelid, given where i.indrelid = given.oid and not i.indisvalid
  ) as dependents order by name`;

/** Lists what an operator has added to a table and what would stay with the old one. linkgate adds nothing of the kind. */
export async function findDependents(knex: Knex, { name }: PartitionedTable): Promise<string[]> {
  const { rows } = await knex.raw(`with given as (select to_regclass(?)::oid as oid) ${DEPENDENTS}`, [name]);
  return rows.map((row: { name: string }) => row.name);
}
