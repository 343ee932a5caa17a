const KB = 1024;

/** Under the limits of most bodies, with room for the other fields. */
export const BODY_MAX = 56 * KB;
/** Node allows 16 KB for all headers and the path together. */
export const HEADER_MAX = 12 * KB;

/**
 * What texts repeat: what expressions skip or search for, and what grows when it is normalized or split. NFKC makes U+FDFA
 * 18 times longer.
 */
const PARTS = [...`a \t([{<"'\\/.@%,\u0301\ufdfa`, "GMT", ")]", "a="];

export type Sent = { path: string; init: RequestInit };

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
  for (const unit of PARTS) {
    const count = Math.floor((max - KB) / Buffer.byteLength(encode(unit)));
    for (const start of startsOf(name))
      yield [
        `${name} of ${JSON.stringify(unit)}${start && ` after ${start}`}`,
        send(`${start}${unit.repeat(count)}!x`),
      ];
  }
}

/** Texts that start like valid ones are read further. */
function startsOf(name: string): string[] {
  if (/ur[il]|issuer|referer|origin|resource\b/i.test(name)) return ["https://", "https://x.invalid/"];
  return [/name|client|title/i.test(name) ? "linkgate" : ""];
}
