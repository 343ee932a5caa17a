import type { Knex } from "knex";
import { type Engine, rowsOf } from "./engine.ts";

/** The database can't store every text, so a title with an emoji would fail. */
export class UnsupportedEncoding extends Error {
  override readonly name = "UnsupportedEncoding";
}

/** Throws UnsupportedEncoding unless all texts of the database are stored as UTF-8. SQLite can do nothing else. */
export async function assertEncoding(knex: Knex, engine: Engine): Promise<void> {
  if (engine === "postgres") {
    const [row] = rowsOf<{ server_encoding: string }>(await knex.raw("show server_encoding"));
    if (row?.server_encoding !== "UTF8")
      throw new UnsupportedEncoding(
        `The database has the encoding ${row?.server_encoding}, which can't store every text. Use a database that was created with: create database linkgate encoding 'UTF8' template template0`,
      );
  }
  if (engine === "mysql") {
    // Migrations set the default of the database. Tables keep theirs, for example when another program restored them.
    const [column] = await knex("information_schema.columns")
      .whereRaw("table_schema = database() and character_set_name <> 'utf8mb4'")
      .orderBy(["table_name", "ordinal_position"])
      .limit(1)
      .select("table_name as table", "column_name as name", "character_set_name as encoding");
    if (column)
      throw new UnsupportedEncoding(
        `The column ${column.table}.${column.name} has the character set ${column.encoding}, which can't store every text. Convert the table to utf8mb4, or use an empty database.`,
      );
  }
}
