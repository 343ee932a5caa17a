import type { Knex } from "knex";
import type { Engine } from "./engine.ts";

const NOW: Record<Engine, string> = {
  sqlite: "unixepoch('subsec')",
  postgres: "extract(epoch from clock_timestamp())::float8",
  mysql: "unix_timestamp(sysdate(3))",
};

/** Returns the time by the clock of the database server, in milliseconds since 1970. */
export async function readClock({ knex, engine }: { knex: Knex; engine: Engine }): Promise<number> {
  const [row] = await knex.select({ now: knex.raw(NOW[engine]) });
  return Number(row.now) * 1000;
}
