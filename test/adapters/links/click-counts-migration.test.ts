import test from "ava";
import type { Engine } from "../../../adapters/database/engine.ts";
import { clickCounts } from "../../../adapters/database/migrations/0009_click_counts.ts";
import { MIGRATIONS, migrations } from "../../../adapters/database/migrations/index.ts";
import { createTestStorage } from "../../harness/database/storage.ts";
import { engine } from "../../harness/database/test-database.ts";

export const databases = "all";

const ORGANIZATION = "org_before";
const DAY = 20_000;

const link = (id: string, clicks: number) => ({
  id,
  organization_id: ORGANIZATION,
  slug: id,
  url: "https://example.com/",
  tags: "",
  searched: "",
  metadata: "{}",
  redirect_type: 302,
  clicks,
  created_by: "usr_before",
  created_at: 1,
  updated_at: 1,
});

const stat = (link_id: string, day: number, referrer: string, bot: boolean, clicks: number) => ({
  link_id,
  day,
  referrer,
  country: referrer && "CH",
  bot,
  organization_id: ORGANIZATION,
  clicks,
});

/** Creates the schema of the version before, with clicks. */
async function createBefore() {
  const storage = await createTestStorage({ migrated: false });
  const { knex } = storage.database;
  const before = MIGRATIONS.slice(0, MIGRATIONS.indexOf(clickCounts));
  const migrationSource = migrations(engine as Engine, before);
  await knex.migrate.latest({ migrationSource, disableTransactions: engine === "mysql" });
  // A crash may have lost statistics that the link has counted, and the other way round.
  await knex("links").insert([link("lnk_many", 12), link("lnk_bots", 3), link("lnk_none", 0)] as never);
  await knex("click_stats" as never).insert([
    stat("lnk_many", DAY, "a.example", false, 5),
    stat("lnk_many", DAY + 1, "a.example", false, 1),
    stat("lnk_many", DAY, "", false, 1),
    stat("lnk_many", DAY, "", true, 2),
    stat("lnk_many", DAY + 1, "b.example", true, 2),
    stat("lnk_bots", DAY, "", true, 4),
  ] as never);
  return { ...storage, knex };
}

test("clicks from before keep their sum, and those of known bots are counted apart", async (t) => {
  const { first, knex, close } = await createBefore();
  t.teardown(close);
  await first.migrate();
  const links = await knex("links").orderBy("id").select("id", "clicks", "bot_clicks");
  t.deepEqual(
    links.map(({ id, clicks, bot_clicks }) => [id, clicks, bot_clicks]),
    [
      ["lnk_bots", 0, 3],
      ["lnk_many", 8, 4],
      ["lnk_none", 0, 0],
    ],
  );
  const ofLink = await first.links.analytics(ORGANIZATION, "lnk_many", DAY, DAY + 1);
  t.deepEqual(
    ofLink.days.map(({ day, bot, clicks }) => [day - DAY, bot, clicks]).sort(),
    [
      [0, false, 6],
      [0, true, 2],
      [1, false, 1],
      [1, true, 2],
    ].sort(),
  );
  t.deepEqual(ofLink.referrers, [
    { name: "a.example", clicks: 6 },
    { name: null, clicks: 1 },
  ]);
  t.deepEqual(ofLink.devices, [{ name: null, clicks: 7 }]);
  t.deepEqual((await first.links.analytics(ORGANIZATION, "lnk_many", DAY, DAY)).hours, []);
  const ofAll = await first.links.analytics(ORGANIZATION, undefined, DAY, DAY);
  t.is(ofAll.days.find(({ bot }) => bot)?.clicks, 6);
  t.deepEqual(ofAll.countries, [
    { name: "CH", clicks: 5 },
    { name: null, clicks: 1 },
  ]);
  const top = await first.links.topLinks(ORGANIZATION, DAY, DAY + 1, 5);
  t.deepEqual(
    top.map(({ link, clicks }) => [link.id, clicks]),
    [["lnk_many", 7]],
  );
});

// On SQLite, migrations are one transaction.
if (engine !== "sqlite") {
  test("a migration that dies after any statement is completed by the next one, with the same counts", async (t) => {
    const [interrupted, complete] = [await createBefore(), await createBefore()];
    t.teardown(interrupted.close);
    t.teardown(complete.close);
    await clickCounts.up(complete.knex, engine as Engine);
    const { knex } = interrupted;
    let left = 0;
    knex.on("query-response", () => {
      if (left-- === 0) throw new Error("the process dies");
    });
    let deaths = 0;
    for (let isDone = false; !isDone && deaths < 60; ) {
      left = deaths;
      isDone = await clickCounts.up(knex, engine as Engine).then(
        () => true,
        () => false,
      );
      if (!isDone) deaths++;
    }
    t.true(deaths > 10 && deaths < 60, `${deaths} deaths`);
    left = Number.POSITIVE_INFINITY;
    const contentOf = async ({ knex }: typeof complete) => [
      await knex("links").orderBy("id").select("id", "clicks", "bot_clicks"),
      (await knex("click_counts").select()).map((row) => JSON.stringify(row)).sort(),
    ];
    t.deepEqual(await contentOf(interrupted), await contentOf(complete));
  });
}
