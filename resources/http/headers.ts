import type { IncomingMessage } from "node:http";

/**
 * Returns whether a request has several headers of a name, given in lower case. Unlike `headersDistinct`, it doesn't copy
 * all headers first.
 */
export function isSentTwice({ rawHeaders }: IncomingMessage, name: string): boolean {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const raw = rawHeaders[index] as string;
    if (raw.length === name.length && raw.toLowerCase() === name) count++;
  }
  return count > 1;
}
