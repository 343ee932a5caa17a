import { type Engine, rowsOf } from "../database/engine.ts";
import type { Database } from "../database/index.ts";
import { COPY_PROGRESS } from "../database/migrations/index.ts";

export type Table = {
  name: string;
  /** Sorted, because engines and upgraded databases order them differently. */
  columns: string[];
  key: string[];
  references: string[];
};

type Column = { table: string; name: string; keyPosition: number | null };
type Reference = { table: string; target: string };

/** The migrations of a database and the version of its links. They describe one database and aren't copied. */
const OF_THIS_DATABASE = ["knex_migrations", "knex_migrations_lock", "schema_compatibility", "link_changes"];

const COLUMNS: Record<Engine, string> = {
  sqlite: `select t.name as "table", c.name as "name", nullif(c.pk, 0) as "keyPosition"
    from sqlite_schema t join pragma_table_xinfo(t.name) c
    where t.type = 'table' and t.name not like 'sqlite%' and c.hidden = 0`,
  // Partitions are read through their table.
  postgres: `select t.relname as "table", c.attname as "name",
      array_position(k.indkey::int2[], c.attnum) as "keyPosition"
    from pg_class t
      join pg_attribute c on c.attrelid = t.oid and c.attnum > 0 and not c.attisdropped and c.attgenerated = ''
      left join pg_index k on k.indrelid = t.oid and k.indisprimary
    where t.relnamespace = current_schema()::regnamespace and t.relkind in ('r', 'p') and not t.relispartition`,
  mysql: `select c.table_name as "table", c.column_name as "name", k.seq_in_index as "keyPosition"
    from information_schema.columns c
      join information_schema.tables t using (table_schema, table_name)
      left join information_schema.statistics k
        on k.table_schema = c.table_schema and k.table_name = c.table_name
        and k.column_name = c.column_name and k.index_name = 'PRIMARY'
    where c.table_schema = database() and t.table_type = 'BASE TABLE' and c.extra not like '%GENERATED%'`,
};

const REFERENCES: Record<Engine, string> = {
  sqlite: `select t.name as "table", f."table" as "target"
    from sqlite_schema t join pragma_foreign_key_list(t.name) f where t.type = 'table'`,
  postgres: `select t.relname as "table", r.relname as "target"
    from pg_constraint f join pg_class t on t.oid = f.conrelid join pg_class r on r.oid = f.confrelid
    where f.contype = 'f' and f.connamespace = current_schema()::regnamespace`,
  mysql: `select table_name as "table", referenced_table_name as "target"
    from information_schema.key_column_usage
    where table_schema = database() and referenced_table_name is not null`,
};

/** Lists the tables of a database, each after those that it refers to. @throws Error if one has no primary key */
export async function tablesOf({ knex, engine }: Pick<Database, "knex" | "engine">): Promise<Table[]> {
  const columns = await columnsOf({ knex, engine });
  const references = rowsOf<Reference>(await knex.raw(REFERENCES[engine]));
  const byTable = Map.groupBy(columns, ({ table }) => table);
  const tables = [...byTable].map(([name, own]) => ({
    name,
    columns: own.map((column) => column.name).sort(),
    key: keyOf(name, own),
    references: references.filter(({ table }) => table === name).map(({ target }) => target),
  }));
  return parentsFirst(tables.sort((one, other) => (one.name < other.name ? -1 : 1)));
}

export async function namesOf(database: Pick<Database, "knex" | "engine">): Promise<string[]> {
  return [...new Set((await columnsOf(database)).map(({ table }) => table))];
}

async function columnsOf({ knex, engine }: Pick<Database, "knex" | "engine">): Promise<Column[]> {
  const columns = rowsOf<Column>(await knex.raw(COLUMNS[engine]));
  return columns.filter(({ table }) => table !== COPY_PROGRESS && !OF_THIS_DATABASE.includes(table));
}

function keyOf(table: string, columns: Column[]): string[] {
  const key = columns
    .filter(({ keyPosition }) => keyPosition !== null)
    .sort((one, other) => (one.keyPosition as number) - (other.keyPosition as number));
  if (key.length === 0) throw new Error(`table ${table} has no primary key`);
  return key.map(({ name }) => name);
}

function parentsFirst(tables: Table[]): Table[] {
  const ordered: Table[] = [];
  let waiting = tables;
  while (waiting.length > 0) {
    const names = new Set(waiting.map(({ name }) => name));
    const isReady = ({ references }: Table) => references.every((parent) => !names.has(parent));
    const ready = waiting.filter(isReady);
    if (ready.length === 0) throw new Error(`tables refer to each other: ${[...names].join(", ")}`);
    ordered.push(...ready);
    waiting = waiting.filter((table) => !ready.includes(table));
  }
  return ordered;
}
