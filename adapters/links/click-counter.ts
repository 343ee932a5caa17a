import type { Knex } from "knex";
import type { By } from "../resources/events.ts";
import type { Click, Destination } from "../resources/ports.ts";
import type { Database } from "./database.ts";
import { holdsText } from "./engine.ts";
import { addDeliveries, eventRow, type Journal } from "./journal.ts";
import { createRounds } from "./rounds.ts";
import { persistently } from "./unavailable.ts";

/** Counts clicks beside the redirects that cause them. */
export type ClickCounter = {
  /** Counts one. It is stored a moment later with all others; a crash loses at most what was counted in that moment. */
  count(destination: Destination, click: Click): void;
  /** As `count`, for one that is counted already: webhooks are to be told of it, too. */
  tell(destination: Destination, click: Click): void;
  /** Resolves when what was counted so far is stored, or could not be: the database is away, as a read will find. */
  settled(): Promise<void>;
  /** Resolves when nothing is left to store, however often that has to be tried. */
  drained(): Promise<void>;
};

// What a crash may lose, and how long another process may not see a click.
const GATHER_MS = 100;
// So many links, or events, go in one statement.
const MAX_ROWS = 500;
// So many clicks of a round can be told, a hundred thousand a second: memory has an end where storing fails for long.
const MAX_TOLD = 10_000;
const VISITOR: By = { actor: "system" };

type Told = { destination: Destination; click: Click; isCounted: boolean };
type Round = { counts: Map<string, number>; latest: number; told: Told[] };

/** Makes the counter of one process. */
export function createClickCounter(database: Database, journal: Journal): ClickCounter {
  const { knex, engine, transaction } = database;
  const rounds = createRounds<Round>({ gatherMs: GATHER_MS, empty, store, carry });

  function note(told: Told) {
    const round = rounds.next();
    const { destination, click, isCounted } = told;
    if (!isCounted) add(round.counts, destination.id, 1);
    round.latest = Math.max(round.latest, click.at);
    if (round.told.length < MAX_TOLD) round.told.push(told);
  }

  /** Those that somebody is told of, with their events; then the others. */
  async function store(round: Round) {
    const listening = await findListening(round.told);
    round.told = round.told.filter(({ destination }) => listening.has(destination.organizationId));
    while (round.told.length > 0) await storeTold(round);
    await storeCounts(round);
  }

  /** The organizations of these clicks with a webhook that asked for them. */
  async function findListening(told: Told[]): Promise<Set<string>> {
    const organizations = [...new Set(told.map(({ destination }) => destination.organizationId))];
    if (organizations.length === 0) return new Set();
    const listening = await knex("webhooks")
      .whereIn("organization_id", organizations)
      .where({ enabled: true })
      .whereRaw(holdsText(engine), ["events", "link.clicked"])
      .pluck("organization_id");
    return new Set(listening);
  }

  /** An event is there with its click, or neither is. */
  async function storeTold(round: Round) {
    const some = round.told.slice(0, MAX_ROWS);
    const counts = new Map<string, number>();
    for (const { destination, isCounted } of some) if (!isCounted) add(counts, destination.id, 1);
    const events = some.map(toEvent);
    const ids = events.map(({ id }) => id);
    await transaction(async (trx) => {
      for (const [clicks, links] of byCount(counts)) await addClicks(trx, links, clicks, round.latest);
      await trx("events").insert(events);
      await addDeliveries(trx, engine, ids);
    });
    journal.announce();
    round.told = round.told.slice(MAX_ROWS);
    for (const [id, clicks] of counts) add(round.counts, id, -clicks);
  }

  /** Links with the same number of clicks share a statement: most have one. Each group is stored once, or not at all. */
  async function storeCounts({ counts, latest }: Round) {
    for (const [clicks, ids] of byCount(counts)) {
      for (let start = 0; start < ids.length; start += MAX_ROWS) {
        const some = ids.slice(start, start + MAX_ROWS);
        await persistently(() => addClicks(knex, some, clicks, latest), false);
        for (const id of some) counts.delete(id);
      }
    }
  }

  return {
    count: (destination, click) => note({ destination, click, isCounted: false }),
    tell: (destination, click) => note({ destination, click, isCounted: true }),
    settled: rounds.settled,
    drained: rounds.drained,
  };
}

async function addClicks(q: Knex, ids: string[], clicks: number, at: number): Promise<void> {
  const counted = { clicks: q.raw("clicks + ?", [clicks]), last_clicked_at: at };
  await q("links").whereIn("id", ids).update(counted);
}

function toEvent({ destination, click }: Told) {
  const { id, organizationId, slug, url } = destination;
  const { at, referrer, country, bot } = click;
  const clicked_at = new Date(at).toISOString();
  const data = { link_id: id, slug, url, clicked_at, referrer, country, bot };
  return eventRow(VISITOR, { organizationId, type: "link.clicked", subject: id, data });
}

function empty(): Round {
  return { counts: new Map(), latest: 0, told: [] };
}

function carry(left: Round, next: Round): void {
  for (const [id, clicks] of left.counts) add(next.counts, id, clicks);
  next.latest = Math.max(next.latest, left.latest);
  next.told = [...left.told, ...next.told].slice(0, MAX_TOLD);
}

function add(counts: Map<string, number>, id: string, clicks: number): void {
  const sum = (counts.get(id) ?? 0) + clicks;
  if (sum === 0) counts.delete(id);
  else counts.set(id, sum);
}

function byCount(counts: Map<string, number>): Map<number, string[]> {
  const groups = new Map<number, string[]>();
  // In one order everywhere, so that two processes do not wait for one another's rows.
  for (const id of [...counts.keys()].sort()) {
    const clicks = counts.get(id) as number;
    const group = groups.get(clicks);
    if (group) group.push(id);
    else groups.set(clicks, [id]);
  }
  return groups;
}
