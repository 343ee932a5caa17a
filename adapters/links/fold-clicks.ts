import { setTimeout as sleep } from "node:timers/promises";
import type { Plan } from "../../resources/plans.ts";
import type { Database } from "../database/index.ts";
import type { ClickCountRow } from "../database/tables/links.ts";
import type { OrganizationRow } from "../database/tables/organizations.ts";
import { ALL_LINKS } from "./click-analytics.ts";
import { addStatisticsSql } from "./click-buffer.ts";

/** For how many days the statistics of each plan have hours, and where clicks come from. */
export type ClickDetailDays = Record<Plan, number>;

const DAY_MS = 24 * 60 * 60 * 1000;
const ORGANIZATIONS = 100;
// A popular link has a few hundred rows a day.
const LINKS = 20;
const PAUSE_MS = 10;

type Dimension = ClickCountRow["dimension"];
const BY_HOUR: Dimension[] = ["clicks", "bots"];
const ORIGINS: Dimension[] = ["referrer", "country", "agent", "destination"];

/**
 * Creates what replaces old statistics by one count per link and day: the rows by hour become one without a name, and those
 * by origin are deleted. The rows of all links come last, so a day that has them by hour isn't finished.
 */
export function createClickFolding({ knex, engine, transaction }: Database, detailDays?: ClickDetailDays) {
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

  async function* foldDays(organizationId: string, before: number): AsyncGenerator<number> {
    for (let day = await findDay(organizationId, before); day; day = await findDay(organizationId, before)) {
      const clicked = countsOf(organizationId).where({ dimension: "link", day }).orderBy("name").limit(LINKS);
      for (let links = [ALL_LINKS]; links.length > 0; await sleep(PAUSE_MS)) {
        links = await clicked
          .clone()
          .where("name", ">", links.at(-1) as string)
          .pluck("name");
        yield await fold(organizationId, day, links.length > 0 ? links : [ALL_LINKS]);
      }
    }
  }

  /** Yields the number of rows that each batch deleted. Runs once a day; after an interruption, the next call continues. */
  return async function* foldClicks(): AsyncGenerator<number> {
    const today = Math.floor(Date.now() / DAY_MS);
    if (!detailDays || foldedOn === today) return;
    const all = knex("organizations").orderBy("id").limit(ORGANIZATIONS).select("id", "plan");
    for (let last: string | undefined = ""; last !== undefined; yield 0) {
      const organizations: Pick<OrganizationRow, "id" | "plan">[] = await all.clone().where("id", ">", last);
      for (const { id, plan } of organizations) yield* foldDays(id, today - detailDays[plan]);
      last = organizations.at(-1)?.id;
    }
    foldedOn = today;
  };
}
