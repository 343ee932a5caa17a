import { hash, verify } from "@node-rs/argon2";
import { Problem, RETRY_AFTER_S } from "../../resources/http/problem.ts";

// OWASP Password Storage Cheat Sheet: argon2id (the default of the package), 19 MiB, two passes, one lane.
const PARAMETERS = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };
// A PHC string of zeros for unknown users, which costs as much to verify as a real one.
// In base64, 16 bytes of salt have 22 characters and 32 bytes of hash have 43.
const DUMMY_HASH = `$argon2id$v=19$m=${PARAMETERS.memoryCost},t=${PARAMETERS.timeCost},p=${PARAMETERS.parallelism}$${"A".repeat(22)}$${"A".repeat(43)}`;

// Each hash takes 19 MiB and one core. More concurrency would only make every request slower.
const CONCURRENCY = 2;
// Users on known devices have a queue of their own, which a flood from elsewhere can't fill.
const CONCURRENCY_OF_KNOWN_DEVICES = 1;
const MAX_WAITING = 50;
// Less than half of the places of each queue: one network can't take them all.
const MAX_PER_NETWORK = 20;

export class PasswordQueueFull extends Problem {
  constructor() {
    const headers = { "Retry-After": String(RETRY_AFTER_S) };
    super(503, "busy", "The service is busy. Try again in a moment.", { headers });
  }
}

export type Origin = { network: string; isKnownDevice?: boolean };

export type Passwords = ReturnType<typeof createPasswords>;

/** Without `isLimited`, one network can take every place of its queue. */
export function createPasswords(isLimited = true) {
  const ofAll = createQueue(CONCURRENCY);
  const ofKnownDevices = createQueue(CONCURRENCY_OF_KNOWN_DEVICES);
  const run = <T>(work: () => Promise<T>, from?: Origin): Promise<T> =>
    (from?.isKnownDevice ? ofKnownDevices : ofAll)(work, isLimited ? from?.network : undefined);

  return {
    /** Returns a PHC string. Throws PasswordQueueFull. */
    hash: (password: string, from?: Origin): Promise<string> => run(() => hash(password, PARAMETERS), from),

    /** Takes as long for `null`, an unknown user, as for a wrong password. Throws PasswordQueueFull. */
    async verify(stored: string | null, password: string, from?: Origin): Promise<boolean> {
      const matches = await run(() => verify(stored ?? DUMMY_HASH, password), from);
      return matches && stored !== null;
    },
  };
}

/** Runs this many pieces of work at a time, and the others in the order of their arrival. */
function createQueue(concurrency: number) {
  const waiting: (() => void)[] = [];
  // Of the work that runs or waits.
  const networks: string[] = [];
  let free = concurrency;

  return async <T>(work: () => Promise<T>, network?: string): Promise<T> => {
    const count = networks.filter((one) => one === network).length;
    if (waiting.length >= MAX_WAITING || count >= MAX_PER_NETWORK) throw new PasswordQueueFull();
    if (network !== undefined) networks.push(network);
    if (free > 0) free--;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      if (network !== undefined) networks.splice(networks.indexOf(network), 1);
      const next = waiting.shift(); // gets the place of this one
      if (next) next();
      else free++;
    }
  };
}
