const realNow = Date.now;
let offset = 0;

/** Moves the clock of this test file forward, for the service and its clients alike. */
export function advanceClock(ms: number): void {
  offset += ms;
  Date.now = () => realNow() + offset;
}
