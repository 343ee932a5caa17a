const realNow = Date.now;
let offset = 0;

/** Advances the clock of this test file, for the service and its clients. */
export function advanceClock(ms: number): void {
  offset += ms;
  Date.now = () => realNow() + offset;
}
