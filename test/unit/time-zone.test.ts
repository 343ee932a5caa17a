import test from "ava";
import { TIME_ZONES, toLocalTime } from "../../resources/time-zone.ts";

const OFFSETS: [timeZone: string, utc: string, local: string][] = [
  ["Europe/Berlin", "2026-03-29T00:59:59Z", "2026-03-29T01:59:59Z"],
  ["Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-29T03:00:00Z"],
  ["Asia/Kolkata", "2026-01-31T18:30:00Z", "2026-02-01T00:00:00Z"],
  ["America/St_Johns", "2026-01-01T03:29:59Z", "2025-12-31T23:59:59Z"],
  ["Pacific/Kiritimati", "2026-01-31T10:00:00Z", "2026-02-01T00:00:00Z"],
];

for (const [timeZone, utc, local] of OFFSETS)
  test(`in ${timeZone}, clocks show ${local.slice(0, -1)} at ${utc}`, (t) => {
    t.is(new Date(toLocalTime(Date.parse(utc), timeZone)).toISOString(), local.replace("Z", ".000Z"));
    t.true(TIME_ZONES.includes(timeZone));
  });
