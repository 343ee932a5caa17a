let realNow = Date.now;
let offset = 0;

/** Slows the clock down, for a file whose tests take longer than something that they need is valid. */
export function slowClock(factor: number): void {
  const [now, start] = [realNow, realNow()];
  realNow = () => start + Math.floor((now() - start) / factor);
  advanceClock(0);
}

/** Advances the clock for the service and its clients. It stays so for the files that follow in the thread. */
export function advanceClock(ms: number): void {
  offset += ms;
  Date.now = () => realNow() + offset;
}

export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

/** Returns the time in seconds, as tokens have it. */
export const now = () => Math.floor(Date.now() / 1000);

/** Advances the clock to noon in UTC, so that the tests of this file don't reach the next day by themselves. */
export function advanceToNoon(): void {
  advanceClock(DAY_MS - ((Date.now() + DAY_MS / 2) % DAY_MS));
}
