import test from "ava";
import { relativeTime } from "../../server/ui/text.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

test("a time of the last or next seven days is relative, in the largest unit that it fills", (t) => {
  const now = Date.UTC(2026, 10, 29, 12);
  const expected: [difference: number, text: string | undefined][] = [
    [0, "just now"],
    [-MINUTE + 1, "just now"],
    [1, "in 1 min"],
    [-MINUTE, "1 min ago"],
    [HOUR - 1, "in 59 min"],
    [-3.9 * HOUR, "3 h ago"],
    [-DAY, "1 d ago"],
    [7 * DAY - 1, "in 6 d"],
    [-7 * DAY, undefined],
  ];
  for (const [difference, text] of expected) t.is(relativeTime(now + difference, now), text);
});
