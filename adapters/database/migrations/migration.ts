import type { Knex } from "knex";
import type { Engine } from "../engine.ts";

/**
 * One change of the schema. PostgreSQL and MariaDB commit each of its statements, so it has to complete what a process that
 * died began. A released migration never changes: add another one instead.
 */
export type Migration = {
  name: string;
  /**
   * The last migration of the oldest version that works on the resulting schema. For a migration that only adds tables,
   * indexes, and columns that may be omitted, the last migration of any earlier version. Null if no earlier version works.
   * It is recorded in the database, so that earlier versions know whether they can use it.
   */
  oldestCompatible: string | null;
  up(knex: Knex, engine: Engine): Promise<void>;
};
