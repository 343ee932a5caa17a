const KB = 1024;

/** Under the limits of most bodies, with room for the other fields. */
export const BODY_MAX = 56 * KB;
/** Node allows 16 KB for all headers and the path together. */
export const HEADER_MAX = 12 * KB;

/** What texts repeat: what expressions skip or search for, and what grows when it is normalized or split. */
const PARTS: Record<string, string> = {
  letters: "a",
  spaces: " ",
  tabs: "\t",
  GMT: "GMT",
  parentheses: "(",
  brackets: "[",
  "closing brackets": ")]",
  braces: "{",
  "angle brackets": "<",
  quotes: '"',
  apostrophes: "'",
  backslashes: "\\",
  slashes: "/",
  dots: ".",
  "at signs": "@",
  "percent signs": "%",
  fields: "a=",
  commas: ",",
  "combining marks": "\u0301",
  "U+FDFA, which NFKC makes 18 times longer": "\ufdfa",
};

/** A request as `fetch` takes it. */
export type Sent = { path: string; init: RequestInit };

/** A text that a caller can send, and the request with it. */
export type Field = {
  name: string;
  /** The bytes of the text in the request, after `encode`. */
  max: number;
  encode(text: string): string;
  send(text: string): Sent;
  /** Whether the form has a password, which takes long to hash on purpose. */
  hasPassword?: boolean;
};

/** Returns a field with each of the texts. Their ends are unlike the rest, so an expression that expects more of it fails. */
export function* longRequests({ name, max, encode, send }: Field): Generator<[name: string, sent: Sent]> {
  for (const [part, unit] of Object.entries(PARTS)) {
    const count = Math.floor((max - KB) / Buffer.byteLength(encode(unit)));
    for (const start of startsOf(name)) {
      yield [`${name} of ${part}${start && ` after ${start}`}`, send(`${start}${unit.repeat(count)}!x`)];
    }
  }
}

/** Texts that start like valid ones are read further. */
function startsOf(name: string): string[] {
  if (/ur[il]|issuer|referer|origin|resource\b/i.test(name)) return ["https://", "https://x.invalid/"];
  return [/name|client|title/i.test(name) ? "linkgate" : ""];
}
