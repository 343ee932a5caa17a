import test from "ava";
import { toTime } from "../../../../resources/links/import/times.ts";
import { toBoolean, toNumber } from "../../../../resources/links/import/values.ts";
import { linkSchemas } from "../../../../resources/links/schema.ts";

const {
  created_at: time,
  archived,
  clicks,
} = linkSchemas({ ownHosts: new Set(), ownWords: new Set() }).imported.shape;

/** Returns what is stored of a value, or "refused". */
const stored = {
  time: (written: unknown) => outcome(time.safeParse(toTime(written)), (text) => Date.parse(text ?? "")),
  boolean: (written: unknown) => outcome(archived.safeParse(toBoolean(written)), (value) => value),
  number: (written: unknown) => outcome(clicks.safeParse(toNumber(written)), (value) => value),
};

function outcome<T>(result: { success: boolean; data?: T }, read: (data: T) => unknown): unknown {
  return result.success ? read(result.data as T) : "refused";
}

const MONTHS = "January February March April May June July August September October November December".split(
  " ",
);
const two = (number: number) => String(number).padStart(2, "0");

/** The parts of a time in UTC, of which the forms are made. The expected value is their sum, not a reading of the text. */
const TIMES = [
  [2024, 3, 1, 9, 30, 0],
  [2024, 2, 29, 23, 59, 59],
  [2001, 9, 9, 1, 46, 40],
  [2023, 12, 31, 0, 0, 0],
  [2019, 7, 4, 12, 5, 9],
  [2022, 10, 10, 10, 10, 10],
  [2025, 11, 12, 13, 14, 15],
  [2020, 1, 2, 3, 4, 5],
].map(([year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0]) => {
  const at = Date.UTC(year, month - 1, day, hour, minute, second);
  const weekday = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"][new Date(at).getUTCDay()];
  const name = MONTHS[month - 1] as string;
  return {
    at,
    toDay: Date.UTC(year, month - 1, day),
    toMinute: at - second * 1000,
    year,
    date: `${year}-${two(month)}-${two(day)}`,
    month: two(month),
    day,
    short: name.slice(0, 3),
    name,
    weekday,
    clock: `${two(hour)}:${two(minute)}:${two(second)}`,
    minutes: `${two(hour)}:${two(minute)}`,
    half: `${hour % 12 || 12}:${two(minute)} ${hour < 12 ? "AM" : "PM"}`,
  };
});

type Parts = (typeof TIMES)[number];
const HOUR = 3_600_000;

const ACCEPTED: [form: (parts: Parts) => unknown, expected: (parts: Parts) => number][] = [
  [({ date }) => date, ({ toDay }) => toDay],
  [({ date, minutes }) => `${date} ${minutes}`, ({ toMinute }) => toMinute],
  [({ date, clock }) => `${date} ${clock}`, ({ at }) => at],
  [({ date, clock }) => `${date}T${clock}`, ({ at }) => at],
  [({ date, clock }) => `${date}T${clock}Z`, ({ at }) => at],
  [({ date, clock }) => `${date}t${clock}z`, ({ at }) => at],
  [({ date, clock }) => `${date} ${clock} UTC`, ({ at }) => at],
  [({ date, clock }) => `${date} ${clock} GMT`, ({ at }) => at],
  [({ date, clock }) => `${date} ${clock}+00`, ({ at }) => at],
  [({ date, clock }) => `${date} ${clock}+02`, ({ at }) => at - 2 * HOUR],
  [({ date, clock }) => `${date} ${clock}.123456+05:30`, ({ at }) => at + 123 - 5.5 * HOUR],
  [({ date, clock }) => `${date}T${clock}.5Z`, ({ at }) => at + 500],
  [({ date, clock }) => `${date}T${clock}-0530`, ({ at }) => at + 5.5 * HOUR],
  [({ date, clock }) => `${date}T${clock}.000+0000`, ({ at }) => at],
  [({ date, clock }) => `${date} ${clock} +01:00`, ({ at }) => at - HOUR],
  [({ year, month, day }) => `${two(day)}.${month}.${year}`, ({ toDay }) => toDay],
  [({ year, month, day, minutes }) => `${two(day)}.${month}.${year} ${minutes}`, ({ toMinute }) => toMinute],
  [({ year, month, day, clock }) => `${two(day)}.${month}.${year} ${clock}`, ({ at }) => at],
  [({ short, day, year }) => `${short} ${day}, ${year}`, ({ toDay }) => toDay],
  [({ name, day, year }) => `${name} ${day}, ${year}`, ({ toDay }) => toDay],
  [({ name, day, year, half }) => `${name} ${day}, ${year} ${half}`, ({ toMinute }) => toMinute],
  [({ short, day, year, half }) => `${short} ${day}, ${year}, ${half} UTC`, ({ toMinute }) => toMinute],
  [({ short, day, year, clock }) => `${short.toUpperCase()} ${two(day)}, ${year} ${clock}`, ({ at }) => at],
  [
    ({ weekday, short, day, year, clock }) => `${weekday}, ${two(day)} ${short} ${year} ${clock} GMT`,
    ({ at }) => at,
  ],
  [
    ({ weekday, short, day, year, clock }) => `${weekday}, ${day} ${short} ${year} ${clock} +0100`,
    ({ at }) => at - HOUR,
  ],
  [({ short, day, year }) => `${day} ${short} ${year}`, ({ toDay }) => toDay],
  [({ at }) => at / 1000, ({ at }) => at],
  [({ at }) => String(at / 1000), ({ at }) => at],
  // Milliseconds have twelve digits until September 2001.
  [({ at }) => String(at).padStart(13, "1"), ({ at }) => Number(String(at).padStart(13, "1"))],
];

const REFUSED: ((parts: Parts) => unknown)[] = [
  // Which is the day?
  ({ year, month, day }) => `${month}/${two(day)}/${year}`,
  ({ year, month, day, minutes }) => `${two(day)}/${month}/${year} ${minutes}`,
  ({ year, month, day }) => `${two(day)}-${month}-${year}`,
  ({ year, month, day }) => `${month}/${two(day)}/${year % 100}`,
  ({ year, month, day }) => `${two(day)}.${month}.${two(year % 100)}`,
  // Which zone?
  ({ date, clock }) => `${date} ${clock} EST`,
  ({ date, clock }) => `${date} ${clock} CET`,
  ({ weekday, short, day, year, clock }) => `${weekday}, ${two(day)} ${short} ${year} ${clock} EST`,
  ({ name, day, year, half }) => `${name} ${day}, ${year} ${half} PDT`,
  ({ date, clock }) => `${date} ${clock} IST`,
  ({ date, clock }) => `${date} ${clock} GMT+2`,
  ({ date, clock }) => `${date} ${clock}+0:30`,
  ({ date, clock }) => `${date} ${clock} Europe/Berlin`,
  // Numbers that aren't seconds
  ({ year }) => String(year),
  ({ year }) => year,
  ({ date }) => date.replaceAll("-", ""),
  ({ date }) => Number(date.replaceAll("-", "")),
  ({ date, clock }) => date.replaceAll("-", "") + clock.replaceAll(":", ""),
  ({ date, minutes }) => date.replaceAll("-", "") + minutes.replace(":", ""),
  // The days since 1900 of a spreadsheet
  ({ toDay }) => String(25_569 + toDay / (24 * HOUR)),
  ({ at }) => 25_569 + at / (24 * HOUR),
  ({ at }) => String(25_569 + at / (24 * HOUR)).replace(".", ","),
  ({ at }) => `${at}000`,
  ({ at }) => `-${at}`,
  ({ at }) => `${at / 1000}.5`,
  // Dates that don't exist, or contradict themselves
  ({ year }) => `${year}-02-30`,
  ({ year }) => `Feb 30, ${year}`,
  ({ year }) => `31.04.${year}`,
  ({ year }) => `${year}-13-01`,
  ({ date }) => `${date} 24:00`,
  ({ date }) => `${date} 09:60`,
  ({ date }) => `${date}T09:30:00+25:00`,
  ({ short, day, year }) => `${short} ${day}, ${year} 13:30 PM`,
  ({ short, day, year }) => `${short} ${day}, ${year} 0:30 AM`,
  ({ short, day, year, weekday }) => `${weekday === "Mon" ? "Tue" : "Mon"}, ${day} ${short} ${year}`,
  ({ day, year }) => `Sem ${day}, ${year}`,
  // Other languages, and what programs print for themselves
  ({ day, year }) => `${day}. März ${year}`,
  ({ short, day, year, weekday, clock }) =>
    `${weekday} ${short} ${two(day)} ${year} ${clock} GMT+0000 (Coordinated Universal Time)`,
  ({ date, clock }) => `${date} ${clock} +0000 UTC`,
  ({ date }) => `${date} yesterday`,
  ({ date, half }) => `${date} ${half}`,
  ({ date }) => [date],
  ({ date }) => ({ date }),
  ({ at }) => at % 2 === 0,
];

test("a time is stored as it is written, or refused: of 584 spellings, none is read as another time", (t) => {
  const all = TIMES.flatMap((parts) => [
    ...ACCEPTED.map(([form, expected]) => ({ written: form(parts), expected: expected(parts) as unknown })),
    ...REFUSED.map((form) => ({ written: form(parts), expected: "refused" as unknown })),
  ]);
  t.is(all.length, 584);
  t.deepEqual(
    all.map(({ written }) => [written, stored.time(written)]),
    all.map(({ written, expected }) => [written, expected]),
  );
});

const BOOLEANS: Record<string, string[]> = {
  true: ["true", "t", "yes", "1", "WAHR", "VRAI"],
  false: ["false", "f", "no", "0", "FALSCH", "FAUX"],
  refused: [
    "",
    "2",
    "-1",
    "01",
    "y",
    "maybe",
    "yes please",
    "ja",
    "oui",
    "null",
    "undefined",
    "[object Object]",
    "tt",
  ],
};

test("true and false are read in the words of programs, databases and spreadsheets; others are refused", (t) => {
  for (const [meaning, words] of Object.entries(BOOLEANS))
    for (const word of words.flatMap((one) => [one, one.toLowerCase(), one.toUpperCase()]))
      t.is(String(stored.boolean(word)), meaning, word);
  for (const value of [true, false]) t.is(stored.boolean(value), value);
  for (const value of [2, -1, [], [true], {}, { value: true }]) t.is(stored.boolean(value), "refused");
});

test("whole numbers are read with the decimal places of a database or spreadsheet; others are refused", (t) => {
  const numbers = { "0": 0, "12": 12, "12.0": 12, "12,0": 12, "12.00": 12, "12,00": 12, "0012": 12 };
  for (const [text, number] of Object.entries(numbers)) t.is(stored.number(text), number, text);
  // A thousand, or one with three places?
  for (const text of [
    "1,000",
    "1.000",
    "1 000",
    "1.5",
    "1,5",
    "1e3",
    "0x10",
    "-1",
    "+1",
    "١٢",
    "9".repeat(16),
    "12 clicks",
  ])
    t.is(stored.number(text), "refused", text);
});
