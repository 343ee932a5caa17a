import { createHash, randomBytes } from "node:crypto";
import { fileURLToPath } from "node:url";
import knexFactory from "knex";
import pLimit from "p-limit";
import { knexConfig } from "../../adapters/database/engine.ts";
import { openStorage, type Storage } from "../../adapters/index.ts";
import type { NewClient } from "../../adapters/oauth/clients.ts";
import manifest from "../../package.json" with { type: "json" };
import { OPERATOR } from "../../resources/events/types.ts";
import { LINK_DEFAULTS } from "../../resources/links/schema.ts";
import { limitsOf } from "../../resources/plans.ts";
import { newWebhookSecret } from "../../resources/webhooks/signature.ts";
import { markVerified } from "../harness/webhooks.ts";
import { type ServerProcess, startServer } from "./process.ts";

const MAIN = fileURLToPath(new URL("../../server/main.ts", import.meta.url));
// As in `npm start`: with a larger young generation, the garbage of requests is collected there.
const FLAGS = manifest.scripts.start.split(" ").filter((word) => word.startsWith("--max-"));
const KEY = randomBytes(32).toString("base64url");
export const RESOURCE_SERVER_SECRET = randomBytes(32).toString("base64url");
export const VERIFIER = randomBytes(32).toString("base64url");
const REDIRECT_URI = "https://app.example.com/callback";

// Longer than the spreading and the start of a server take.
const SPREAD_AFTER_MS = 8000;

/** A linkgate database with the data that the workloads need. */
export type Seeded = {
  url: string;
  organizationId: string;
  clients: NewClient[];
  codes: string[];
  slug: string;
};

/** Creates the database: organizations with a client each, one link to follow, authorization codes to exchange. */
export async function seed(
  url: string,
  { clients: count = 1, codes: codeCount = 0, port = 0 } = {},
): Promise<Seeded> {
  const storage = openStorage(url, Buffer.from(KEY, "base64url"));
  try {
    await storage.migrate();
    const clients: NewClient[] = [];
    let organizationId = "";
    for (let index = 0; index < count; index++) {
      const { organization, client } = await storage.organizations.create(
        `Bench ${index}`,
        "growth",
        OPERATOR,
      );
      organizationId ||= organization.id;
      clients.push(client as NewClient);
    }
    const slug = "bench";
    await storage.links.create(organizationId, OPERATOR, {
      slug,
      url: "https://example.com/bench",
      ...LINK_DEFAULTS,
    });
    await storage.clients.setRedirectUris(organizationId, [REDIRECT_URI], OPERATOR);
    const codes = codeCount
      ? await makeCodes(storage, organizationId, clients[0] as NewClient, codeCount, port)
      : [];
    return { url, organizationId, clients, codes, slug };
  } finally {
    await storage.close();
  }
}

/** Creates authorization codes as the consent page would. */
async function makeCodes(
  storage: Storage,
  organizationId: string,
  client: NewClient,
  count: number,
  port: number,
) {
  const user = await storage.accounts.create("bench", "", OPERATOR, { organizationId, role: "member" });
  const accountId = user?.id as string;
  const clientId = client.clientId;
  const now = Math.floor(Date.now() / 1000);
  const [codes, grants] = [storage.oidcAdapter("AuthorizationCode"), storage.oidcAdapter("Grant")];
  const resource = `http://localhost:${port}`;
  const made: string[] = [];
  for (let index = 0; index < count; index++) {
    const grantId = randomBytes(24).toString("base64url");
    const id = randomBytes(32).toString("base64url");
    const common = { iat: now, clientId, accountId };
    const lifetime = 3600; // longer than that of a real code, to last through the other rounds
    await grants.upsert(
      grantId,
      {
        ...common,
        exp: now + 90 * 86_400,
        jti: grantId,
        kind: "Grant",
        organizationId,
        resources: { [resource]: "links:write" },
      },
      90 * 86_400,
    );
    await codes.upsert(
      id,
      {
        ...common,
        exp: now + lifetime,
        jti: id,
        kind: "AuthorizationCode",
        grantId,
        scope: "links:write",
        resource: [resource],
        redirectUri: REDIRECT_URI,
        codeChallenge: createHash("sha256").update(VERIFIER).digest("base64url"),
        codeChallengeMethod: "S256",
      },
      lifetime,
    );
    made.push(id);
  }
  return made;
}

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
    await storage.webhooks.create(organization.id, OPERATOR, fields, newWebhookSecret(), limitsOf);
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

/** Starts linkgate on a seeded database, configured as in production but without rate limits. */
export function startOurs(
  url: string,
  options: { port: number; workers?: number; cores?: number[]; env?: Record<string, string> },
): Promise<ServerProcess> {
  return startServer({
    script: MAIN,
    flags: FLAGS,
    env: {
      PORT: String(options.port),
      DATABASE_URL: url,
      ENCRYPTION_KEY: KEY,
      RATE_LIMIT: "off",
      LOG_LEVEL: "warn",
      WORKERS: String(options.workers ?? 1),
      RESOURCE_SERVER_SECRET,
      ...options.env,
    },
    ready: /listening on .*?(\d+)$/,
    ...(options.cores && { cores: options.cores }),
  });
}
