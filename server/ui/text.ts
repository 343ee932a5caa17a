const DAY_FORMAT = new Intl.DateTimeFormat("en-US", { dateStyle: "medium", timeZone: "UTC" });

/** Returns a time as plain text, such as “Nov 22, 2026, 14:05 UTC”. */
export function formatTime(at: number): string {
  return `${formatDay(at)}, ${hourOf(at)}`;
}

/** Returns a date as plain text, such as “Nov 22, 2026”. */
export function formatDay(at: number): string {
  return DAY_FORMAT.format(at);
}

/** Returns a date as the API writes it, such as “2026-11-22”. */
export function toDate(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}

const MINUTE_MS = 60_000;
const UNITS = [
  ["d", 24 * 60],
  ["h", 60],
  ["min", 1],
] as const;
const RECENT_MINUTES = 7 * 24 * 60;

/** Returns a time of this week as seen from now, such as “3 h ago” or “in 5 min”. */
export function relativeTime(at: number, now = Date.now()): string | undefined {
  const minutes = Math.abs(at - now) / MINUTE_MS;
  if (minutes >= RECENT_MINUTES) return undefined;
  const [unit, length] = UNITS.find(([, length]) => minutes >= length) ?? UNITS[2];
  const span = `${Math.max(1, Math.trunc(minutes / length))} ${unit}`;
  if (at > now) return `in ${span}`;
  return minutes < 1 ? "just now" : `${span} ago`;
}

/** Returns the time of day, such as “14:05 UTC”. */
export function hourOf(at: number): string {
  return `${new Date(at).toISOString().slice(11, 16)} UTC`;
}

export function capitalized(word: string): string {
  return word.slice(0, 1).toUpperCase() + word.slice(1);
}

/** Returns a number with its noun, such as “1 link” or “1,024 links”. */
export function pluralize(count: number, noun: string, plural = `${noun}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? noun : plural}`;
}
