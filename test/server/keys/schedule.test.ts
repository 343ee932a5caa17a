import test from "ava";
import { endOf, keysInUse, withoutEnded } from "../../../server/keys/schedule.ts";

const LIFETIME = 100;
const names = (keys: { name: string }[]) => keys.map(({ name }) => name).join(" ");

const KEYS = [{ name: "next", active_from: 2000 }, { name: "current", active_from: 1000 }, { name: "first" }];

const MOMENTS: [now: number, inUse: string][] = [
  [0, "first next current"],
  [999, "first next current"],
  [1000, "current next first"],
  [1099, "current next first"],
  [1100, "current next"],
  [2000, "next current"],
  [2100, "next"],
  [999_999, "next"],
];

for (const [now, inUse] of MOMENTS) {
  test(`at ${now}, the first of "${inUse}" signs and all of them verify`, (t) => {
    t.is(names(keysInUse(KEYS, now, LIFETIME)), inUse);
  });
}

test("a key ends when its successor has been in use for the lifetime of its signatures", (t) => {
  t.deepEqual(
    [0, 1, 2].map((index) => endOf(KEYS, index, LIFETIME)),
    [Number.POSITIVE_INFINITY, 2100, 1100],
  );
  t.is(names(withoutEnded(KEYS, 1100, LIFETIME)), "next current");
});

test("of the keys of an earlier version, which have no times, the first one signs", (t) => {
  const keys: { name: string; active_from?: number }[] = [{ name: "one" }, { name: "spare" }];
  t.is(names(keysInUse(keys, 1000, LIFETIME)), "one");
});
