import fc from "fast-check";
import { atOnce } from "../database/storage.ts";
import { SEED } from "../rounds.ts";

// Long enough for a request to depend on earlier ones, short enough to find out on which.
const LENGTH = 50;
// One sequence waits for the disk while another one computes.
const CONCURRENCY = 4;
// A request is repeated once in a while, for its idempotency key to be seen again.
const AGAIN_ONE_IN = 20;
// Shorter than ava's timeout of two minutes, so that the shortest failing sequence so far is still reported.
const LIMIT_MS = 60_000;
// Almost never generated, but the first thing that a failing sequence is reduced to.
const NEVER = 1_000_000_000;

// Rare operations may need several rounds to succeed once.
const MAX_ROUNDS = 5;

/**
 * Sends a number of random requests, in sequences, and more of them until `isEnough`. `start` prepares one and returns how
 * its requests are sent. A failure reports the shortest failing sequence and its seed.
 */
export async function sendSequences<Request>(
  requests: fc.Arbitrary<Request>,
  count: number,
  start: () => Promise<(request: Request) => Promise<void>>,
  isEnough: () => boolean,
): Promise<void> {
  const steps = fc.oneof(
    { weight: AGAIN_ONE_IN, arbitrary: requests },
    { weight: 1, arbitrary: fc.constant("again") },
  );
  const sequences = fc.array(fc.option(steps, { freq: NEVER }), { minLength: LENGTH, maxLength: LENGTH });
  const property = fc.asyncProperty(sequences, async (sequence) => {
    const send = await start();
    let last: Request | undefined;
    for (const step of sequence) {
      if (step !== null && step !== "again") last = step as Request;
      if (step !== null && last !== undefined) await send(last);
    }
  });
  const length = count / LENGTH;
  let round = 0;
  do {
    const seeds = Array.from({ length }, (_, index) => SEED + round * length + index).values();
    await atOnce(CONCURRENCY, async () => {
      for (const seed of seeds)
        await fc.assert(property, {
          numRuns: 1,
          seed,
          includeErrorInReport: true,
          interruptAfterTimeLimit: LIMIT_MS,
          markInterruptAsFailure: true,
        });
    });
  } while (++round < MAX_ROUNDS && !isEnough());
}
