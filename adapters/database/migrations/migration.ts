import type { Knex } from "knex";
import type { Engine } from "../engine.ts";

/** One step of the schema. It never changes once it has been released; a later step follows it. */
export type Migration = { name: string; up(knex: Knex, engine: Engine): Promise<void> };
