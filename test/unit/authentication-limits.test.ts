import test from "ava";
import pLimit from "p-limit";
import { createAuthenticationLimits } from "../../server/rate-limits/authentication.ts";
import { createRateLimitStore } from "../../server/rate-limits/store.ts";
import { advanceClock } from "../harness/clock.ts";

const store = await createRateLimitStore({ RATE_LIMIT: true, REDIS_URL: undefined });
const limits = createAuthenticationLimits(store);
const { signIn, secondFactor } = limits;

let networks = 0;
const newAddress = () => `198.51.${++networks}.7`;
const addressIn = (site: number, half: number, subnet: number) =>
  `2001:db8:${site}:${(half * 256 + subnet).toString(16)}::1`;

type Attempt = (index: number) => Promise<number>;

/** Makes attempts, concurrently or in sequence, and returns how many are allowed without a wait. */
async function countAllowed(times: number, attempt: Attempt, isConcurrent = false) {
  const inTurn = pLimit(isConcurrent ? times : 1);
  const waits = Array.from({ length: times }, (_, index) => inTurn(attempt, index));
  return (await Promise.all(waits)).filter((seconds) => seconds === 0).length;
}

const VISITS = { passkey: 100, "recovery-code": 50, registration: 10, reset: 10, refresh: 300 } as const;

// Serial, because some tests move the clock.
test.serial("an address has five attempts per username and minute, also concurrent ones", async (t) => {
  for (const isConcurrent of [true, false]) {
    const address = newAddress();
    t.is(await countAllowed(30, () => signIn.attempt(address, "ada"), isConcurrent), 5);
    const wait = await signIn.attempt(address, "ada");
    t.true(wait >= 1 && wait <= 60, `${wait}`);
    t.is(await signIn.attempt(newAddress(), "ada"), 0, "the account is not locked");
    t.is(await signIn.attempt(address, "grace"), 0, "another username");
    advanceClock(61_000);
    t.is(await signIn.attempt(address, "ada"), 0, "after a minute");
  }
});

test.serial("other spellings of a username share its limit, and impossible names share one", async (t) => {
  for (const names of [
    ["guessed", "GUESSED", "Guessed", "ｇｕｅｓｓｅｄ", "ｇuessed", "gUESSED", "guesseｄ"],
    ["", "x".repeat(60_000), "a b", "!", "x".repeat(65), "y".repeat(60_000)],
  ]) {
    const address = newAddress();
    t.is(await countAllowed(names.length, (index) => signIn.attempt(address, names[index] ?? "")), 5);
  }
});

test.serial("a network has fifty attempts at usernames, a /56 twice, a /48 four times as many", async (t) => {
  const attempt = (address: string) => (index: number) =>
    signIn.attempt(address, `name-${networks}-${index}`);
  t.is(await countAllowed(60, (index) => signIn.attempt(`203.0.113.${index}`, `name${index}`)), 50);
  let allowed = 0;
  for (const [half, expected] of [100, 200].entries()) {
    for (let subnet = 0; subnet < 5; subnet++)
      allowed += await countAllowed(30, attempt(addressIn(2, half, subnet)));
    t.is(allowed, expected, "of a /56, and of the /48");
  }
  t.is(await countAllowed(1, attempt(addressIn(2, 2, 0))), 0);
  t.is(await countAllowed(1, attempt(addressIn(3, 0, 0))), 1, "another /48");
});

test.serial("successful sign-ins don't count", async (t) => {
  const address = newAddress();
  for (let count = 0; count < 60; count++) {
    t.is(await signIn.attempt(address, "ada"), 0, `${count}`);
    await signIn.succeeded(address, "ada");
  }
});

for (const [kind, most] of Object.entries(VISITS) as [keyof typeof VISITS, number][])
  test.serial(`${kind}: an address has ${most} attempts per minute, a /56 twice as many`, async (t) => {
    const address = newAddress();
    t.is(await countAllowed(most + 5, () => limits.visit(kind, address)), most);
    t.true((await limits.visit(kind, address)) <= 60);
    let allowed = 0;
    for (let subnet = 0; subnet < 3; subnet++)
      allowed += await countAllowed(most, () => limits.visit(kind, addressIn(most, 0, subnet)));
    t.is(allowed, 2 * most);
    advanceClock(61_000);
    t.is(await limits.visit(kind, address), 0);
  });

test.serial("a user has ten guesses of a second factor in 15 minutes, until one succeeds", async (t) => {
  t.is(await countAllowed(20, () => secondFactor.attempt("usr_1"), true), 10);
  advanceClock(61_000);
  t.true((await secondFactor.attempt("usr_1")) > 60);
  t.is(await secondFactor.attempt("usr_2"), 0);
  await secondFactor.succeeded("usr_1");
  t.is(await secondFactor.attempt("usr_1"), 0);
});

test.serial("a user has 600 changes in the dashboard per minute", async (t) => {
  t.is(await countAllowed(610, () => limits.change("usr_1")), 600);
  t.is(await limits.change("usr_2"), 0);
});
