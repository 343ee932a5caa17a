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
  /** Why the service disabled the webhook; null if it is enabled or a user disabled it. */
  disabledReason: string | null;
  /** When the first attempt since the last success failed; null if the last attempt succeeded. */
  failingSince: number | null;
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
  /** Creates a webhook unless the organization has reached its plan's limit, which holds under concurrency. */
  create(
    organizationId: string,
    actor: Actor,
    fields: WebhookFields,
    secret: string,
    limitsOf: (plan: Plan) => Limits,
  ): Promise<Webhook | { limit: number }>;
  find(organizationId: string, id: string): Promise<Webhook | undefined>;
  /** Lists webhooks, newest first; `before` is the ID of the previous page's last webhook. */
  list(organizationId: string, limit: number, before?: string): Promise<Webhook[]>;
  count(organizationId: string): Promise<number>;
  /** Updates a webhook and resets its health; resolves to undefined if it doesn't exist. */
  update(
    organizationId: string,
    id: string,
    changes: WebhookChanges,
    actor: Actor,
  ): Promise<Webhook | undefined>;
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
  /** Records a `webhook.test` event and queues its delivery to this webhook only. */
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
  /** The number of attempts since the delivery was created or resent. */
  attemptCount: number;
  /** When the first attempt since the last success failed; null if the last attempt succeeded. */
  failingSince: number | null;
  /** Until when the endpoint asked for no requests, by `Retry-After`. */
  pausedUntil: number | null;
  /** The signing secrets, newest first, without those that can't be decrypted. */
  secrets: string[];
};

/**
 * The outcome of an attempt. `pauseUntil` is when the webhook may be called again, `disable` the reason to disable it, and
 * `isUnsent` means that no request was made, so the webhook's health doesn't change.
 */
export type Outcome =
  | { status: "succeeded"; isUnsent?: never }
  | { status: "pending"; retryAt: number; pauseUntil?: number; disable?: never; isUnsent?: never }
  | { status: "failed"; disable?: string; isUnsent?: boolean };

/** How many deliveries a process may lease: in total, and per webhook. */
export type LeaseLimits = {
  max: number;
  perWebhook: number;
  /** The lower limits for webhooks whose last attempt failed. */
  failing: { max: number; perWebhook: number };
  /** The number of deliveries that this process is attempting, by webhook ID. */
  inFlight: ReadonlyMap<string, number>;
};

/** The delivery queue that all processes share. */
export type DeliveryQueue = {
  /** Leases due deliveries, oldest first. A delivery whose lease expires unsettled becomes due again. */
  lease(limits: LeaseLimits): Promise<LeasedDelivery[]>;
  /** Returns an unattempted delivery to the queue, due at `until`. */
  postpone(leased: LeasedDelivery, until: number): Promise<void>;
  /** Records an attempt and its outcome; has no effect if the lease has expired. `actor` disables the webhook if needed. */
  settle(leased: LeasedDelivery, attempt: Attempt, outcome: Outcome, actor: Actor): Promise<void>;
  /** Calls `listener` when deliveries may be due; returns a function that removes it. */
  onDue(listener: () => void): () => void;
};
