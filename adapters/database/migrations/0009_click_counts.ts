import type { Knex } from "knex";
import type { Engine } from "../engine.ts";
import { createOnce, createTable, HOST, ID, type Migration } from "./migration.ts";

export const clickCounts: Migration = {
  name: "0009_click_counts",
  changes:
    "Counts people and known bots apart everywhere, and clicks by hour, device, browser and operating system.",
  rewrites: () => ["click_stats"],
  // A version before would count bots as people.
  oldestCompatible: null,
  async up(knex, engine) {
    await createClickCounts(knex, engine);
    if (!(await knex.schema.hasColumn("links", "bot_clicks")))
      await knex.schema.alterTable("links", (table) => {
        table.bigInteger("bot_clicks").notNullable().defaultTo(0);
      });
    // Its rows are in the new table once it is dropped.
    if (await knex.schema.hasTable("click_stats")) {
      await separateBots(knex, engine);
      await copyStatistics(knex);
      await knex.schema.dropTableIfExists("click_totals");
      await knex.schema.dropTable("click_stats");
    }
  },
};

const DIMENSION = 8;

async function createClickCounts(knex: Knex, engine: Engine) {
  if (engine === "sqlite") {
    // Without an index beside the rows, a range of days is read in one place.
    await createOnce(
      knex,
      `create table click_counts (organization_id varchar(${ID}) not null, link_id varchar(${ID}) not null,
        dimension varchar(${DIMENSION}) not null, day integer not null, name varchar(${HOST}) not null,
        clicks bigint not null, primary key (organization_id, link_id, dimension, day, name)) without rowid`,
    );
    return;
  }
  await createTable(knex, engine, "click_counts", (table, key) => {
    key("organization_id", ID).notNullable();
    key("link_id", ID).notNullable(); // empty for the sum of all links
    key("dimension", DIMENSION).notNullable();
    table.integer("day").notNullable(); // days since January 1, 1970, UTC
    key("name", HOST).notNullable(); // empty if it is unknown
    table.bigInteger("clicks").notNullable();
    table.primary(["organization_id", "link_id", "dimension", "day", "name"]);
  });
}

/** Of each link's clicks, those that the statistics know as a bot's. A repetition skips links that are done. */
async function separateBots(knex: Knex, engine: Engine) {
  const least = engine === "sqlite" ? "min" : "least";
  const bots = `(select l.id, ${least}(l.clicks, sum(s.clicks)) as clicks from links as l
    join click_stats as s on s.link_id = l.id where s.bot and l.bot_clicks = 0 group by l.id, l.clicks) as bots`;
  await knex.raw(
    engine === "mysql"
      ? `update links join ${bots} on bots.id = links.id
          set links.clicks = links.clicks - bots.clicks, links.bot_clicks = bots.clicks`
      : `update links set clicks = links.clicks - bots.clicks, bot_clicks = bots.clicks
          from ${bots} where bots.id = links.id`,
  );
}

/** The statistics had no hours and no user agents, so these are unknown. */
async function copyStatistics(knex: Knex) {
  const sums: [link: string, dimension: string, name: string, isBot: boolean][] = [];
  for (const link of ["link_id", "''"])
    sums.push(
      [link, "clicks", "''", false],
      [link, "bots", "''", true],
      [link, "referrer", "referrer", false],
      [link, "country", "country", false],
      [link, "agent", "''", false],
    );
  sums.push(["''", "link", "link_id", false]);
  await knex("click_counts").delete();
  for (const [link, dimension, name, isBot] of sums)
    await knex.raw(
      `insert into click_counts (organization_id, link_id, dimension, day, name, clicks)
        select organization_id, link, '${dimension}', day, counted, sum(clicks)
        from (select organization_id, ${link} as link, day, ${name} as counted, clicks from click_stats
          where ${isBot ? "bot" : "not bot"}) as stats group by organization_id, link, day, counted`,
    );
}
