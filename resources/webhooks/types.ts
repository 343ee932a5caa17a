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
  /** The id of the client or user that created the webhook. */
  createdBy: string;
  /** The client that acted for that user; null without a user or a client. */
  createdVia: string | null;
  createdAt: number;
  updatedAt: number;
};

/** A webhook with its current signing secret. */
export type WebhookWithSecret = { webhook: Webhook; secret: string };

/** The fields that callers set. */
export type WebhookFields = Pick<Webhook, "url" | "events" | "enabled">;

/** Changes to a webhook; fields that are absent or undefined stay as they are. */
export type WebhookChanges = { [Field in keyof WebhookFields]?: WebhookFields[Field] | undefined };

/** A stored event that webhooks subscribe to. */
export type DeliveredEvent = StoredEvent & { id: string; type: WebhookEvent; createdAt: number };

/** One attempt to deliver an event: the HTTP `status` of the response, or the `error` that prevented one. */
export type Attempt = { at: number; status?: number; error?: string; ms: number };

export type DeliveryStatus = "pending" | "succeeded" | "failed";

/** The delivery of one event to one webhook. */
export type Delivery = {
  event: DeliveredEvent;
  status: DeliveryStatus;
  /** Oldest first. */
  attempts: Attempt[];
  /** Null if no further attempt is scheduled. */
  nextAttemptAt: number | null;
};

/**
 * Stores webhooks. Every call is limited to one organization, and every change commits together with its event. Signing
 * secrets are stored encrypted, and only `viewSecret` returns one.
 */
export type WebhookStore = {
  /**
   * Creates a webhook unless the organization has reached its plan's limit or has one with this URL. Both hold under
   * concurrency. If it is enabled, a test event is sent to verify it.
   */
  create(
    organizationId: string,
    actor: Actor,
    fields: WebhookFields,
    secret: string,
    limitsOf: (plan: Plan) => Limits,
  ): Promise<Webhook | { limit: number } | { isDuplicate: true } | { isRevoked: true }>;
  find(organizationId: string, id: string): Promise<Webhook | undefined>;
  /** Lists webhooks, newest first; `before` is the ID of the previous page's last webhook. */
  list(organizationId: string, limit: number, before?: string): Promise<Webhook[]>;
  count(organizationId: string): Promise<number>;
  /** Returns the host of each webhook that a user created; with `clientId`, only through this client. */
  listCreatedHosts(organizationId: string, creator: { userId: string; clientId?: string }): Promise<string[]>;
  /** Returns the number of deliveries since midnight UTC, without retries. */
  countDeliveriesToday(organizationId: string): Promise<number>;
  /**
   * Updates a webhook and resets its health; resolves to undefined if it doesn't exist. A new URL has to be verified again.
   */
  update(
    organizationId: string,
    id: string,
    changes: WebhookChanges,
    actor: Actor,
  ): Promise<Webhook | { isDuplicate: true } | undefined>;
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
  /** Deletes a webhook and its delivery log; resolves to false if it doesn't exist. */
  remove(organizationId: string, id: string, actor: Actor): Promise<boolean>;
  /**
   * Records a `webhook.test` event and queues its delivery to this webhook only. If the webhook isn't verified, this event
   * replaces an earlier one as the one that verifies it.
   */
  test(organizationId: string, id: string, actor: Actor): Promise<Delivery | undefined>;
  /** Returns the delivery that is attempted next, if any is pending. */
  nextDelivery(organizationId: string, id: string): Promise<Delivery | undefined>;
  /** Lists deliveries, newest first; `before` is the event ID of the previous page's last delivery. */
  deliveries(organizationId: string, id: string, limit: number, before?: string): Promise<Delivery[]>;
  /** Restarts the retry schedule of a delivery now; an attempt in flight isn't affected. */
  resend(organizationId: string, id: string, eventId: string): Promise<Delivery | undefined>;
};

/** A delivery that only this process may attempt until the lease expires. */
export type LeasedDelivery = Delivery &
  Pick<Webhook, "organizationId" | "url" | "enabled" | "failingSince"> & {
    lease: string;
    webhookId: string;
    host: string;
    /** Identifies the URL, which may have changed since the lease. */
    urlHash: string;
    /** The organization's plan; `free` if the organization was deleted. */
    plan: Plan;
    /** Whether the operator suspended the organization. */
    suspended: boolean;
    /** The number of attempts since the delivery was created or resent. */
    attemptCount: number;
    /** Since when the endpoint responds too slowly; null if its last response was fast. */
    slowSince: number | null;
    /** The number of failed attempts since the last success. */
    failures: number;
    /** Until when the endpoint asked for no requests, by `Retry-After`. */
    pausedUntil: number | null;
    /** The `traceparent` of the request that caused the event; null unless there was a single one with a recorded trace. */
    traceparent: string | null;
    /** Whether the endpoint is verified if it accepts this delivery. */
    verifies: boolean;
    /** Until when the webhook's other events wait for its verification; null if it is verified. */
    unverifiedUntil: number | null;
    /** The signing secrets, newest first, without those that can't be decrypted. */
    secrets: string[];
  };

/**
 * The outcome of an attempt. `pauseUntil` is when the endpoint asked to be called again, and `blockUntil` how long
 * repeated failures prevent attempts. `disable` is the reason to disable the webhook. `isUnsent` means that no request was
 * made, so the webhook's health doesn't change.
 */
export type Outcome = { isUnsent?: boolean } & (
  | { status: "succeeded"; isSlow?: boolean }
  | { status: "pending"; retryAt: number; pauseUntil?: number; blockUntil?: number }
  | { status: "failed"; disable?: string }
);

/** How many attempts there may be at a time: in total, and per webhook, host and organization. */
type AttemptLimits = { max: number; perWebhook: number; perHost: number; perOrganization: number };

/** How many deliveries a process may lease. `max` is what is left, the other limits include the attempts in flight. */
export type LeaseLimits = AttemptLimits & {
  /** The lower limits for webhooks that fail or respond slowly. */
  failing: AttemptLimits;
  /** The attempts in flight by webhook ID, host and organization ID; of `failing` ones also by `failing …` and the last two. */
  inFlight: ReadonlyMap<string, number>;
  /** The IDs of webhooks that haven't responded to a current attempt in time. */
  slow: ReadonlySet<string>;
  /** Returns the limits of a plan, for the daily quota. */
  limitsOf: (plan: Plan) => Limits;
  /** Who reaches the quota, for the audit log. */
  actor: Actor;
};

/** The delivery queue that all processes share. A pending delivery is due, leased or paused: due later. */
export type DeliveryQueue = {
  /** Leases due deliveries, of each organization in turn. A delivery whose lease expires unsettled becomes due again. */
  lease(limits: LeaseLimits): Promise<LeasedDelivery[]>;
  /** Pauses a delivery without an attempt. */
  postpone(leased: LeasedDelivery, until: number): Promise<void>;
  /** Pauses a delivery without an attempt until the webhook is verified or the time for that ends. */
  hold(leased: LeasedDelivery): Promise<void>;
  /** Records an attempt and its outcome; has no effect if the lease has expired. `actor` disables the webhook if needed. */
  settle(leased: LeasedDelivery, attempt: Attempt, outcome: Outcome, actor: Actor): Promise<void>;
  /** Calls `listener` when deliveries may be due; returns a function that removes it. */
  onDue(listener: () => void): () => void;
};
