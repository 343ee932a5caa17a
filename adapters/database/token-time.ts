// Milliseconds in base 36 have nine digits until the year 5188.
const TIME_LENGTH = 9;

/** Returns a time, in epoch milliseconds, as tokens contain it after their prefix: nine digits of base 36 (0-9, a-z). */
export function tokenTimeAt(time: number): string {
  return time.toString(36).padStart(TIME_LENGTH, "0");
}
