import type { By, WebhookEvent } from "../events.ts";
import type { Limits, Plan } from "../plans.ts";
import type { Link } from "../ports.ts";

/** A webhook as it is kept, without its secrets. Times are epoch milliseconds. */
export type Webhook = {
  id: string;
  organizationId: string;
  url: string;
  events: WebhookEvent[];
  enabled: boolean;
  /** Why the service itself disabled it; nothing when a person did, or nobody. */
  disabledReason: string | null;
  /** When the first attempt failed after the last one that succeeded. */
  failingSince: number | null;
  createdAt: number;
  updatedAt: number;
};

/** What the caller may set. */
export type WebhookFields = Pick<Webhook, "url" | "events" | "enabled">;

/** What a webhook is told of; of a link event the data is `{link}`, as the store keeps links. */
export type ToldEvent = {
  id: string;
  type: WebhookEvent;
  data: Record<string, unknown> | { link: Link };
  createdAt: number;
};

/** One try to deliver. `status` is the receiver's answer, `error` why there is none or why none was asked for. */
export type Attempt = { at: number; status?: number; error?: string; ms: number };

export type DeliveryStatus = "pending" | "succeeded" | "failed";

/** One event on its way to one webhook. */
export type Delivery = {
  event: ToldEvent;
  status: DeliveryStatus;
  /** Oldest first. */
  attempts: Attempt[];
  /** Nothing when there is no attempt to come. */
  nextAttemptAt: number | null;
};

/**
 * Where webhooks are kept. Every call is bound to one organization, and every change is written down with it. Secrets go
 * in and never come out; they are kept encrypted.
 */
export type WebhookStore = {
  /** Makes one unless the organization has as many as its plan allows: exact, however many at once. */
  create(
    organizationId: string,
    by: By,
    fields: WebhookFields,
    secret: string,
    limitsOf: (plan: Plan) => Limits,
  ): Promise<Webhook | { limit: number }>;
  find(organizationId: string, id: string): Promise<Webhook | undefined>;
  /** Newest first; `before` is the id of the last one of the page before. */
  list(organizationId: string, limit: number, before?: string): Promise<Webhook[]>;
  count(organizationId: string): Promise<number>;
  /** Nothing when it is gone. Enabling forgets why it was disabled. */
  update(
    organizationId: string,
    id: string,
    changes: Partial<WebhookFields>,
    by: By,
  ): Promise<Webhook | undefined>;
  /** Takes a new secret; the one before signs as well until `previousUntil`. */
  rotateSecret(
    organizationId: string,
    id: string,
    secret: string,
    previousUntil: number,
    by: By,
  ): Promise<Webhook | undefined>;
  /** Removes it with its log. Whether there was one. */
  remove(organizationId: string, id: string, by: By): Promise<boolean>;
  /** Writes down a `webhook.test` that this webhook alone is told of. */
  test(organizationId: string, id: string, by: By): Promise<Delivery | undefined>;
  /** When the next attempt of any delivery is due; null if none is pending. */
  nextAttemptAt(organizationId: string, id: string): Promise<number | null>;
  /** Newest first; `before` is the event's id of the last one of the page before. */
  deliveries(organizationId: string, id: string, limit: number, before?: string): Promise<Delivery[]>;
  /** Puts a delivery at the start of its schedule, now; one that is under way is left alone. */
  resend(organizationId: string, id: string, eventId: string): Promise<Delivery | undefined>;
};

/** A delivery that this process alone may attempt until its lease ends. */
export type Leased = Delivery & {
  lease: string;
  webhookId: string;
  organizationId: string;
  url: string;
  enabled: boolean;
  /** The plan that decides. */
  plan: Plan;
  /** Attempts since it was made or sent again. */
  tries: number;
  /** Since when nothing has arrived there; nothing when the last attempt did. */
  failingSince: number | null;
  /** Until when the receiver asked to be left alone. */
  pausedUntil: number | null;
  /** The newest first; each signs. One that cannot be opened is left out. */
  secrets: string[];
};

/**
 * What came of an attempt: `pauseUntil` says until when nothing at all is to be sent to the webhook, `disable` why it is to
 * be left alone from now on, `isUnsent` that nothing was sent, which tells nothing of the receiver.
 */
export type Outcome =
  | { status: "succeeded"; isUnsent?: never }
  | { status: "pending"; retryAt: number; pauseUntil?: number; disable?: never; isUnsent?: never }
  | { status: "failed"; disable?: string; isUnsent?: boolean };

/** How much may be leased. */
export type Room = {
  most: number;
  perWebhook: number;
  /** Of webhooks where nothing has arrived since an attempt failed: less of all, and of one. */
  failing: { most: number; perWebhook: number };
  /** What this process has under way: of each webhook, how much. */
  underWay: ReadonlyMap<string, number>;
};

/** What is to be delivered, for all processes together. */
export type DeliveryQueue = {
  /** Leases what is due, the oldest first. A lease that is not settled ends by itself, and the delivery is due again. */
  lease(room: Room): Promise<Leased[]>;
  /** Gives a delivery back that was not attempted; it is due at a time. */
  putOff(leased: Leased, until: number): Promise<void>;
  /** Writes down an attempt and what came of it, in the name of `by`; nothing when the lease has ended meanwhile. */
  settle(leased: Leased, attempt: Attempt, outcome: Outcome, by: By): Promise<void>;
  /** Calls back when there may be something due. Returns how to stop that. */
  onDue(listener: () => void): () => void;
};
