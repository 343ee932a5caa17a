import type { Actor } from "../access/actor.ts";
import type { StoredEvent } from "../events/public-data.ts";
import type { WebhookEvent } from "../events/types.ts";
import type { Limits, Plan } from "../plans.ts";

/** A webhook without its secrets, as the store keeps it. Times are epoch milliseconds. */
export type Webhook = {
  id: string;
  organizationId: string;
  url: string;
  events: WebhookEvent[];
  enabled: boolean;
  /** Whether the endpoint has accepted a test event. Until then, it gets no other event. */
  verified: boolean;
  /** Why the service disabled the webhook; null if it is enabled or a user disabled it. */
  disabledReason: string | null;
  /** When the first attempt since the last success failed; null if the last attempt succeeded. */
  failingSince: number | null;
  /** When an attempt last succeeded, to the minute while deliveries succeed; null if none has. */
  lastSuccessAt: number | null;
  /** The id of the client or user that created the webhook. */
  createdBy: string;
  /** The client that acted for that user; null without a user or a client. */
  createdVia: string | null;
  createdAt: number;
  updatedAt: number;
};

export type WebhookWithSecret = { webhook: Webhook; secret: string };

export type WebhookFields = Pick<Webhook, "url" | "events" | "enabled">;

/** Changes to a webhook; fields that are absent or undefined stay as they are. */
export type WebhookChanges = { [Field in keyof WebhookFields]?: WebhookFields[Field] | undefined };

export type DeliveredEvent = StoredEvent & { id: string; type: WebhookEvent; createdAt: number };

/** The events of an organization in a fixed order. A position is behind one event and before the next; the first is 0. */
export type EventList = {
  /** Returns the position behind all events. No event is ever added before it. */
  end(organizationId: string): Promise<number>;
  /**
   * Returns events between two positions that happened after `since`, oldest first, and the position behind them and all
   * others that were considered. That may be before `end`, even without events.
   */
  read(
    organizationId: string,
    page: { after: number; end: number; since: number; types: readonly WebhookEvent[]; limit: number },
  ): Promise<{ events: DeliveredEvent[]; position: number }>;
};

/** One attempt to deliver an event: the HTTP `status` of the response, or the `error` that prevented one. */
export type Attempt = { at: number; status?: number; error?: string; ms: number };

export type DeliveryStatus = "pending" | "succeeded" | "failed";

export type Delivery = {
  event: DeliveredEvent;
  status: DeliveryStatus;
  /** Oldest first. */
  attempts: Attempt[];
  nextAttemptAt: number | null;
};

/** The start of a response: without cookies, cut to a few kilobytes, and without control characters. */
export type ResponseStart = {
  status: number;
  headers: Record<string, string>;
  body: string;
  /** Whether the body continues, or wasn't complete in time. */
  truncated: boolean;
};

/** The headers of a request, and its response if there was one. */
export type Exchange = { requestHeaders: Record<string, string>; response?: ResponseStart };

/** A delivery with its last request that was sent; null before the first one. */
export type DeliveryDetails = Delivery & { exchange: Exchange | null };

/** Which deliveries are listed; all without fields. */
export type DeliveryFilter = { status?: DeliveryStatus | undefined; type?: WebhookEvent | undefined };

/** How many of the recent deliveries have each status. */
export type DeliveryCounts = Record<DeliveryStatus, number>;

/** How the deliveries of a webhook go. */
export type WebhookHealth = {
  /** When the next delivery is due and no pause holds it back, which may be past; null if none is pending. */
  nextAttemptAt: number | null;
  /** Until when the endpoint gets nothing, which may be past: because it failed, or because it asked. */
  blockedUntil: number | null;
  pausedUntil: number | null;
  /** How many attempts in a row have failed. */
  failures: number;
  counts: DeliveryCounts;
};

/** Every change commits with its event. Only `viewSecret` returns an (encrypted) secret. */
export type WebhookStore = {
  /** The plan's limit and the URL's uniqueness hold under concurrency. A test event verifies the webhook. */
  create(
    organizationId: string,
    actor: Actor,
    fields: WebhookFields,
    secret: string,
  ): Promise<Webhook | { limit: number } | { isDuplicate: true } | { isRevoked: true }>;
  find(organizationId: string, id: string): Promise<Webhook | undefined>;
  /** Lists webhooks, newest first; `before` is the ID of the previous page's last webhook. */
  list(organizationId: string, limit: number, before?: string): Promise<Webhook[]>;
  count(organizationId: string): Promise<number>;
  /** Returns the host of each webhook that a user created; with `clientId`, only through this client. */
  listCreatedHosts(organizationId: string, creator: { userId: string; clientId?: string }): Promise<string[]>;
  countDeliveriesToday(organizationId: string): Promise<number>;
  /** Updates a webhook and resets its health. A new URL has to be verified again. `"stale"`: `isCurrent` returned false. */
  update(
    organizationId: string,
    id: string,
    changes: WebhookChanges,
    actor: Actor,
    isCurrent?: (webhook: Webhook) => boolean,
  ): Promise<Webhook | { isDuplicate: true } | "stale" | undefined>;
  /** Replaces the signing secret; the previous one also signs until `previousUntil`. */
  rotateSecret(
    organizationId: string,
    id: string,
    secret: string,
    previousUntil: number,
    actor: Actor,
  ): Promise<Webhook | undefined>;
  /** Returns a webhook with its current signing secret, and records who viewed it. */
  viewSecret(organizationId: string, id: string, actor: Actor): Promise<WebhookWithSecret | undefined>;
  /** Deletes a webhook and its delivery log; resolves to false if it doesn't exist, or `"stale"` like `update`. */
  remove(
    organizationId: string,
    id: string,
    actor: Actor,
    isCurrent?: (webhook: Webhook) => boolean,
  ): Promise<boolean | "stale">;
  /** Queues a `webhook.test` event for this webhook, which verifies it instead of an earlier one. */
  test(organizationId: string, id: string, actor: Actor): Promise<Delivery | undefined>;
  /** Counts the enabled webhooks whose last attempt failed. */
  countFailing(organizationId: string): Promise<number>;
  /** Returns the health of each webhook, by its ID. Counts its newest deliveries since a time, up to `max`. */
  health(organizationId: string, since: number, max: number): Promise<Map<string, WebhookHealth>>;
} & DeliveryLog;

/** The deliveries of a webhook. Those that an earlier version of the service added have no type to filter by. */
export type DeliveryLog = {
  nextDelivery(organizationId: string, id: string): Promise<Delivery | undefined>;
  findDelivery(organizationId: string, id: string, eventId: string): Promise<DeliveryDetails | undefined>;
  /** Lists deliveries, newest first; `before` is the event ID of the previous page's last delivery. */
  deliveries(
    organizationId: string,
    id: string,
    limit: number,
    before?: string,
    filter?: DeliveryFilter,
  ): Promise<Delivery[]>;
  /** Counts up to `max` deliveries that have failed. */
  countFailed(organizationId: string, id: string, max: number): Promise<number>;
  /** Restarts the retry schedule of a delivery now; an attempt in flight isn't affected. */
  resend(organizationId: string, id: string, eventId: string): Promise<Delivery | undefined>;
  /** Resends up to `max` deliveries that have failed, and returns their number. */
  resendFailed(organizationId: string, id: string, max: number): Promise<number>;
};

/** A delivery that only this process may attempt until the lease expires. */
export type LeasedDelivery = Delivery &
  Pick<Webhook, "organizationId" | "url" | "enabled" | "failingSince" | "lastSuccessAt"> & {
    lease: string;
    webhookId: string;
    host: string;
    /** Identifies the URL, which may have changed since the lease. */
    urlHash: string;
    /** The organization's plan; `free` if the organization was deleted. */
    plan: Plan;
    /** Whether the operator suspended the organization. */
    suspended: boolean;
    attemptCount: number;
    /** Since when the endpoint responds too slowly; null if its last response was fast. */
    slowSince: number | null;
    failures: number;
    /** Until when the endpoint asked for no requests, by `Retry-After`. */
    pausedUntil: number | null;
    /** The `traceparent` of the request that caused the event; null unless a single, traced one did. */
    traceparent: string | null;
    /** Whether the endpoint is verified if it accepts this delivery. */
    verifies: boolean;
    /** Until when the webhook's other events wait for its verification; null if it is verified. */
    unverifiedUntil: number | null;
    /** The signing secrets, newest first, without those that can't be decrypted. */
    secrets: string[];
  };

/** `pauseUntil`: the endpoint asked. `blockUntil`: it fails. `isUnsent`: no request, so its health stays. */
export type Outcome = { isUnsent?: boolean } & (
  | { status: "succeeded"; isSlow?: boolean }
  | { status: "pending"; retryAt: number; pauseUntil?: number; blockUntil?: number }
  | { status: "failed"; disable?: string }
);

/** How many attempts there may be at a time: in total, and per webhook, host and organization. */
type AttemptLimits = { max: number; perWebhook: number; perHost: number; perOrganization: number };

/** How many deliveries a process may lease. `max` is what is left; other limits include attempts in flight. */
export type LeaseLimits = AttemptLimits & {
  /** The lower limits for webhooks that fail or respond slowly. */
  failing: AttemptLimits;
  /** Attempts in flight by webhook, host and organization; of `failing` ones also by `failing …` and the last two. */
  inFlight: ReadonlyMap<string, number>;
  /** The IDs of webhooks that haven't responded to a current attempt in time. */
  slow: ReadonlySet<string>;
  /** Returns the limits of a plan, for the daily quota. */
  limitsOf: (plan: Plan) => Limits;
};

/** The delivery queue that all processes share. A pending delivery is due, leased or paused: due later. */
export type DeliveryQueue = {
  /** Leases deliveries of each organization in turn. One whose lease expires unsettled becomes due again. */
  lease(limits: LeaseLimits): Promise<LeasedDelivery[]>;
  postpone(leased: LeasedDelivery, until: number): Promise<void>;
  /** Pauses a delivery without an attempt until the webhook is verified or the time for that ends. */
  hold(leased: LeasedDelivery): Promise<void>;
  /** Has no effect if the lease has expired. Without an `exchange`, that of an earlier attempt stays. */
  settle(leased: LeasedDelivery, attempt: Attempt, outcome: Outcome, exchange?: Exchange): Promise<void>;
  /** Calls `listener` when deliveries may be due; returns a function that removes it. */
  onDue(listener: () => void): () => void;
};
