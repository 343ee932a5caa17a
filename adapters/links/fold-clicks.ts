import { setTimeout as sleep } from "node:timers/promises";
import type { Plan } from "../../resources/plans.ts";
import type { Database } from "../database/index.ts";
import type { ClickCountRow, ClickDetailRow } from "../database/tables/links.ts";
import type { OrganizationRow } from "../database/tables/organizations.ts";
import { NAMED } from "./click-analytics.ts";
import { ALL_LINKS, DETAIL_DAYS, READ_MS } from "./click-details.ts";
import { addStatisticsSql } from "./click-upserts.ts";

/** For how many days the statistics of each plan have hours, and where clicks come from. */
export type ClickDetailDays = Record<Plan, number>;

const DAY_MS = 24 * 60 * 60 * 1000;
const ORGANIZATIONS = 100;
// A popular link has a few hundred rows a day.
const LINKS = 20;
const PAUSE_MS = 10;

type Dimension = ClickCountRow["dimension"];
const BY_HOUR: Dimension[] = ["clicks", "bots"];
const ORIGINS: Dimension[] = ["agent", ...NAMED];

type Folded = { table: "click_counts" | "click_sources" | "click_details"; rows: number };
/** How old statistics of a table are found, and how a batch of them is replaced or deleted. */
type Folding = {
  table: Folded["table"];
  findDay(organizationId: string, before: number): Promise<number | undefined>;
  fold(organizationId: string, day: number, links: string[]): Promise<number>;
};

/**
 * Creates what replaces old statistics by one count per link and day: the rows by hour become one without a name, and those
 * by origin, or by several, are deleted. The rows of all links come last, so a day that has them isn't finished.
 */
export function createClickFolding(database: Database, detailDays?: ClickDetailDays) {
  const { knex, engine, transaction, readAside } = database;
  let foldedOn = 0;

  const countsOf = (organization_id: string) =>
    knex("click_counts").where({ organization_id, link_id: ALL_LINKS });

  async function findDay(organizationId: string, before: number): Promise<number | undefined> {
    const byHour = countsOf(organizationId).whereIn("dimension", BY_HOUR).whereNot("name", "");
    const [row] = await byHour.where("day", "<", before).min({ day: "day" });
    return row?.day ?? undefined;
  }

  /** Resolves to the number of deleted rows. */
  function fold(organization_id: string, day: number, links: string[]): Promise<number> {
    return transaction(
      async (trx) => {
        const rows = () => trx("click_counts").where({ organization_id, day }).whereIn("link_id", links);
        const byHour = () => rows().whereIn("dimension", BY_HOUR).whereNot("name", "");
        const sums: Pick<ClickCountRow, "link_id" | "dimension" | "clicks">[] = await byHour()
          .groupBy("link_id", "dimension")
          .select("link_id", "dimension")
          .sum({ clicks: "clicks" });
        const deleted = (await byHour().delete()) + (await rows().whereIn("dimension", ORIGINS).delete());
        const ofDay = { organization_id, day, name: "" };
        const folded = sums.map((sum) => ({ ...ofDay, ...sum, clicks: Number(sum.clicks) }));
        if (folded.length > 0) await trx.raw(addStatisticsSql(engine), { rows: JSON.stringify(folded) });
        return deleted;
      },
      { isDurable: false },
    );
  }

  const detailsOf = (organization_id: string) => knex("click_details").where({ organization_id });

  async function findDetails(organizationId: string, before: number): Promise<number | undefined> {
    const older = detailsOf(organizationId).where({ link_id: ALL_LINKS }).where("day", "<", before);
    const [row] = await readAside<{ day: number | null }>(older.min({ day: "day" }), READ_MS);
    return row?.day ?? undefined;
  }

  /** The rows of a day are spread among those of their link, so the transaction only deletes what was read before it. */
  async function deleteDetails(organization_id: string, day: number, links: string[]): Promise<number> {
    const query = detailsOf(organization_id)
      .where({ day })
      .whereIn("link_id", links)
      .select("link_id", "source");
    const rows = await readAside<Pick<ClickDetailRow, "link_id" | "source">>(query, READ_MS);
    await transaction(
      async (trx) => {
        for (const [link_id, own] of Map.groupBy(rows, (row) => row.link_id)) {
          const sources = own.map(({ source }) => source);
          await trx("click_details")
            .where({ organization_id, link_id, day })
            .whereIn("source", sources)
            .delete();
        }
      },
      { isDurable: false },
    );
    return rows.length;
  }

  const counts: Folding = { table: "click_counts", findDay, fold };
  const details: Folding = { table: "click_details", findDay: findDetails, fold: deleteDetails };

  async function* foldDays(
    organizationId: string,
    before: number,
    { table, findDay, fold }: Folding,
  ): AsyncGenerator<Folded> {
    for (let day = await findDay(organizationId, before); day; day = await findDay(organizationId, before)) {
      const clicked = countsOf(organizationId).where({ dimension: "link", day }).orderBy("name").limit(LINKS);
      for (let links = [ALL_LINKS]; links.length > 0; await sleep(PAUSE_MS)) {
        links = await clicked
          .clone()
          .where("name", ">", links.at(-1) as string)
          .pluck("name");
        const rows = await fold(organizationId, day, links.length > 0 ? links : [ALL_LINKS]);
        yield { table, rows };
      }
    }
  }

  /** Yields the number of rows that each batch deleted. Runs once a day; after an interruption, the next call continues. */
  return async function* foldClicks(): AsyncGenerator<Folded> {
    const today = Math.floor(Date.now() / DAY_MS);
    if (!detailDays || foldedOn === today) return;
    const all = knex("organizations").orderBy("id").limit(ORGANIZATIONS).select("id", "plan");
    for (let last: string | undefined = ""; last !== undefined; yield { table: "click_counts", rows: 0 }) {
      const organizations: Pick<OrganizationRow, "id" | "plan">[] = await all.clone().where("id", ">", last);
      for (const { id, plan } of organizations) {
        yield* foldDays(id, today - detailDays[plan], counts);
        const before = today - Math.min(detailDays[plan], DETAIL_DAYS);
        yield* foldDays(id, before, details);
        const unused = knex("click_sources").where({ organization_id: id }).where("day", "<", before);
        yield { table: "click_sources", rows: await unused.delete() };
      }
      last = organizations.at(-1)?.id;
    }
    foldedOn = today;
  };
}
