import { setTimeout as sleep } from "node:timers/promises";
import type { Plan } from "../../resources/plans.ts";
import type { Database } from "../database/index.ts";
import type { ClickCountRow } from "../database/tables/links.ts";
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
  let lastOrganization = "";

  const countsOf = (organization_id: string, link_id: string) =>
    knex("click_counts").where({ organization_id, link_id });

  async function findDay(organizationId: string, before: number): Promise<number | undefined> {
    const byHour = countsOf(organizationId, ALL_LINKS)
      .whereIn("dimension", BY_HOUR)
      .where("day", "<", before);
    const [row] = await byHour.whereNot("name", "").min({ day: "day" });
    return row?.day ?? undefined;
  }

  /** Resolves to the number of deleted rows. */
  function fold(organization_id: string, links: string[], day: number): Promise<number> {
    return transaction(
      async (trx) => {
        const rows = () => trx("click_counts").where({ organization_id, day }).whereIn("link_id", links);
        const byHour = () => rows().whereIn("dimension", BY_HOUR).whereNot("name", "");
        const sums: Pick<ClickCountRow, "link_id" | "dimension" | "clicks">[] = await byHour()
          .groupBy("link_id", "dimension")
          .select("link_id", "dimension")
          .sum({ clicks: "clicks" });
        const deleted = (await byHour().delete()) + (await rows().whereIn("dimension", ORIGINS).delete());
        const folded = sums.map((sum) => ({
          organization_id,
          day,
          name: "",
          ...sum,
          clicks: Number(sum.clicks),
        }));
        if (folded.length > 0) await trx.raw(addStatisticsSql(engine), { rows: JSON.stringify(folded) });
        return deleted;
      },
      { isDurable: false },
    );
  }

  async function* foldDays(organizationId: string, before: number): AsyncGenerator<number> {
    for (let day = await findDay(organizationId, before); day; day = await findDay(organizationId, before)) {
      const clicked = countsOf(organizationId, ALL_LINKS).where({ dimension: "link", day });
      for (let links = [""]; links.length > 0; ) {
        const next = clicked.clone().where("name", ">", links.at(-1) as string);
        links = await next.orderBy("name").limit(LINKS).pluck("name");
        if (links.length > 0) yield await fold(organizationId, links, day);
      }
      yield await fold(organizationId, [ALL_LINKS], day);
    }
  }

  /** Resolves to the number of deleted rows, and to whether no other day is due. */
  return async (mayContinue: () => Promise<boolean>): Promise<{ deleted: number; isDone: boolean }> => {
    const today = Math.floor(Date.now() / DAY_MS);
    let deleted = 0;
    while (detailDays && foldedOn < today) {
      const next = knex("organizations")
        .where("id", ">", lastOrganization)
        .orderBy("id")
        .limit(ORGANIZATIONS);
      const organizations = await next.select("id", "plan");
      for (const { id, plan } of organizations) {
        for await (const rows of foldDays(id, today - detailDays[plan])) {
          deleted += rows;
          if (!(await mayContinue())) return { deleted, isDone: false };
          await sleep(PAUSE_MS);
        }
        lastOrganization = id;
      }
      if (organizations.length < ORGANIZATIONS) {
        foldedOn = today;
        lastOrganization = "";
      }
    }
    return { deleted, isDone: true };
  };
}
