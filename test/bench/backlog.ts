import knexFactory from "knex";
import pLimit from "p-limit";
import { knexConfig } from "../../adapters/database/engine.ts";
import { openStorage, type Storage } from "../../adapters/index.ts";
import { OPERATOR } from "../../resources/events/types.ts";
import { LINK_DEFAULTS } from "../../resources/links/types.ts";
import { newWebhookSecret } from "../../resources/webhooks/signature.ts";
import { markVerified } from "../harness/webhooks.ts";
import { KEY, seed } from "./ours.ts";
import type { Seeded } from "./seed.ts";

// Longer than the spreading and the start of a server take.
const SPREAD_AFTER_MS = 8000;

/** Pending deliveries of a database. */
export type Backlog = {
  url: string;
  organizations: number;
  /** Per organization. */
  webhooks: number;
  /** Per organization. */
  events: number;
  /** The origins of the endpoints. */
  origins: string[];
  /** How many become due per second; by default, all are due. */
  perSecond?: number;
};

/** Creates a database with pending deliveries of links that were created. */
export async function seedDeliveries(backlog: Backlog): Promise<Seeded> {
  const seeded = await seed(backlog.url);
  const storage = openStorage(backlog.url, Buffer.from(KEY, "base64url"));
  try {
    const owners = await atMost(8, backlog.organizations, (index) => createWebhooks(storage, index, backlog));
    await verifyAll(backlog.url);
    await atMost(8, owners.length, (index) => createLinks(storage, owners, index, backlog.events));
  } finally {
    await storage.close();
  }
  if (backlog.perSecond) await spread(backlog.url, 1000 / backlog.perSecond);
  return seeded;
}

/** Makes deliveries due one after the other. */
async function spread(url: string, intervalMs: number) {
  const knex = knexFactory(knexConfig(url));
  try {
    const keys = await knex("deliveries")
      .orderBy(["event_id", "webhook_id"])
      .select("event_id", "webhook_id");
    await knex.transaction(async (trx) => {
      const start = Date.now() + SPREAD_AFTER_MS;
      for (const [index, key] of keys.entries())
        await trx("deliveries")
          .where(key)
          .update({ due_at: start + index * intervalMs });
    });
  } finally {
    await knex.destroy();
  }
}

async function createWebhooks(storage: Storage, index: number, { webhooks, origins }: Backlog) {
  const { organization } = await storage.organizations.create(`Deliveries ${index}`, "premium", OPERATOR);
  for (let number = 0; number < webhooks; number++) {
    const fields = {
      url: `${origins[index % origins.length]}/${index}/${number}`,
      events: ["link.created" as const],
      enabled: true,
    };
    await storage.webhooks.create(organization.id, OPERATOR, fields, newWebhookSecret());
  }
  return organization;
}

/** Marks all webhooks as verified, because no process delivers test events. */
async function verifyAll(url: string) {
  const knex = knexFactory(knexConfig(url));
  try {
    await markVerified({ knex }, await knex("webhooks").pluck("id"));
  } finally {
    await knex.destroy();
  }
}

function createLinks(storage: Storage, owners: { id: string }[], index: number, count: number) {
  return atMost(16, count, (event) =>
    storage.links.create(owners[index]?.id as string, OPERATOR, {
      slug: `backlog-${index}-${event}`,
      url: "https://example.com/some/page?of=the&bench=1",
      ...LINK_DEFAULTS,
    }),
  );
}

/** Runs `work` for each index, at most `concurrency` at a time. */
async function atMost<T>(concurrency: number, count: number, work: (index: number) => Promise<T>) {
  const limit = pLimit(concurrency);
  return Promise.all(Array.from({ length: count }, (_, index) => limit(() => work(index))));
}
