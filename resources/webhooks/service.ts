import type { Cursors } from "../cursor.ts";
import type { Actor } from "../links/links.ts";
import { limitsOf } from "../plans.ts";
import { notFound, Problem } from "../problem.ts";
import { validate } from "../validate.ts";
import type { AllowedHosts } from "./address.ts";
import { newWebhookSecret } from "./message.ts";
import type { Delivery, Webhook, WebhookFields, WebhookStore } from "./ports.ts";
import { pageQuery, webhookSchemas } from "./schema.ts";

/** The one moment in which a secret is known. */
export type WithSecret = { webhook: Webhook; secret: string };

/** The one core of webhooks; REST, MCP and pages are its faces. Everything refused is a `Problem`. */
export type Webhooks = {
  schemas: ReturnType<typeof webhookSchemas>;
  create(actor: Actor, input: unknown): Promise<WithSecret>;
  get(actor: Actor, id: string): Promise<Webhook>;
  list(actor: Actor, query: unknown): Promise<{ webhooks: Webhook[]; nextCursor: string | null }>;
  update(actor: Actor, id: string, input: unknown): Promise<Webhook>;
  remove(actor: Actor, id: string): Promise<void>;
  /** For a day, the new secret and the one before both sign. */
  rotateSecret(actor: Actor, id: string): Promise<WithSecret>;
  /** Sends it, and nobody else, an event that means nothing. */
  test(actor: Actor, id: string): Promise<Delivery>;
  /** What it was told, newest first. */
  deliveries(
    actor: Actor,
    id: string,
    query: unknown,
  ): Promise<{ deliveries: Delivery[]; nextCursor: string | null }>;
  /** Returns when the next attempt to deliver to it is due; null if nothing is pending. */
  nextAttemptAt(actor: Actor, id: string): Promise<number | null>;
  /** Tells it of an event again, under the same id. */
  resend(actor: Actor, id: string, deliveryId: string): Promise<Delivery>;
};

type WebhooksOptions = { store: WebhookStore; cursors: Cursors; allowed: AllowedHosts };

// Time to give the new secret to every receiver.
const OVERLAP_MS = 24 * 60 * 60 * 1000;

/** Makes the core over a store. */
export function createWebhooks({ store, cursors, allowed }: WebhooksOptions): Webhooks {
  const schemas = webhookSchemas(allowed);

  async function get({ organizationId }: Actor, id: string): Promise<Webhook> {
    const webhook = await store.find(organizationId, id);
    if (!webhook) throw notFound("webhook");
    return webhook;
  }

  async function getEnabled(actor: Actor, id: string): Promise<void> {
    const { enabled } = await get(actor, id);
    if (!enabled) throw new Problem(409, "webhook_disabled", "The webhook is disabled: enable it first.");
  }

  /** One page, and the cursor of the next one; `positionOf` is what that begins after. */
  async function page<Item>(
    query: unknown,
    list: string[],
    read: (limit: number, before?: string) => Promise<Item[]>,
    positionOf: (item: Item) => string,
  ) {
    const { limit, cursor } = validate(pageQuery, query);
    const bound = JSON.stringify(list);
    const before = cursor === undefined ? undefined : cursors.read(cursor, bound);
    const found = await read(limit + 1, before);
    const items = found.slice(0, limit);
    const last = items.at(-1);
    const nextCursor = found.length > limit && last ? cursors.write(positionOf(last), bound) : null;
    return { items, nextCursor };
  }

  return {
    schemas,
    get,

    async create({ organizationId, by }, input) {
      const fields = validate(schemas.create, input) satisfies WebhookFields;
      const secret = newWebhookSecret();
      const made = await store.create(organizationId, by, fields, secret, limitsOf);
      if ("limit" in made) throw tooMany(made.limit);
      return { webhook: made, secret };
    },

    async list({ organizationId }, query) {
      const { items, nextCursor } = await page(
        query,
        [organizationId, "webhooks"],
        (limit, before) => store.list(organizationId, limit, before),
        ({ id }) => id,
      );
      return { webhooks: items, nextCursor };
    },

    async update({ organizationId, by }, id, input) {
      const changes = validate(schemas.update, input);
      const webhook = await store.update(organizationId, id, changes, by);
      if (!webhook) throw notFound("webhook");
      return webhook;
    },

    async remove({ organizationId, by }, id) {
      if (!(await store.remove(organizationId, id, by))) throw notFound("webhook");
    },

    async rotateSecret({ organizationId, by }, id) {
      const secret = newWebhookSecret();
      const webhook = await store.rotateSecret(organizationId, id, secret, Date.now() + OVERLAP_MS, by);
      if (!webhook) throw notFound("webhook");
      return { webhook, secret };
    },

    async test(actor, id) {
      await getEnabled(actor, id);
      const delivery = await store.test(actor.organizationId, id, actor.by);
      if (!delivery) throw notFound("webhook");
      return delivery;
    },

    async deliveries(actor, id, query) {
      await get(actor, id);
      const { organizationId } = actor;
      const { items, nextCursor } = await page(
        query,
        [organizationId, "deliveries", id],
        (limit, before) => store.deliveries(organizationId, id, limit, before),
        ({ event }) => event.id,
      );
      return { deliveries: items, nextCursor };
    },

    nextAttemptAt: ({ organizationId }, id) => store.nextAttemptAt(organizationId, id),

    async resend(actor, id, deliveryId) {
      await getEnabled(actor, id);
      const delivery = await store.resend(actor.organizationId, id, deliveryId);
      if (!delivery) throw notFound("delivery");
      return delivery;
    },
  };
}

/** The refusal of whatever a plan without webhooks does not allow. */
export function planRequired(): Problem {
  return new Problem(403, "plan_required", "Webhooks need the Growth or the Premium plan.");
}

function tooMany(limit: number): Problem {
  return limit === 0
    ? planRequired()
    : new Problem(409, "webhook_limit", `An organization has at most ${limit} webhooks: delete one first.`);
}
