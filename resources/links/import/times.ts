const DATE = String.raw`(?<day>\d{1,2}) (?<name>[a-z]{3,9}) (?<year>\d{4})`;
const ZONE = String.raw`(?: ?(?<zone>z|utc|gmt|[+-]\d{2}(?::?\d{2})?))?`;
const SECOND = String.raw`(?::(?<second>\d{2})(?<fraction>\.\d{1,9})?)?`;
const CLOCK = String.raw`(?<hour>\d{1,2}):(?<minute>\d{2})${SECOND}(?: ?(?<half>[ap]m))?${ZONE}`;

/** A text has one of these forms at most. Their parts have fixed lengths, so matching takes no time. */
const FORMS = [
  // 2024-03-01, 2024-03-01 09:30, 2024-03-01T09:30:00.123+0100
  String.raw`(?<year>\d{4})-(?<month>\d{2})-(?<day>\d{2})(?:[t ](?<hour>\d{2}):(?<minute>\d{2})${SECOND}${ZONE})?`,
  // 01.03.2024, 01.03.2024 09:30: the day comes first wherever dots separate it from the month
  String.raw`(?<day>\d{2})\.(?<month>\d{2})\.(?<year>\d{4})(?: (?<hour>\d{2}):(?<minute>\d{2})${SECOND})?`,
  // Mar 1, 2024, March 1, 2024 9:30 AM
  String.raw`(?<name>[a-z]{3,9}) (?<day>\d{1,2}), (?<year>\d{4})(?:,? ${CLOCK})?`,
  // 1 Mar 2024, Fri, 01 Mar 2024 09:30:00 GMT
  `(?:(?<weekday>[a-z]{3}), )?${DATE}(?: ${CLOCK})?`,
].map((form) => new RegExp(`^${form}$`, "i"));

const LONGEST = 50;
const WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const MONTHS = "january february march april may june july august september october november december".split(
  " ",
);

type Parts = Record<string, string | undefined>;

/**
 * Converts a time in one of the forms that docs/import.md lists to RFC 3339; without a zone it is UTC. Any other value
 * stays as it is, and the schema refuses it: of `01/02/2024` either number may be the month, `45352` and `20240301`
 * would be seconds, and `EST` is the zone of several countries.
 */
export function toTime(value: unknown): unknown {
  if (typeof value !== "string" && typeof value !== "number") return value;
  const text = String(value);
  if (text.length > LONGEST) return value;
  // Seconds since 1970 have ten digits from 2001 to 2286, milliseconds have thirteen.
  if (/^[1-9]\d{9}$/.test(text)) return new Date(Number(text) * 1000).toISOString();
  if (/^[1-9]\d{12}$/.test(text)) return new Date(Number(text)).toISOString();
  const parts = FORMS.map((form) => form.exec(text)?.groups).find((groups) => groups !== undefined);
  return (parts && toRfc3339(parts)) ?? value;
}

function toRfc3339(parts: Parts): string | undefined {
  const { year = "", day = "", minute = "00", second = "00", fraction = "" } = parts;
  const month = parts.month ?? monthOf(parts.name);
  const hour = hourOf(parts);
  if (month === undefined || hour === undefined) return undefined;
  const date = `${year}-${month}-${day.padStart(2, "0")}`;
  if (parts.weekday && WEEKDAYS[new Date(date).getUTCDay()] !== parts.weekday.toLowerCase()) return undefined;
  return `${date}T${hour}:${minute}:${second}${fraction}${offsetOf(parts.zone)}`;
}

function monthOf(name = ""): string | undefined {
  const written = name.toLowerCase();
  const index = MONTHS.findIndex((month) => month === written || month.slice(0, 3) === written);
  return index < 0 ? undefined : twoDigits(index + 1);
}

/** Returns the hour of 0 to 23, or undefined for one such as 13 PM. */
function hourOf({ hour = "0", half }: Parts): string | undefined {
  const number = Number(hour);
  if (half === undefined) return twoDigits(number);
  if (number < 1 || number > 12) return undefined;
  return twoDigits((number % 12) + (/^p/i.test(half) ? 12 : 0));
}

/** `+00` → `+00:00`, `-0530` → `-05:30` */
function offsetOf(zone = "Z"): string {
  const [, hours, minutes = "00"] = /^([+-]\d{2}):?(\d{2})?$/.exec(zone) ?? [];
  return hours === undefined ? "Z" : `${hours}:${minutes}`;
}

function twoDigits(number: number): string {
  return String(number).padStart(2, "0");
}
