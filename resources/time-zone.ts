// The runtime accepts these spellings, but lists the former ones.
const RENAMED: Record<string, string> = {
  "Africa/Asmera": "Africa/Asmara",
  "America/Godthab": "America/Nuuk",
  "Asia/Calcutta": "Asia/Kolkata",
  "Asia/Katmandu": "Asia/Kathmandu",
  "Asia/Rangoon": "Asia/Yangon",
  "Asia/Saigon": "Asia/Ho_Chi_Minh",
  "Atlantic/Faeroe": "Atlantic/Faroe",
  "Europe/Kiev": "Europe/Kyiv",
  "Pacific/Enderbury": "Pacific/Kanton",
  "Pacific/Ponape": "Pacific/Pohnpei",
  "Pacific/Truk": "Pacific/Chuuk",
};

const LISTED = Intl.supportedValuesOf("timeZone").map((name) => RENAMED[name] ?? name);

/** The names of the IANA database, `UTC` first. */
export const TIME_ZONES = [...new Set(["UTC", ...LISTED.sort()])];

// Creating a format takes longer than using it.
const formats = new Map<string, Intl.DateTimeFormat>();

/** Returns what clocks in a time zone show, as the milliseconds since 1970-01-01 at which they show it in UTC. */
export function toLocalTime(at: number, timeZone: string): number {
  if (timeZone === "UTC") return at;
  const format =
    formats.get(timeZone) ?? new Intl.DateTimeFormat("en-US", { timeZone, timeZoneName: "longOffset" });
  formats.set(timeZone, format);
  const parts = format.formatToParts(at);
  // Such as “GMT+05:30”, or “GMT”.
  const offset = parts.find(({ type }) => type === "timeZoneName")?.value.slice(3);
  return at - Date.parse(`1970-01-01T00:00:00${offset || "Z"}`);
}

/** Returns what clocks in a time zone show now, as `toLocalTime`. */
export function nowIn(timeZone: string): number {
  return toLocalTime(Date.now(), timeZone);
}
