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
  /** The id of the client or user that created the webhook; null for webhooks of earlier versions. */
  createdBy: string | null;
  /** The client that acted for that user; null without a user or a client. */
  createdVia: string | null;
  createdAt: number;
  updatedAt: number;
};

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
  viewSecret(
    organizationId: string,
    id: string,
    actor: Actor,
  ): Promise<{ webhook: Webhook; secret: string } | undefined>;
  /** Deletes a webhook and its delivery log; resolves to false if it doesn't exist. */
  remove(organizationId: string, id: string, actor: Actor): Promise<boolean>;
  /**
   * Records a `webhook.test` event and queues its delivery to this webhook only. If the webhook isn't verified, this event
   * replaces an earlier one as the one that verifies it.
   */
  test(organizationId: string, id: string, actor: Actor): Promise<Delivery | undefined>;
  /** Returns when the next attempt of any delivery is due; null if none is pending. */
  nextAttemptAt(organizationId: string, id: string): Promise<number | null>;
  /** Lists deliveries, newest first; `before` is the event ID of the previous page's last delivery. */
  deliveries(organizationId: string, id: string, limit: number, before?: string): Promise<Delivery[]>;
  /** Restarts the retry schedule of a delivery now; an attempt in flight isn't affected. */
  resend(organizationId: string, id: string, eventId: string): Promise<Delivery | undefined>;
};

/** A delivery that only this process may attempt until the lease expires. */
export type LeasedDelivery = Delivery & {
  lease: string;
  webhookId: string;
  organizationId: string;
  url: string;
  enabled: boolean;
  /** The organization's plan; `free` if the organization was deleted. */
  plan: Plan;
  /** Whether the operator suspended the organization. */
  suspended: boolean;
  /** The number of attempts since the delivery was created or resent. */
  attemptCount: number;
  /** The hostname of the URL. */
  host: string;
  /** Identifies the URL, which may have changed since the lease. */
  urlHash: string;
  /** When the first attempt since the last success failed; null if the last attempt succeeded. */
  failingSince: number | null;
  /** Since when the endpoint responds too slowly; null if its last response was fast. */
  slowSince: number | null;
  /** The number of failed attempts since the last success. */
  failures: number;
  /** Until when the endpoint asked for no requests, by `Retry-After`. */
  pausedUntil: number | null;
  /** The `traceparent` of the request that caused the event; null if there was no single one, or its trace isn't recorded. */
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
export type Outcome =
  | { status: "succeeded"; isSlow?: boolean; isUnsent?: never }
  | {
      status: "pending";
      retryAt: number;
      pauseUntil?: number;
      blockUntil?: number;
      disable?: never;
      isUnsent?: never;
    }
  | { status: "failed"; disable?: string; isUnsent?: boolean };

/** How many deliveries a process may lease: in total, and per webhook, host and organization. */
export type LeaseLimits = {
  max: number;
  perWebhook: number;
  perHost: number;
  perOrganization: number;
  /** The lower limits for webhooks that fail or respond slowly. */
  failing: { max: number; perWebhook: number; perHost: number; perOrganization: number };
  /** The number of deliveries that this process is attempting, by webhook ID, host and organization ID; those that
   * fail or respond slowly also by `failing` and the host or organization ID. */
  inFlight: ReadonlyMap<string, number>;
  /** Returns the limits of a plan, for the daily quota. */
  limitsOf: (plan: Plan) => Limits;
  /** Who reaches the quota, for the audit log. */
  actor: Actor;
  /** The IDs of webhooks that haven't responded to a current attempt in time. */
  slow: ReadonlySet<string>;
};

/** The delivery queue that all processes share. */
export type DeliveryQueue = {
  /** Leases due deliveries, of each organization in turn. A delivery whose lease expires unsettled becomes due again. */
  lease(limits: LeaseLimits): Promise<LeasedDelivery[]>;
  /** Returns an unattempted delivery to the queue, due at `until`. */
  postpone(leased: LeasedDelivery, until: number): Promise<void>;
  /** Returns a delivery to the queue, due when the webhook is verified or the time for that ends. */
  hold(leased: LeasedDelivery): Promise<void>;
  /** Records an attempt and its outcome; has no effect if the lease has expired. `actor` disables the webhook if needed. */
  settle(leased: LeasedDelivery, attempt: Attempt, outcome: Outcome, actor: Actor): Promise<void>;
  /** Calls `listener` when deliveries may be due; returns a function that removes it. */
  onDue(listener: () => void): () => void;
};
