import test from "ava";
import { toTime } from "../../resources/links/import/times.ts";
import { toBoolean, toNumber } from "../../resources/links/import/values.ts";
import { NO_NAMES } from "../../resources/links/rules.ts";
import { linkSchemas } from "../../resources/links/schema.ts";

const { shape } = linkSchemas(NO_NAMES).imported;
const { created_at: time, expires_at: expiry, archived, clicks } = shape;

const stored = {
  time: (written: unknown) => outcome(time.safeParse(toTime(written)), (text) => Date.parse(text ?? "")),
  boolean: (written: unknown) => outcome(archived.safeParse(toBoolean(written)), (value) => value),
  number: (written: unknown) => outcome(clicks.safeParse(toNumber(written)), (value) => value),
};

function outcome<T>(result: { success: boolean; data?: T }, read: (data: T) => unknown): unknown {
  return result.success ? read(result.data as T) : "refused";
}

const ACCEPTED: [written: unknown, time: string][] = [
  ["2024-03-01", "2024-03-01T00:00:00Z"],
  ["2024-02-29 23:59", "2024-02-29T23:59:00Z"],
  ["2024-03-01 09:30:05", "2024-03-01T09:30:05Z"],
  ["2024-03-01T09:30:05Z", "2024-03-01T09:30:05Z"],
  ["2024-03-01 09:30:05 UTC", "2024-03-01T09:30:05Z"],
  ["2024-03-01 01:30:05+02", "2024-02-29T23:30:05Z"],
  ["2024-03-01 09:30:05.123456+05:30", "2024-03-01T04:00:05.123Z"],
  ["2024-03-01T09:30:05-0530", "2024-03-01T15:00:05Z"],
  ["2024-03-01 09:30:05 +01:00", "2024-03-01T08:30:05Z"],
  ["01.03.2024", "2024-03-01T00:00:00Z"],
  ["01.03.2024 09:30", "2024-03-01T09:30:00Z"],
  ["Mar 1, 2024", "2024-03-01T00:00:00Z"],
  ["September 9, 2001", "2001-09-09T00:00:00Z"],
  ["March 1, 2024 9:30 AM", "2024-03-01T09:30:00Z"],
  ["July 4, 2019 12:05 PM", "2019-07-04T12:05:00Z"],
  ["December 31, 2023 12:00 AM", "2023-12-31T00:00:00Z"],
  ["Fri, 01 Mar 2024 09:30:05 GMT", "2024-03-01T09:30:05Z"],
  ["Fri, 1 Mar 2024 09:30:05 +0100", "2024-03-01T08:30:05Z"],
  [1709285405, "2024-03-01T09:30:05Z"],
  ["1709285405123", "2024-03-01T09:30:05.123Z"],
];

const REFUSED: Record<string, unknown[]> = {
  "which is the day?": ["03/01/2024", "01/03/2024 09:30", "01-03-2024", "03/01/24", "01.03.24"],
  "which zone?": [
    ...["2024-03-01 09:30:05 EST", "2024-03-01 09:30:05 CET", "2024-03-01 09:30:05 IST"],
    ...["Fri, 01 Mar 2024 09:30:05 EST", "March 1, 2024 9:30 AM PDT", "2024-03-01 09:30:05 GMT+2"],
    ...["2024-03-01 09:30:05+0:30", "2024-03-01 09:30:05 Europe/Berlin"],
  ],
  "numbers that aren't seconds": [
    ...["2024", 2024, "20240301", 20240301, "20240301093005", "202403010930"],
    ...["1709285405123000", "-1709285405123", "1709285405.5"],
  ],
  "the days since 1900 of a spreadsheet": ["45352", 45352.39, "45352,39"],
  "dates that don't exist, or contradict themselves": [
    ...["2024-02-30", "Feb 30, 2024", "31.04.2024", "2023-02-29", "2024-13-01", "2024-03-01 24:00"],
    ...["2024-03-01 09:60", "2024-03-01T09:30:00+25:00", "Mar 1, 2024 13:30 PM", "Mar 1, 2024 0:30 AM"],
    ...["Mon, 1 Mar 2024", "Sem 1, 2024"],
  ],
  "other languages, and what programs print for themselves": [
    ...["1. März 2024", "Fri Mar 01 2024 09:30:05 GMT+0000 (Coordinated Universal Time)"],
    ...["2024-03-01 09:30:05 +0000 UTC", "2024-03-01 yesterday", "2024-03-01 9:30 AM"],
  ],
  "other types": [["2024-03-01"], { date: "2024-03-01" }, true, false],
};

test("a time is stored as it is written, also a past expiry, or refused, and never read as another time", (t) => {
  for (const [written, expected] of ACCEPTED)
    t.is(stored.time(written), Date.parse(expected), String(written));
  t.is(expiry.parse("2020-01-01T00:00:00Z"), "2020-01-01T00:00:00Z");
  for (const [why, values] of Object.entries(REFUSED))
    for (const written of values) t.is(stored.time(written), "refused", `${why} ${written}`);
});

test("a time of any day and month is read alike in each form", (t) => {
  const names = "January February March April May June July August September October November December";
  for (const [index, name] of names.split(" ").entries()) {
    const [month, day] = [String(index + 1).padStart(2, "0"), String(28 - index).padStart(2, "0")];
    const expected = Date.UTC(2023, index, 28 - index);
    for (const written of [`2023-${month}-${day}`, `${day}.${month}.2023`, `${name} ${day}, 2023`])
      t.is(stored.time(written), expected, written);
    t.is(stored.time(`${day} ${name.slice(0, 3)} 2023`), expected, name);
  }
});

const BOOLEANS: Record<string, string> = {
  true: "true t yes 1 WAHR VRAI",
  false: "false f no 0 FALSCH FAUX",
  refused: "2 -1 01 y maybe yes-please ja oui null undefined [object tt",
};

test("true and false are read in the words of programs, databases and spreadsheets; others are refused", (t) => {
  for (const [meaning, words] of Object.entries(BOOLEANS))
    for (const word of words.split(" ").flatMap((one) => [one, one.toLowerCase(), one.toUpperCase()]))
      t.is(String(stored.boolean(word)), meaning, word);
  for (const value of [true, false]) t.is(stored.boolean(value), value);
  for (const value of ["", 2, -1, [], [true], {}, { value: true }]) t.is(stored.boolean(value), "refused");
});

test("whole numbers are read with the decimal places of a database or spreadsheet; others are refused", (t) => {
  const numbers = { "0": 0, "12": 12, "12.0": 12, "12,0": 12, "12.00": 12, "12,00": 12, "0012": 12 };
  for (const [text, number] of Object.entries(numbers)) t.is(stored.number(text), number, text);
  // A thousand, or one with three places?
  const others = ["1,000", "1.000", "1 000", "1.5", "1,5", "1e3", "0x10", "-1", "+1", "١٢", "9".repeat(16)];
  for (const text of [...others, "12 clicks"]) t.is(stored.number(text), "refused", text);
});
