/** Returns whether every supported database can store a text unchanged. Line breaks are allowed. */
export function isText(text: string): boolean {
  return text.isWellFormed() && !text.includes("\0");
}

/** Returns whether a text has no ASCII control characters (U+0000 to U+001F, U+007F) and no unpaired surrogates. */
export function isLine(text: string): boolean {
  return text.isWellFormed() && /^[\u0020-\u007e\u0080-\uffff]*$/.test(text);
}

/** Like `isLine`, but without spaces either, as in URLs. */
export function isUnbroken(text: string): boolean {
  return isLine(text) && !text.includes(" ");
}

/** Counts code points, as JSON Schema (`maxLength`) and the databases do. */
export function hasAtMost(max: number, text: string): boolean {
  // A code point has one or two UTF-16 units, so only lengths in between have to be counted.
  return text.length <= max || (text.length <= 2 * max && [...text].length <= max);
}

// A character has up to four bytes, and NFD and NFKD write one as up to three; compositions are shorter.
const BYTES_PER_CHARACTER = 12;

/**
 * Normalizes a text that can become one of up to `max` characters. Returns undefined for a longer one without looking at
 * it: normalizing can take a second per megabyte, and make a text 18 times as long.
 */
export function normalizeText(text: string, form: "NFC" | "NFKC" | "NFKD", max: number): string | undefined {
  const limit = BYTES_PER_CHARACTER * max;
  if (text.length > limit || Buffer.byteLength(text) > limit) return undefined;
  return text.normalize(form);
}

export type CamelCase<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : Name;

/** The name of a property for that of a column, or of a field in JSON: `expires_at` becomes `expiresAt`. */
export function camelCase(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_, initial: string) => initial.toUpperCase());
}

/** The fields that aren't undefined, under their names in camel case. */
export function camelKeys<Fields extends object>(
  fields: Fields,
): { [Name in keyof Fields as CamelCase<Name & string>]: Exclude<Fields[Name], undefined> } {
  return renamed(fields, camelCase) as never;
}

export function snakeKeys(fields: object): object {
  return renamed(fields, (name) => name.replaceAll(/[A-Z]/g, (initial) => `_${initial.toLowerCase()}`));
}

function renamed(fields: object, rename: (name: string) => string): object {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given.map(([name, value]) => [rename(name), value]));
}
