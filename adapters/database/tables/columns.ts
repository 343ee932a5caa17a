import type { Knex } from "knex";
import type { Engine } from "../engine.ts";

/** Epoch milliseconds. Every engine returns a number: on PostgreSQL, `postgres.ts` parses it. */
export type Time = number;
/** A JSON document in a text column: serialized and parsed by the stores. */
export type Json = string;
/** A boolean column: PostgreSQL returns a boolean, the other engines 0 or 1. Every engine accepts a boolean. */
export type Flag = boolean | 0 | 1;

export const ID = 40;
/** The length of a SHA-256 hash in base64url. */
export const HASH = 43;
/** The length of a client ID, which may be the URL of a client metadata document. */
export const CLIENT_ID = 255;
/** The length of a referrer or a webhook's host: a hostname. */
export const HOST = 253;
/** The length of an IPv6 address in its longest text form. */
export const ADDRESS = 45;
/** The length of an email address (RFC 5321 §4.5.3.1.3: a path has 256 characters with its angle brackets). */
export const EMAIL = 254;

// Default collations ignore case, binary ones trailing spaces. MySQL and MariaDB each read the comment meant for it.
export const BYTE_BY_BYTE =
  "character set utf8mb4 collate /*M!100202 utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */";

type Facts = {
  define(table: Knex.CreateTableBuilder, name: string, engine: Engine): Knex.ColumnBuilder;
  isNullable?: boolean;
  isPrimary?: boolean;
  isUnique?: boolean;
  isIndexed?: boolean;
  default?: string | number | boolean;
  references?: string;
  deletedWithReferenced?: boolean;
  encryptedAs?: string;
};

/** A column, with the type of its values, and whether a new row may omit it. */
export class Column<Value, IsOptional extends boolean> {
  declare readonly value: Value;
  declare readonly isOptional: IsOptional;
  readonly facts: Facts;

  constructor(facts: Facts) {
    this.facts = facts;
  }

  /** Its values are of a narrower type. */
  as<Narrow extends Value>(): Column<Narrow, IsOptional> {
    return new Column(this.facts);
  }

  nullable(): Column<Value | null, true> {
    return new Column({ ...this.facts, isNullable: true });
  }

  default(value: string | number | boolean): Column<Value, true> {
    return new Column({ ...this.facts, default: value });
  }

  primary = () => this.#with({ isPrimary: true });
  unique = () => this.#with({ isUnique: true });
  indexed = () => this.#with({ isIndexed: true });
  /** The other column as `table.column`. */
  references = (column: string) => this.#with({ references: column });
  /** The row is deleted with the one that it references. */
  deletedWith = (column: string) => this.#with({ references: column, deletedWithReferenced: true });
  /** Its values are ciphertexts. The purpose keeps them apart from those of other columns. */
  encrypted = (purpose: string) => this.#with({ encryptedAs: purpose });

  #with(facts: Partial<Facts>): Column<Value, IsOptional> {
    return new Column({ ...this.facts, ...facts });
  }
}

function column<Value>(define: Facts["define"]): Column<Value, false> {
  return new Column({ define });
}

/** Text that is compared byte by byte. */
export const key = (length: number) =>
  column<string>((table, name, engine) =>
    engine === "mysql"
      ? table.specificType(name, `varchar(${length}) ${BYTE_BY_BYTE}`)
      : table.string(name, length),
  );
export const id = () => key(ID);
export const hash = () => key(HASH);
export const string = (length: number) => column<string>((table, name) => table.string(name, length));
export const text = () => column<string>((table, name) => table.text(name));
/** Text that MySQL compares byte by byte, and that no index contains. */
export const binaryText = () =>
  column<string>((table, name, engine) =>
    engine === "mysql" ? table.text(name).collate("utf8mb4_bin") : table.text(name),
  );
/** Text that may be longer than 64 KB, which MySQL's TEXT holds. The other engines have no limit. */
export const longText = () => column<string>((table, name) => table.text(name, "mediumtext"));
export const json = () => column<Json>((table, name) => table.text(name));
export const time = () => column<Time>((table, name) => table.bigInteger(name));
/** A number of up to 53 bits. */
export const count = () => column<number>((table, name) => table.bigInteger(name));
export const integer = () => column<number>((table, name) => table.integer(name));
export const smallint = () => column<number>((table, name) => table.smallint(name));
export const flag = () => column<Flag>((table, name) => table.boolean(name));

/** What a ciphertext is authenticated with: the purpose of its column, and the primary key of its row. */
export function contextOf({ facts }: Column<string | null, boolean>, ...primaryKey: string[]): string {
  return [facts.encryptedAs, ...primaryKey].join(" ");
}

type Columns = Record<string, Column<unknown, boolean>>;

type Options<Name> = {
  /** The columns of the primary key, if it has several. */
  primary?: readonly Name[];
  unique?: readonly (readonly Name[])[];
  indexes?: readonly (readonly Name[])[];
  /**
   * The columns that are read for a range of the primary key, in one place: on SQLite, rows are in its order, as always on
   * MariaDB; on PostgreSQL, its index includes these columns.
   */
  clustered?: readonly Name[];
  /** Rows are deleted some time after `expires_at`. */
  purged?: {
    /** Of the rows that expire, the ones that do so last are kept, up to this number. */
    max?: number;
    /** SQL without parameters, so that SQLite recognizes a partial index. */
    where?: string;
  };
};

export type Table = {
  name: string;
  columns: Columns;
  primaryKey: readonly string[];
  options: Options<string>;
};

type Declared<Name extends string, Of extends Columns> = Omit<Table, "columns"> & { name: Name; columns: Of };

/** Declares a table: what creates it, types its rows, encrypts its columns again and purges it. */
export function table<Name extends string, Of extends Columns>(
  name: Name,
  columns: Of,
  options: Options<keyof Of & string> = {},
): Declared<Name, Of> {
  const primaryKey = options.primary ?? Object.keys(columns).filter((name) => columns[name]?.facts.isPrimary);
  return { name, columns, primaryKey, options };
}

type ValueOf<Of> = Of extends Column<infer Value, boolean> ? Value : never;
type OptionalIn<Of extends Columns> = {
  [Name in keyof Of]: Of[Name] extends Column<unknown, infer IsOptional>
    ? true extends IsOptional
      ? Name
      : never
    : never;
}[keyof Of];

/** A row as the database returns it. */
export type RowOf<Of extends { columns: Columns }> = {
  [Name in keyof Of["columns"]]: ValueOf<Of["columns"][Name]>;
};
type NewRow<Row, Optional extends keyof Row> = Omit<Row, Optional> & Partial<Pick<Row, Optional>>;

/** What `knex("…")` reads, inserts and updates. */
export type KnexTable<Of extends { columns: Columns }> = Knex.CompositeTableType<
  RowOf<Of>,
  NewRow<RowOf<Of>, OptionalIn<Of["columns"]>>,
  { [Name in keyof RowOf<Of>]?: RowOf<Of>[Name] | Knex.Raw }
>;

/** Returns the statements that create a table and its indexes. */
export function creationOf(knex: Knex, engine: Engine, { name, columns, options }: Table): string[] {
  const statements = knex.schema.createTable(name, (table) => {
    for (const [name, { facts }] of Object.entries(columns)) {
      const column = facts.define(table, name, engine);
      if (facts.isPrimary) column.primary();
      else if (!facts.isNullable) column.notNullable();
      if (facts.default !== undefined) column.defaultTo(facts.default);
      if (facts.isUnique) column.unique();
      if (facts.isIndexed) column.index();
      if (facts.references) {
        const reference = column.references(facts.references);
        if (facts.deletedWithReferenced) reference.onDelete("CASCADE");
      }
    }
    if (options.primary) table.primary([...options.primary]);
    for (const names of options.unique ?? []) table.unique([...names]);
    for (const names of options.indexes ?? []) table.index([...names]);
  });
  const [create = "", ...indexes] = statements.toSQL().map(({ sql }) => sql);
  return [clusteredSql(engine, create, options.clustered), ...indexes];
}

function clusteredSql(engine: Engine, create: string, clustered?: readonly string[]): string {
  if (clustered && engine === "sqlite") return `${create} without rowid`;
  if (!clustered?.length || engine !== "postgres") return create;
  return create.replace(/\)$/, ` include (${clustered}))`); // the primary key is the last that Knex writes
}
