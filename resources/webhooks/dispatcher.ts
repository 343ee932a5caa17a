import { SYSTEM } from "../events.ts";
import { isPaid } from "../plans.ts";
import { signatureHeaders, toMessage } from "./message.ts";
import type { Attempt, DeliveryQueue, Leased, Outcome } from "./ports.ts";
import { judge } from "./schedule.ts";
import type { Answer, Send } from "./send.ts";

type DeliverOptions = {
  queue: DeliveryQueue;
  send: Send;
  shortUrl: string;
  /** Told what came of each attempt, once that is written down. */
  onSettled?(outcome: Outcome): void;
  /** Told when the database is away, or of a defect; what was leased is tried again. */
  onError(error: unknown): void;
};

// A receiver is asked so much at a time, so that a slow one leaves room for all others.
const PER_WEBHOOK = 10;
const OVERALL = 200;
// Those that fail are asked one thing at a time, and however many hang, half of the room is for those that do not.
const FAILING = { most: OVERALL / 2, perWebhook: 1 };
// What falls due without a word: retries, and what other processes wrote down.
const LOOK_EVERY_MS = 1000;
// Of many changes at a time one look is enough.
const GATHER_MS = 20;
// How long a stop waits for receivers. Nearly all answer within a second; one that hangs must not hold the exit.
const GRACE_MS = 5000;

/** Delivers what is due until it is stopped; any number of processes may share the work. */
export function startDeliveries({ queue, send, shortUrl, onSettled, onError }: DeliverOptions): {
  /**
   * Resolves when the current attempts have ended. Those that take too long are aborted and do not count: they are due
   * again, for another process or the next start, with the same id.
   */
  stop(): Promise<void>;
} {
  const attempts = new Set<Promise<void>>();
  const underWay = new Map<string, number>();
  let failingUnderWay = 0;
  let looking: Promise<void> | undefined;
  let soon: NodeJS.Timeout | undefined;
  let isStopped = false;
  const cut = new AbortController();

  function lookSoon() {
    if (!isStopped) soon ??= setTimeout(look, GATHER_MS).unref();
  }

  function look() {
    soon = undefined;
    if (looking) return lookSoon();
    looking = takeAll()
      .catch(onError)
      .finally(() => {
        looking = undefined;
      });
  }

  async function takeAll() {
    while (!isStopped && attempts.size < OVERALL) {
      const leased = await queue.lease({
        most: OVERALL - attempts.size,
        perWebhook: PER_WEBHOOK,
        failing: { ...FAILING, most: FAILING.most - failingUnderWay },
        underWay,
      });
      if (leased.length === 0) return;
      for (const delivery of leased) begin(delivery);
    }
  }

  function begin(delivery: Leased) {
    const { webhookId, failingSince } = delivery;
    const failing = failingSince === null ? 0 : 1;
    failingUnderWay += failing;
    underWay.set(webhookId, (underWay.get(webhookId) ?? 0) + 1);
    const attempt = deliver(delivery)
      .catch(onError)
      .finally(() => {
        attempts.delete(attempt);
        failingUnderWay -= failing;
        const left = (underWay.get(webhookId) ?? 0) - 1;
        if (left > 0) underWay.set(webhookId, left);
        else underWay.delete(webhookId);
        lookSoon();
      });
    attempts.add(attempt);
  }

  async function deliver(delivery: Leased) {
    const at = Date.now();
    const reason = reasonNotToSend(delivery);
    if (reason) return settle(delivery, { at, error: reason, ms: 0 }, { status: "failed", isUnsent: true });
    const { pausedUntil } = delivery;
    if (pausedUntil !== null && pausedUntil > at) return queue.putOff(delivery, pausedUntil);
    const start = performance.now();
    const { status, error, retryAfter } = await post(delivery, at);
    // The receiver is not to blame.
    if (cut.signal.aborted && status === undefined) return queue.putOff(delivery, Date.now());
    const attempt: Attempt = {
      at,
      ...(status !== undefined && { status }),
      ...(error !== undefined && { error }),
      ms: Math.round(performance.now() - start),
    };
    await settle(delivery, attempt, judge(delivery, { status, error, retryAfter } as Answer, Date.now()));
  }

  function post({ event, url, secrets }: Leased, at: number): Promise<Answer> {
    const body = JSON.stringify(toMessage(event, shortUrl));
    return send(url, signatureHeaders(event.id, at, body, secrets), body, cut.signal);
  }

  async function settle(delivery: Leased, attempt: Attempt, outcome: Outcome) {
    await queue.settle(delivery, attempt, outcome, SYSTEM);
    onSettled?.(outcome);
  }

  const timer = setInterval(look, LOOK_EVERY_MS).unref();
  const forget = queue.onDue(lookSoon);
  lookSoon();

  return {
    async stop() {
      isStopped = true;
      clearInterval(timer);
      clearTimeout(soon);
      forget();
      await looking;
      const grace = setTimeout(() => cut.abort(), GRACE_MS);
      await Promise.all(attempts);
      clearTimeout(grace);
    },
  };
}

/** Looked at for each attempt: since the event was written down, things may have changed. */
function reasonNotToSend({ enabled, plan, secrets }: Leased): string | undefined {
  if (!isPaid(plan)) return "Not sent: the plan has no webhooks.";
  if (!enabled) return "Not sent: the webhook is disabled.";
  if (secrets.length === 0) return "Not sent: the secret cannot be read. Replace it.";
  return undefined;
}
