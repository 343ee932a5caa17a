import type http from "node:http";
import type { ResponseStart } from "./types.ts";

// Enough for the message of an error, and for most endpoints to finish their response.
const BODY_MAX = 4096; // bytes
// How long an endpoint may take to finish its response after the headers.
const BODY_MAX_MS = 1000;
const HEADERS_MAX = 4096; // characters, of names and values together
// A cookie may be a credential of the endpoint, and doesn't explain a failure.
const CREDENTIALS = new Set(["set-cookie", "set-cookie2"]);
const OMITTED = "(not stored)";

/**
 * Reads the start of a response. Resolves when the connection is free again, or closed because there is too much of the
 * response or it takes too long.
 */
export async function readStart(response: http.IncomingMessage): Promise<ResponseStart> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(() => response.destroy(), BODY_MAX_MS).unref();
  const chunks: Buffer[] = [];
  let bytes = 0;
  response.on("error", () => {});
  response.on("data", (chunk: Buffer) => {
    if (bytes <= BODY_MAX) chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > BODY_MAX) response.destroy();
  });
  response.on("close", resolve);
  await promise;
  clearTimeout(timer);
  const isComplete = response.complete && bytes <= BODY_MAX;
  const text = printable(decode(Buffer.concat(chunks).subarray(0, BODY_MAX), isComplete));
  const body = cut(text);
  return {
    status: response.statusCode as number,
    headers: storable(response.headers),
    body,
    truncated: !isComplete || body.length < text.length,
  };
}

/** Leaves out headers that are too long together. */
function storable(headers: http.IncomingHttpHeaders): Record<string, string> {
  let left = HEADERS_MAX;
  const values = Object.entries(headers).map(([name, value]): [string, string] => [
    name,
    CREDENTIALS.has(name) ? OMITTED : printable(String(value)),
  ]);
  return Object.fromEntries(
    values.filter(([name, value]) => {
      const length = name.length + value.length;
      if (length > left) return false;
      left -= length;
      return true;
    }),
  );
}

/** Decodes UTF-8 with a replacement for what is invalid, except for a character that was cut at the end. */
function decode(bytes: Uint8Array, isComplete: boolean): string {
  return new TextDecoder().decode(bytes, { stream: !isComplete });
}

/** The replacement of an invalid byte takes three. */
function cut(text: string): string {
  const bytes = Buffer.from(text);
  return bytes.length > BODY_MAX ? decode(bytes.subarray(0, BODY_MAX), false) : text;
}

/** Replaces control characters, which PostgreSQL can't store (NUL) and terminals may obey. */
function printable(text: string): string {
  return text.replaceAll(/(?![\t\n\r])\p{Cc}/gu, "\ufffd");
}
