import test from "ava";
import { nextOutcome, RETRY_DELAYS_MS, SLOW_MS } from "../../resources/webhooks/retry-policy.ts";
import type { EndpointResponse } from "../../resources/webhooks/send.ts";
import type { LeasedDelivery } from "../../resources/webhooks/types.ts";

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_S = 24 * 60 * 60;
const NOW = Date.parse("2026-03-01T12:00:00Z");

const FIRST = { attemptCount: 0, failingSince: null, failures: 0, verifies: false };
const outcomeOf = (response: EndpointResponse, delivery: Partial<LeasedDelivery> = {}, ms = 10) =>
  nextOutcome({ ...FIRST, ...delivery } as LeasedDelivery, response, { now: NOW, ms });

function delayOf(...args: Parameters<typeof outcomeOf>): number {
  const outcome = outcomeOf(...args);
  if (outcome.status !== "pending") throw new Error(`not retried, but ${outcome.status}`);
  return outcome.retryAt - NOW;
}

const isAround = (actual: number, expected: number) =>
  actual >= expected * 0.9 - 1 && actual <= expected * 1.1 + 1;

test("every 2xx status is a success, and a slow one is recognized", (t) => {
  for (const status of [200, 201, 202, 204, 206, 299]) {
    t.deepEqual(outcomeOf({ status }), { status: "succeeded", isSlow: false }, `${status}`);
    t.deepEqual(outcomeOf({ status }, {}, SLOW_MS), { status: "succeeded", isSlow: true }, `${status}`);
  }
});

test("every other status, and no response, is retried after 5 s", (t) => {
  for (const status of [300, 301, 302, 304, 307, 308, 400, 401, 403, 404, 405, 409, 429, 500, 502, 503, 599])
    t.true(isAround(delayOf({ status }), 5 * SECOND_MS), `${status}`);
  t.true(isAround(delayOf({ error: "The response timed out." }), 5 * SECOND_MS));
});

test("410 is final, and disables the webhook", (t) => {
  const disable = "The endpoint responded with 410 Gone.";
  t.deepEqual(outcomeOf({ status: 410 }), { status: "failed", disable });
});

// The delays that Standard Webhooks 1.0.0 recommends.
const HOURS = [2, 5, 10, 14, 20, 24];
const SCHEDULE = [5 * SECOND_MS, 5 * MINUTE_MS, 30 * MINUTE_MS, ...HOURS.map((hours) => hours * HOUR_MS)];

test("a delivery is attempted ten times in three days, and the test event of an endpoint five times", (t) => {
  t.deepEqual([...RETRY_DELAYS_MS], SCHEDULE);
  for (const [attemptCount, delay] of SCHEDULE.entries()) {
    t.true(isAround(delayOf({ status: 500 }, { attemptCount }), delay), `${attemptCount}`);
    if (attemptCount < 4)
      t.true(isAround(delayOf({ status: 500 }, { attemptCount, verifies: true }), delay), `${attemptCount}`);
  }
  t.deepEqual(outcomeOf({ status: 500 }, { attemptCount: 9 }), { status: "failed" });
  t.deepEqual(outcomeOf({ status: 500 }, { attemptCount: 4, verifies: true }), { status: "failed" });
});

test("retry delays differ between deliveries", (t) => {
  const delays = Array.from({ length: 20 }, () => delayOf({ status: 500 }));
  t.true(new Set(delays).size > 10);
});

test("a webhook whose deliveries have all failed for 60 hours is disabled with the last attempt", (t) => {
  const isDisabled = (hours: number) =>
    "disable" in outcomeOf({ status: 500 }, { attemptCount: 9, failingSince: NOW - hours * HOUR_MS });
  t.deepEqual([59, 61].map(isDisabled), [false, true]);
});

test("five failures in a row block a webhook for 10 s, and each further one for longer, up to five minutes", (t) => {
  const blocked = Array.from({ length: 12 }, (_, failures) => {
    const outcome = outcomeOf({ status: 500 }, { failures });
    return "blockUntil" in outcome && outcome.blockUntil ? (outcome.blockUntil - NOW) / SECOND_MS : 0;
  });
  t.deepEqual(blocked, [0, 0, 0, 0, 10, 20, 40, 80, 160, 300, 300, 300]);
});

const inSeconds = (seconds: number) => new Date(NOW + seconds * SECOND_MS).toUTCString();
const RETRY_AFTER: [status: number, value: string, seconds: number][] = [
  [429, "120", 120],
  [502, "120", 120],
  [503, "600", 600],
  [504, "60", 60],
  [429, inSeconds(300), 300],
  [429, `${7 * DAY_S}`, DAY_S],
  [429, "9".repeat(30), DAY_S],
  [429, inSeconds(30 * DAY_S), DAY_S],
];

test("an endpoint is paused as long as its Retry-After says, for a day at most", (t) => {
  for (const [status, retryAfter, seconds] of RETRY_AFTER) {
    const retryAt = NOW + seconds * SECOND_MS;
    const paused = { status: "pending", retryAt, pauseUntil: retryAt } as const;
    t.deepEqual(outcomeOf({ status, retryAfter }), paused, `${status} ${retryAfter}`);
  }
});

test("a Retry-After that is shorter than the usual delay, invalid, or of another status changes nothing", (t) => {
  for (const [status, retryAfter] of [
    [429, "1"],
    [429, "-60"],
    [429, inSeconds(-60)],
    [429, "soon"],
    [429, ""],
    [500, "120"],
  ] as const)
    t.true(isAround(delayOf({ status, retryAfter }), 5 * SECOND_MS), `${status} ${retryAfter}`);
});
