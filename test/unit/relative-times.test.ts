import test from "ava";
import { relativeTime } from "../../server/ui/text.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

test("a time of the last or next seven days is relative, in the largest unit that it fills", (t) => {
  const expected: [difference: number, text?: string][] = [
    [0, "just now"],
    [-MINUTE + 1, "just now"],
    [1, "in 1 min"],
    [-MINUTE, "1 min ago"],
    [HOUR - 1, "in 59 min"],
    [-3.9 * HOUR, "3 h ago"],
    [-DAY, "1 d ago"],
    [7 * DAY - 1, "in 6 d"],
    [-7 * DAY],
  ];
  for (const [difference, text] of expected) t.is(relativeTime(difference, 0), text);
});
