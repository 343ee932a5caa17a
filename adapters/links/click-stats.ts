import type { Analytics, Click, Destination } from "../resources/ports.ts";
import type { Database } from "./database.ts";
import { incoming } from "./engine.ts";
import type { Row } from "./inserter.ts";
import { createReferrerLimit } from "./referrers.ts";
import { createRounds } from "./rounds.ts";
import { persistently } from "./unavailable.ts";

/** Keeps what clicks tell of where people come from, added up by day. */
export type ClickStats = {
  /** Adds one click; it is stored some seconds later, and a crash loses at most those seconds. */
  add(destination: Destination, click: Click): void;
  /** What is known of one link, or of all of an organization, from one day to another, both included. */
  read(organizationId: string, linkId: string | undefined, from: number, to: number): Promise<Analytics>;
  /** Resolves when nothing is left to store. */
  drained(): Promise<void>;
};

// What a crash may lose. Long enough for the clicks of one link to become one row.
const GATHER_MS = 2000;
// So many rows go in one statement.
const MAX_ROWS = 500;
// So many referrers and countries are shown, the most frequent ones.
const TOP = 20;
const DAY_MS = 24 * 60 * 60 * 1000;
const KEY = ["link_id", "day", "referrer", "country", "bot"];

type StatRow = {
  link_id: string;
  organization_id: string;
  day: number;
  referrer: string;
  country: string;
  bot: boolean | 0 | 1;
  clicks: number;
};
type Stat = { row: Row; clicks: number };
type Round = Map<string, Stat>;

/** Makes the statistics of one process. */
export function createClickStats({ knex, engine }: Database): ClickStats {
  const limit = createReferrerLimit();
  const rounds = createRounds<Round>({ gatherMs: GATHER_MS, empty: () => new Map(), store, carry });

  async function store(round: Round) {
    // In one order everywhere, so that two processes do not wait for one another's rows.
    const keys = [...round.keys()].sort();
    for (let start = 0; start < keys.length; start += MAX_ROWS) {
      const some = keys.slice(start, start + MAX_ROWS);
      const rows = some.map((key) => {
        const { row, clicks } = round.get(key) as Stat;
        return { ...row, clicks };
      });
      await persistently(
        async () =>
          void (await knex("click_stats")
            .insert(rows)
            .onConflict(KEY)
            .merge({ clicks: knex.raw(`click_stats.clicks + ${incoming(engine, "clicks")}`) })),
        false,
      );
      for (const key of some) round.delete(key);
    }
  }

  return {
    add({ id, organizationId }, { at, country, bot, ...click }) {
      const day = Math.floor(at / DAY_MS);
      const referrer = limit(id, day, click.referrer ?? "");
      const row = {
        link_id: id,
        day,
        referrer,
        country: country ?? "",
        bot,
        organization_id: organizationId,
      };
      addTo(rounds.next(), Object.values(row).join(" "), { row, clicks: 1 });
    },

    async read(organizationId, linkId, from, to) {
      await rounds.settled();
      const stats = () =>
        knex<StatRow>("click_stats")
          .where({ organization_id: organizationId, ...(linkId !== undefined && { link_id: linkId }) })
          .whereBetween("day", [from, to]);
      const top = async (column: "referrer" | "country") => {
        const shares = await stats()
          .where({ bot: false })
          .groupBy(column)
          .select(column)
          .sum({ clicks: "clicks" })
          .orderBy([{ column: "clicks", order: "desc" }, column])
          .limit(TOP);
        return shares.map((share) => ({ name: share[column] || null, clicks: Number(share.clicks) }));
      };
      const [days, referrers, countries] = await Promise.all([
        stats().groupBy("day", "bot").select("day", "bot").sum({ clicks: "clicks" }),
        top("referrer"),
        top("country"),
      ]);
      return { days: days.map(toDay), referrers, countries };
    },

    drained: rounds.drained,
  };
}

function carry(left: Round, next: Round): void {
  for (const [key, stat] of left) addTo(next, key, stat);
}

function addTo(round: Round, key: string, { row, clicks }: Stat): void {
  const known = round.get(key);
  if (known) known.clicks += clicks;
  else round.set(key, { row, clicks });
}

/** Sums are texts in PostgreSQL and MariaDB. */
function toDay({ day, bot, clicks }: Pick<StatRow, "day" | "bot"> & { clicks?: unknown }) {
  return { day, bot: Boolean(bot), clicks: Number(clicks) };
}
