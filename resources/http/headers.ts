import type { IncomingMessage } from "node:http";

/** Expects a lower-case name. `headersDistinct` would copy all headers first. */
export function isSentTwice({ rawHeaders }: IncomingMessage, name: string): boolean {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const raw = rawHeaders[index] as string;
    if (raw.length === name.length && raw.toLowerCase() === name) count++;
  }
  return count > 1;
}
