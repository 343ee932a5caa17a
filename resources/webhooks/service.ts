import type { z } from "zod";
import type { Caller } from "../access/actor.ts";
import { assertNotStale, type Precondition } from "../http/etag.ts";
import { type Cursors, pageQuery } from "../http/pagination.ts";
import { found, notFound, Problem, retryLater } from "../http/problem.ts";
import { validate } from "../http/validate.ts";
import type { AllowedHosts } from "../outbound/ssrf-guard.ts";
import { planRequired } from "../plans.ts";
import { deliveryQuery, webhookSchemas, webhookTag } from "./schema.ts";
import { newWebhookSecret } from "./signature.ts";
import type {
  Delivery,
  DeliveryDetails,
  Webhook,
  WebhookHealth,
  WebhookStore,
  WebhookWithSecret,
} from "./types.ts";

/** Counts a test event to an endpoint that never accepted one. Resolves to the seconds to wait if it is one too many, or 0. */
export type CountTest = (organizationId: string, url: string) => Promise<number>;

type Options = {
  store: WebhookStore;
  cursors: Cursors;
  allowed: AllowedHosts;
  /** If absent, nothing is limited. */
  countTest: CountTest | undefined;
};

type Changes = { url?: string | undefined; enabled?: boolean | undefined };

// Time to deploy the new secret to every endpoint.
const OVERLAP_MS = 24 * 60 * 60 * 1000;
// How many failed deliveries one request resends, which takes about a second.
const RESEND_MAX = 10_000;
const HEALTH_MS = 24 * 60 * 60 * 1000;
/** How many deliveries of a webhook its health counts: enough for a share, and few enough to read in every list. */
export const HEALTH_MAX = 1000;
const DUPLICATE = "Your organization already has a webhook with this URL. Update it, or use another URL.";

/** Manages webhooks for REST, MCP and the dashboard. Expected errors are thrown as `Problem`. */
export function createWebhookService({ store, cursors, allowed, countTest }: Options) {
  const schemas = webhookSchemas(allowed);

  async function find({ organizationId }: Caller, id: string): Promise<Webhook> {
    return found(await store.find(organizationId, id), "webhook");
  }

  async function findEnabled(caller: Caller, id: string): Promise<Webhook> {
    const webhook = await find(caller, id);
    if (!webhook.enabled)
      throw new Problem(409, "webhook_disabled", "The webhook is disabled. Enable it first.");
    return webhook;
  }

  async function findVerified(caller: Caller, id: string): Promise<Webhook> {
    const webhook = await findEnabled(caller, id);
    const detail = "The endpoint hasn't accepted a test event yet. Send one first.";
    if (!webhook.verified) throw new Problem(409, "webhook_unverified", detail);
    return webhook;
  }

  /** Keeps webhooks from flooding a third party with test events. @throws Problem 429 */
  async function limitTests({ organizationId }: Caller, url: string): Promise<void> {
    const seconds = (await countTest?.(organizationId, url)) ?? 0;
    if (seconds === 0) return;
    const detail = `Too many test events were sent to ${new URL(url).hostname}. Try again in ${seconds} seconds.`;
    throw retryLater(429, "rate_limited", detail, seconds);
  }

  /** Counts the test event that a change of a webhook sends. */
  async function limitTestOf(caller: Caller, id: string, { url, enabled }: Changes): Promise<void> {
    if (url === undefined && !enabled) return;
    const before = await find(caller, id);
    const isMoved = url !== undefined && url !== before.url;
    const isEnabled = enabled ?? before.enabled;
    const isTested = isEnabled && (isMoved || (!before.enabled && !before.verified));
    if (isTested) await limitTests(caller, url ?? before.url);
  }

  /** Reads one page of a list. Its cursor, the position of the last item, is valid only for the same list. */
  async function readPage<Item>(
    { limit, cursor }: z.output<typeof pageQuery>,
    list: unknown[],
    read: (limit: number, before?: string) => Promise<Item[]>,
    positionOf: (item: Item) => string,
  ) {
    const scope = JSON.stringify(list);
    const more = await read(limit + 1, cursor === undefined ? undefined : cursors.read(cursor, scope));
    const items = more.slice(0, limit);
    const last = items.at(-1);
    return { items, nextCursor: more.length > limit && last ? cursors.write(positionOf(last), scope) : null };
  }

  return {
    schemas,
    get: find,

    async create(caller: Caller, input: unknown): Promise<WebhookWithSecret> {
      const { organizationId, actor } = caller;
      const fields = validate(schemas.create, input);
      if (fields.enabled) await limitTests(caller, fields.url);
      const secret = newWebhookSecret();
      const created = await store.create(organizationId, actor, fields, secret);
      if ("limit" in created) {
        const detail = `Your organization has reached its limit of ${created.limit} webhooks. Delete one first.`;
        throw created.limit === 0 ? planRequired() : new Problem(409, "webhook_limit", detail);
      }
      if ("isDuplicate" in created) throw new Problem(409, "webhook_exists", DUPLICATE);
      if ("isRevoked" in created) throw revoked();
      return { webhook: created, secret };
    },

    async list({ organizationId }: Caller, query: unknown) {
      const { items, nextCursor } = await readPage(
        validate(pageQuery, query),
        [organizationId, "webhooks"],
        (limit, before) => store.list(organizationId, limit, before),
        ({ id }) => id,
      );
      return { webhooks: items, nextCursor };
    },

    async update(caller: Caller, id: string, input: unknown, precondition?: Precondition): Promise<Webhook> {
      const { organizationId, actor } = caller;
      const changes = validate(schemas.update, input);
      await limitTestOf(caller, id, changes);
      const updated = await store.update(organizationId, id, changes, actor, isCurrent(precondition));
      const webhook = assertNotStale(found(updated, "webhook"), "webhook");
      if ("isDuplicate" in webhook) throw new Problem(409, "webhook_exists", DUPLICATE);
      return webhook;
    },

    async remove({ organizationId, actor }: Caller, id: string, precondition?: Precondition): Promise<void> {
      const removed = await store.remove(organizationId, id, actor, isCurrent(precondition));
      if (!assertNotStale(removed, "webhook")) throw notFound("webhook");
    },

    /** Replaces the signing secret. Deliveries are signed with the new and the previous secret for 24 hours. */
    async rotateSecret({ organizationId, actor }: Caller, id: string): Promise<WebhookWithSecret> {
      const secret = newWebhookSecret();
      const until = Date.now() + OVERLAP_MS;
      const webhook = await store.rotateSecret(organizationId, id, secret, until, actor);
      return { webhook: found(webhook, "webhook"), secret };
    },

    /** Returns the current signing secret; the audit log shows who viewed it. */
    async viewSecret({ organizationId, actor }: Caller, id: string): Promise<WebhookWithSecret> {
      return found(await store.viewSecret(organizationId, id, actor), "webhook");
    },

    async test(caller: Caller, id: string): Promise<Delivery> {
      const { verified, url } = await findEnabled(caller, id);
      if (!verified) await limitTests(caller, url);
      return found(await store.test(caller.organizationId, id, caller.actor), "webhook");
    },

    /** Lists deliveries, newest first. A filter is part of the list that a cursor belongs to. */
    async deliveries(caller: Caller, id: string, query: unknown) {
      await find(caller, id);
      const { organizationId } = caller;
      const { status, event_type: type, ...page } = validate(deliveryQuery, query);
      const filter = { status, type };
      const isFiltered = status !== undefined || type !== undefined;
      const { items, nextCursor } = await readPage(
        page,
        [organizationId, "deliveries", id, ...(isFiltered ? [filter] : [])],
        (limit, before) => store.deliveries(organizationId, id, limit, before, filter),
        ({ event }) => event.id,
      );
      return { deliveries: items, nextCursor };
    },

    async delivery(caller: Caller, id: string, deliveryId: string): Promise<DeliveryDetails> {
      await find(caller, id);
      return found(await store.findDelivery(caller.organizationId, id, deliveryId), "delivery");
    },

    /** Returns the number of deliveries since midnight UTC, without retries. */
    countDeliveriesToday: ({ organizationId }: Caller) => store.countDeliveriesToday(organizationId),

    /** Returns the delivery that is attempted next, if any is pending. */
    nextDelivery: ({ organizationId }: Caller, id: string) => store.nextDelivery(organizationId, id),

    /** Returns the health of each webhook, by its ID, with its newest deliveries of the last 24 hours. */
    health: ({ organizationId }: Caller): Promise<Map<string, WebhookHealth>> =>
      store.health(organizationId, Date.now() - HEALTH_MS, HEALTH_MAX),

    /** Sends an event again, with the same ID and body. */
    async resend(caller: Caller, id: string, deliveryId: string): Promise<Delivery> {
      await findVerified(caller, id);
      return found(await store.resend(caller.organizationId, id, deliveryId), "delivery");
    },

    /** Counts the deliveries that `resendFailed` would send, and whether there are more. */
    async countFailed({ organizationId }: Caller, id: string) {
      const total = await store.countFailed(organizationId, id, RESEND_MAX + 1);
      return { count: Math.min(total, RESEND_MAX), hasMore: total > RESEND_MAX };
    },

    /** Sends all events again whose deliveries have failed, up to 10,000. */
    async resendFailed(caller: Caller, id: string) {
      await findVerified(caller, id);
      const resent = await store.resendFailed(caller.organizationId, id, RESEND_MAX);
      const hasMore = resent === RESEND_MAX && (await store.countFailed(caller.organizationId, id, 1)) > 0;
      return { resent, has_more: hasMore };
    },
  };
}

export type WebhookService = ReturnType<typeof createWebhookService>;

/** Compares in the transaction of the change. */
function isCurrent(precondition: Precondition | undefined) {
  return precondition && ((webhook: Webhook) => precondition(webhookTag(webhook)));
}

/** The app lost its access after its token was checked. */
function revoked(): Problem {
  return new Problem(401, "invalid_token", "The access token is invalid, expired or revoked.", {
    headers: { "WWW-Authenticate": 'Bearer error="invalid_token"' },
  });
}
