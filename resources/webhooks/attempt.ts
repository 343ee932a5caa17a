import { SYSTEM } from "../events/types.ts";
import { isPaid } from "../plans.ts";
import { toPayload } from "./payload.ts";
import { nextOutcome } from "./retry-policy.ts";
import type { EndpointResponse, Send } from "./send.ts";
import { signatureHeaders } from "./signature.ts";
import type { Attempt, DeliveryQueue, LeasedDelivery, Outcome } from "./types.ts";

export type AttemptOptions = {
  queue: DeliveryQueue;
  send: Send;
  shortUrl: string;
  /** Called with the outcome of each attempt after it is recorded. */
  onSettled?(outcome: Outcome): void;
};

// How soon the deliveries of a suspended organization are checked again. Those pending when it is resumed are due then.
const HOLD_MS = 5 * 60_000;

/** Returns a function that attempts a leased delivery once and records the outcome; `signal` aborts requests. */
export function createAttempt({ queue, send, shortUrl, onSettled }: AttemptOptions, signal: AbortSignal) {
  async function settle(delivery: LeasedDelivery, attempt: Attempt, outcome: Outcome) {
    await queue.settle(delivery, attempt, outcome, SYSTEM);
    onSettled?.(outcome);
  }

  function post(delivery: LeasedDelivery, at: number): Promise<EndpointResponse> {
    const { event, url, secrets, traceparent } = delivery;
    const body = JSON.stringify(toPayload(event, shortUrl));
    const headers = signatureHeaders(event.id, at, body, secrets);
    return send(url, { ...headers, ...(traceparent !== null && { traceparent }) }, body, signal);
  }

  return async function attemptDelivery(delivery: LeasedDelivery): Promise<void> {
    const at = Date.now();
    if (delivery.suspended) return queue.postpone(delivery, at + HOLD_MS);
    if (isWaiting(delivery, at)) return queue.hold(delivery);
    const reason = reasonNotToSend(delivery);
    if (reason) return settle(delivery, { at, error: reason, ms: 0 }, { status: "failed", isUnsent: true });
    const { pausedUntil } = delivery;
    if (pausedUntil !== null && pausedUntil > at) return queue.postpone(delivery, pausedUntil);
    const start = performance.now();
    const response = await post(delivery, at);
    const { status, error } = response;
    // An aborted request says nothing about the endpoint.
    if (signal.aborted && status === undefined) return queue.postpone(delivery, Date.now());
    const ms = Math.round(performance.now() - start);
    const attempt: Attempt = {
      at,
      ...(status !== undefined && { status }),
      ...(error !== undefined && { error }),
      ms,
    };
    await settle(delivery, attempt, nextOutcome(delivery, response, { now: Date.now(), ms }));
  };
}

/** Returns whether a delivery waits until the endpoint has accepted a test event. */
function isWaiting({ verifies, unverifiedUntil }: LeasedDelivery, now: number): boolean {
  return !verifies && unverifiedUntil !== null && unverifiedUntil > now;
}

/** Checked before each attempt, because plan, webhook and secrets may have changed since the event was recorded. */
function reasonNotToSend({
  enabled,
  plan,
  secrets,
  verifies,
  unverifiedUntil,
}: LeasedDelivery): string | undefined {
  if (!isPaid(plan)) return "Not sent: webhooks require a paid plan.";
  if (!enabled) return "Not sent: the webhook is disabled.";
  if (unverifiedUntil !== null && !verifies)
    return "Not sent: the endpoint hasn't accepted a test event. Send one, then resend this delivery.";
  if (secrets.length === 0) return "Not sent: the signing secret can't be decrypted. Rotate it.";
  return undefined;
}
