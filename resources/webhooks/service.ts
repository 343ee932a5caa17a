import type { Caller } from "../access/actor.ts";
import { planRequired } from "../access/require-paid-plan.ts";
import type { Cursors } from "../http/cursor.ts";
import { notFound, Problem } from "../http/problem.ts";
import { validate } from "../http/validate.ts";
import type { AllowedHosts } from "../outbound/ssrf-guard.ts";
import { limitsOf } from "../plans.ts";
import { pageQuery, webhookSchemas } from "./schema.ts";
import { newWebhookSecret } from "./signature.ts";
import type { Delivery, Webhook, WebhookStore } from "./types.ts";

/** A webhook with its current signing secret. */
export type WebhookWithSecret = { webhook: Webhook; secret: string };

/** Manages webhooks for the REST API, MCP and the dashboard. Expected errors are thrown as `Problem`. */
export type WebhookService = {
  schemas: ReturnType<typeof webhookSchemas>;
  create(caller: Caller, input: unknown): Promise<WebhookWithSecret>;
  get(caller: Caller, id: string): Promise<Webhook>;
  list(caller: Caller, query: unknown): Promise<{ webhooks: Webhook[]; nextCursor: string | null }>;
  update(caller: Caller, id: string, input: unknown): Promise<Webhook>;
  remove(caller: Caller, id: string): Promise<void>;
  /** Replaces the signing secret. Deliveries are signed with the new and the previous secret for 24 hours. */
  rotateSecret(caller: Caller, id: string): Promise<WebhookWithSecret>;
  /** Returns the current signing secret; the audit log shows who viewed it. */
  viewSecret(caller: Caller, id: string): Promise<WebhookWithSecret>;
  /** Sends a `webhook.test` event to this webhook only. */
  test(caller: Caller, id: string): Promise<Delivery>;
  /** Lists deliveries, newest first. */
  deliveries(
    caller: Caller,
    id: string,
    query: unknown,
  ): Promise<{ deliveries: Delivery[]; nextCursor: string | null }>;
  /** Returns the number of deliveries since midnight UTC, without retries. */
  countDeliveriesToday(caller: Caller): Promise<number>;
  /** Returns when the next attempt of any delivery is due; null if none is pending. */
  nextAttemptAt(caller: Caller, id: string): Promise<number | null>;
  /** Sends an event again, with the same ID and body. */
  resend(caller: Caller, id: string, deliveryId: string): Promise<Delivery>;
};

type WebhooksOptions = { store: WebhookStore; cursors: Cursors; allowed: AllowedHosts };

// Time to deploy the new secret to every endpoint.
const OVERLAP_MS = 24 * 60 * 60 * 1000;

/** Creates the service on top of a store. */
export function createWebhookService({ store, cursors, allowed }: WebhooksOptions): WebhookService {
  const schemas = webhookSchemas(allowed);
  return {
    schemas,
    ...createWebhookOperations(store, cursors, schemas),
    ...createDeliveryOperations(store, cursors),
  };
}

type DeliveryOperations = Pick<
  WebhookService,
  "test" | "deliveries" | "countDeliveriesToday" | "nextAttemptAt" | "resend"
>;

function createWebhookOperations(
  store: WebhookStore,
  cursors: Cursors,
  schemas: WebhookService["schemas"],
): Omit<WebhookService, "schemas" | keyof DeliveryOperations> {
  return {
    get: (caller, id) => find(store, caller, id),

    async create({ organizationId, actor }, input) {
      const fields = validate(schemas.create, input);
      const secret = newWebhookSecret();
      const created = await store.create(organizationId, actor, fields, secret, limitsOf);
      if ("limit" in created) throw limitReached(created.limit);
      if ("isDuplicate" in created) throw duplicate();
      if ("isRevoked" in created) throw revoked();
      return { webhook: created, secret };
    },

    async list({ organizationId }, query) {
      const { items, nextCursor } = await readPage(cursors, {
        query,
        list: [organizationId, "webhooks"],
        read: (limit, before) => store.list(organizationId, limit, before),
        positionOf: ({ id }) => id,
      });
      return { webhooks: items, nextCursor };
    },

    async update({ organizationId, actor }, id, input) {
      const changes = validate(schemas.update, input);
      const webhook = await store.update(organizationId, id, changes, actor);
      if (!webhook) throw notFound("webhook");
      if ("isDuplicate" in webhook) throw duplicate();
      return webhook;
    },

    async remove({ organizationId, actor }, id) {
      if (!(await store.remove(organizationId, id, actor))) throw notFound("webhook");
    },

    async rotateSecret({ organizationId, actor }, id) {
      const secret = newWebhookSecret();
      const webhook = await store.rotateSecret(organizationId, id, secret, Date.now() + OVERLAP_MS, actor);
      if (!webhook) throw notFound("webhook");
      return { webhook, secret };
    },

    async viewSecret({ organizationId, actor }, id) {
      const found = await store.viewSecret(organizationId, id, actor);
      if (!found) throw notFound("webhook");
      return found;
    },
  };
}

function createDeliveryOperations(store: WebhookStore, cursors: Cursors): DeliveryOperations {
  return {
    async test(caller, id) {
      await assertEnabled(store, caller, id);
      const delivery = await store.test(caller.organizationId, id, caller.actor);
      if (!delivery) throw notFound("webhook");
      return delivery;
    },

    async deliveries(caller, id, query) {
      await find(store, caller, id);
      const { organizationId } = caller;
      const { items, nextCursor } = await readPage(cursors, {
        query,
        list: [organizationId, "deliveries", id],
        read: (limit, before) => store.deliveries(organizationId, id, limit, before),
        positionOf: ({ event }) => event.id,
      });
      return { deliveries: items, nextCursor };
    },

    countDeliveriesToday: ({ organizationId }) => store.countDeliveriesToday(organizationId),

    nextAttemptAt: ({ organizationId }, id) => store.nextAttemptAt(organizationId, id),

    async resend(caller, id, deliveryId) {
      assertVerified(await assertEnabled(store, caller, id));
      const delivery = await store.resend(caller.organizationId, id, deliveryId);
      if (!delivery) throw notFound("delivery");
      return delivery;
    },
  };
}

async function find(store: WebhookStore, { organizationId }: Caller, id: string): Promise<Webhook> {
  const webhook = await store.find(organizationId, id);
  if (!webhook) throw notFound("webhook");
  return webhook;
}

async function assertEnabled(store: WebhookStore, caller: Caller, id: string): Promise<Webhook> {
  const webhook = await find(store, caller, id);
  if (!webhook.enabled)
    throw new Problem(409, "webhook_disabled", "The webhook is disabled. Enable it first.");
  return webhook;
}

function assertVerified({ verified }: Webhook): void {
  const detail = "The endpoint hasn't accepted a test event yet. Send one first.";
  if (!verified) throw new Problem(409, "webhook_unverified", detail);
}

type PageRequest<Item> = {
  query: unknown;
  /** Identifies the list, so that a cursor is valid only for the list it came from. */
  list: string[];
  read: (limit: number, before?: string) => Promise<Item[]>;
  /** Returns the position that the next page starts after. */
  positionOf: (item: Item) => string;
};

/** Reads one page of a list and creates the cursor of the next. */
async function readPage<Item>(cursors: Cursors, { query, list, read, positionOf }: PageRequest<Item>) {
  const { limit, cursor } = validate(pageQuery, query);
  const scope = JSON.stringify(list);
  const before = cursor === undefined ? undefined : cursors.read(cursor, scope);
  const found = await read(limit + 1, before);
  const items = found.slice(0, limit);
  const last = items.at(-1);
  const nextCursor = found.length > limit && last ? cursors.write(positionOf(last), scope) : null;
  return { items, nextCursor };
}

function duplicate(): Problem {
  const detail = "Your organization already has a webhook with this URL. Update it, or use another URL.";
  return new Problem(409, "webhook_exists", detail);
}

/** The app lost its access after its token was checked. */
function revoked(): Problem {
  return new Problem(401, "invalid_token", "The access token is invalid, expired or revoked.", {
    headers: { "WWW-Authenticate": 'Bearer error="invalid_token"' },
  });
}

function limitReached(limit: number): Problem {
  if (limit === 0) return planRequired();
  const detail = `Your organization has reached its limit of ${limit} webhooks. Delete one first.`;
  return new Problem(409, "webhook_limit", detail);
}
