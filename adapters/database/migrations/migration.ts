import type { Knex } from "knex";
import type { Engine } from "../engine.ts";

/**
 * One change of the schema. PostgreSQL and MariaDB commit each of its statements, so it has to complete what a process that
 * died began. A released migration never changes: add another one instead.
 */
export type Migration = { name: string; up(knex: Knex, engine: Engine): Promise<void> };
