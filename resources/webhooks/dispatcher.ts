import { isPaid, limitsOf } from "../plans.ts";
import { nextOutcome, SLOW_MS } from "./retry-policy.ts";
import { toPayload } from "./schema.ts";
import type { Send } from "./send.ts";
import { signatureHeaders } from "./signature.ts";
import type { Attempt, DeliveryQueue, Exchange, LeasedDelivery, LeaseLimits, Outcome } from "./types.ts";

type DispatcherOptions = {
  queue: DeliveryQueue;
  send: Send;
  shortUrl: string;
  onSettled?(outcome: Outcome): void;
  /** Called when the database is unavailable or an attempt fails unexpectedly; its delivery is retried. */
  onError(error: unknown): void;
};

// Retries and events of other processes become due without a notification.
const POLL_MS = 1000;
// Batches the notifications of many changes into one query.
const DEBOUNCE_MS = 20;
// How long a stop waits for responses. Nearly all take less than a second; a hanging one must not block the exit.
const GRACE_MS = 5000;

// How soon deliveries of a suspended organization are checked again. Those pending at its resumption are due then.
const SUSPENDED_MS = 5 * 60_000;
// Attempts at a time. No webhook, host or organization can use up the capacity of all others.
const HEALTHY = { max: 200, perWebhook: 10, perHost: 50, perOrganization: 40 };
// Endpoints that fail or respond slowly have a capacity of their own: attempts count there after `SLOW_MS`. None
// takes longer than 15 s, so this bounds the open sockets to about 1,000.
const FAILING = { max: 100, perWebhook: 1, perHost: 20, perOrganization: 10 };

type Attempting = { delivery: LeasedDelivery; startedAt: number; ended: Promise<void> };

/** Delivers due events until stopped. Any number of processes can share the work. */
export function startDeliveries(options: DispatcherOptions): {
  /** Resolves when the current attempts ended. Slow ones are aborted after a grace period, and due again. */
  stop(): Promise<void>;
} {
  const { queue, onError } = options;
  const abort = new AbortController();
  const attempt = createAttempt(options, abort.signal);
  const inFlight = new Set<Attempting>();
  let polling: Promise<void> | undefined;
  let scheduled: NodeJS.Timeout | undefined;
  let isStopped = false;

  function schedule() {
    if (!isStopped) scheduled ??= setTimeout(poll, DEBOUNCE_MS).unref();
  }

  function poll() {
    scheduled = undefined;
    if (polling) return schedule();
    polling = leaseAll()
      .catch(onError)
      .finally(() => {
        polling = undefined;
      });
  }

  async function leaseAll() {
    for (let limits = remaining(inFlight); limits.max > 0 && !isStopped; limits = remaining(inFlight)) {
      const leased = await queue.lease(limits);
      if (leased.length === 0) return;
      for (const delivery of leased) start(delivery);
    }
  }

  function start(delivery: LeasedDelivery) {
    const ended = attempt(delivery)
      .catch(onError)
      .then(() => {
        inFlight.delete(attempting);
        schedule();
      });
    const attempting = { delivery, startedAt: performance.now(), ended };
    inFlight.add(attempting);
  }

  const timer = setInterval(poll, POLL_MS).unref();
  const unsubscribe = queue.onDue(schedule);
  schedule();

  return {
    async stop() {
      isStopped = true;
      clearInterval(timer);
      clearTimeout(scheduled);
      unsubscribe();
      await polling;
      const grace = setTimeout(() => abort.abort(), GRACE_MS);
      await Promise.all([...inFlight].map(({ ended }) => ended));
      clearTimeout(grace);
    },
  };
}

function remaining(inFlight: Iterable<Attempting>): LeaseLimits {
  const counts = new Map<string, number>();
  const slow = new Set<string>();
  const free = { healthy: HEALTHY.max, failing: FAILING.max };
  const add = (key: string) => counts.set(key, (counts.get(key) ?? 0) + 1);
  for (const { delivery, startedAt } of inFlight) {
    const { webhookId, host, organizationId, failingSince, slowSince } = delivery;
    const isSlow = performance.now() - startedAt > SLOW_MS;
    if (isSlow) slow.add(webhookId);
    const isFailing = isSlow || failingSince !== null || slowSince !== null;
    free[isFailing ? "failing" : "healthy"]--;
    add(webhookId);
    for (const key of [host, organizationId]) {
      add(key);
      if (isFailing) add(`failing ${key}`);
    }
  }
  const failing = { ...FAILING, max: free.failing };
  return { ...HEALTHY, max: free.healthy, failing, inFlight: counts, slow, limitsOf };
}

function createAttempt({ queue, send, shortUrl, onSettled }: DispatcherOptions, signal: AbortSignal) {
  async function settle(delivery: LeasedDelivery, attempt: Attempt, outcome: Outcome, exchange?: Exchange) {
    await queue.settle(delivery, attempt, outcome, exchange);
    onSettled?.(outcome);
  }
  return async function attemptDelivery(delivery: LeasedDelivery): Promise<void> {
    const at = Date.now();
    const { event, url, secrets, traceparent, verifies, unverifiedUntil, pausedUntil } = delivery;
    if (delivery.suspended) return queue.postpone(delivery, at + SUSPENDED_MS);
    if (!verifies && unverifiedUntil !== null && unverifiedUntil > at) return queue.hold(delivery);
    const reason = reasonNotToSend(delivery);
    if (reason) return settle(delivery, { at, error: reason, ms: 0 }, { status: "failed", isUnsent: true });
    if (pausedUntil !== null && pausedUntil > at) return queue.postpone(delivery, pausedUntil);
    const body = JSON.stringify(toPayload(event, shortUrl));
    const headers = { ...signatureHeaders(event.id, at, body, secrets), ...(traceparent && { traceparent }) };
    const start = performance.now();
    const { exchange, ...response } = await send(url, headers, body, signal);
    const { retryAfter: _, ...answer } = response;
    // An aborted request says nothing about the endpoint.
    if (signal.aborted && answer.status === undefined) return queue.postpone(delivery, Date.now());
    const ms = Math.round(performance.now() - start);
    const outcome = nextOutcome(delivery, response, { now: Date.now(), ms });
    await settle(delivery, { at, ...answer, ms }, outcome, exchange);
  };
}

/** Checked before each attempt, because plan, webhook and secrets may have changed since the event was recorded. */
function reasonNotToSend(delivery: LeasedDelivery): string | undefined {
  if (!isPaid(delivery.plan)) return "Not sent: webhooks require a paid plan.";
  if (!delivery.enabled) return "Not sent: the webhook is disabled.";
  if (delivery.unverifiedUntil !== null && !delivery.verifies)
    return "Not sent: the endpoint hasn't accepted a test event. Send one, then resend this delivery.";
  if (delivery.secrets.length === 0) return "Not sent: the signing secret can't be decrypted. Rotate it.";
  return undefined;
}
