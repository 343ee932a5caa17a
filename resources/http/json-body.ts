import type { IncomingMessage } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate } from "node:zlib";
import type { Middleware } from "koa";
import { createWorkQueue } from "../work-queue.ts";
import { Problem } from "./problem.ts";

// Nearly all clients send exactly this.
const PLAIN_TYPE = "application/json";
/** RFC 7396. */
export const MERGE_PATCH = "application/merge-patch+json";
/** RFC 5789 §3.1. */
export const ACCEPT_PATCH = `${MERGE_PATCH}, ${PLAIN_TYPE}`;

/** Parses a JSON body of up to `limit` bytes. @throws Problem 400, 413, 415, 422 for too many fields or items */
export function jsonBody(limit: number): Middleware {
  return async function readJson(ctx, next) {
    const type = ctx.get("content-type");
    if (!hasBody(ctx.req) || (!type && (await readBody(ctx.req, limit)).length === 0))
      throw new Problem(400, "invalid_json", "Send a JSON body with Content-Type: application/json.");
    const isPatch = ctx.method === "PATCH";
    if (!isJson(type) && !(isPatch && isJson(type, MERGE_PATCH))) {
      const headers: Record<string, string> = isPatch ? { "Accept-Patch": ACCEPT_PATCH } : {};
      const detail = "Send UTF-8 JSON with Content-Type: application/json.";
      throw new Problem(415, "unsupported_media_type", detail, { headers });
    }
    const bytes = await readBody(ctx.req, limit);
    if (bytes.length <= BODY_MAX) {
      ctx.request.body = parse(bytes);
      return next();
    }
    await enqueue(ctx.state.caller.organizationId, async () => {
      ctx.request.body = await parseLargeJson(bytes).catch(throwInvalid);
      await next();
    });
  };
}

// Until its turn, a large body is one buffer, which takes the garbage collector no time.
const enqueue = createWorkQueue({ pauses: false });

/** RFC 9112 §6.3. A body in chunks can be empty. */
function hasBody({ headers }: IncomingMessage): boolean {
  const length = headers["content-length"];
  return headers["transfer-encoding"] !== undefined || (length !== undefined && length !== "0");
}

/** RFC 8259 §8.1: JSON is UTF-8. A body in another charset would be misread. */
export function isJson(type: string, expected = PLAIN_TYPE): boolean {
  if (type === expected) return true;
  const [name = ""] = type.split(";", 1);
  if (name.trim().toLowerCase() !== expected) return false;
  const [, charset = "utf-8"] = /; *charset="?([^";]*)/i.exec(type) ?? [];
  return /^utf-?8$/i.test(charset.trim());
}

function parse(bytes: Buffer): unknown {
  try {
    return parseJson(bytes);
  } catch (error) {
    return throwInvalid(error);
  }
}

function throwInvalid(error: unknown): never {
  if (!(error instanceof SyntaxError)) throw error;
  throw new Problem(400, "invalid_json", "The body is not valid JSON.");
}

const FIELDS_MAX = 100;
// Each invalid item is an error. No longer list is accepted: this is the limit of a leak report.
const ITEMS_MAX = 1000;
// A bulk request of 100 links with all fields has 8,000.
const ENTRIES_MAX = 10_000;

// Far more than any request needs. Code that walks a value recursively would overflow the stack at several thousand.
const DEPTH_MAX = 64;
const TOO_DEEP = `The JSON must be at most ${DEPTH_MAX} levels deep.`;

// `TextDecoder` also removes a byte order mark.
const utf8 = new TextDecoder();
const [QUOTE, COMMA, BRACKET, BACKSLASH, BRACE] = Buffer.from('",[\\{');
// Takes about a millisecond to look through. Other requests are served between two parts.
const PART = 64 * 1024;
// Node would otherwise read up to 2 MB before it serves another request.
const READ_AT_ONCE = 128 * 1024;

/**
 * Parses a UTF-8 text that may have more than 64 KB as JSON. Its fields and items are counted first, in parts: the parser can't stop
 * halfway.
 * @throws as `parseJson`, and Problem 422 for so many fields and items that parsing would take long
 */
export async function parseLargeJson(bytes: Uint8Array): Promise<unknown> {
  if (await hasMoreEntries(bytes, ENTRIES_MAX)) throw tooMany("", "fields and items", ENTRIES_MAX);
  return parseJson(bytes);
}

/**
 * Parses a UTF-8 text as JSON.
 * @throws SyntaxError also for a `__proto__`: copying the object would replace the prototype of the copy
 * @throws Problem as `checkFields`
 */
export function parseJson(bytes: Uint8Array): unknown {
  const body: unknown = JSON.parse(utf8.decode(bytes));
  checkFields(body);
  return body;
}

/**
 * Checks a value that was parsed from JSON or from a form.
 * @throws Problem 400 for more than 64 levels, 422 for more than 100 fields in an object or 1,000 items in an array
 */
export function checkFields(body: unknown): void {
  if (!isContainer(body)) return;
  checkObject(body, "");
  for (const [field, value] of Object.entries(body)) {
    // Level by level, not recursive: JSON can have more levels than the stack.
    let level = [value].filter(isContainer);
    for (let depth = 2; level.length > 0; depth++) {
      if (depth > DEPTH_MAX) throw new Problem(400, "invalid_json", TOO_DEEP);
      for (const one of level) checkObject(one, field);
      level = level.flatMap((one) => Object.values(one).filter(isContainer));
    }
  }
}

function checkObject(value: object, field: string): void {
  if (Array.isArray(value)) {
    if (value.length > ITEMS_MAX) throw tooMany(field, "items", ITEMS_MAX);
    return;
  }
  if (Object.hasOwn(value, "__proto__")) throw new SyntaxError("a field must not be named __proto__");
  if (Object.keys(value).length > FIELDS_MAX) throw tooMany(field, "fields", FIELDS_MAX);
}

function isContainer(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

/** Returns whether a text has more fields and items than this, without parsing it. */
async function hasMoreEntries(bytes: Uint8Array, max: number): Promise<boolean> {
  let count = 0;
  let isInString = false;
  let index = 0;
  for (let end = PART; index < bytes.length && count <= max; end += PART) {
    const stop = Math.min(end, bytes.length);
    while (index < stop) {
      // Most of a large body is in strings.
      if (isInString)
        while (index < stop && bytes[index] !== QUOTE) index += bytes[index] === BACKSLASH ? 2 : 1;
      if (index >= stop) break;
      const byte = bytes[index++];
      if (byte === QUOTE) isInString = !isInString;
      else count += Number(byte === COMMA || byte === BRACKET || byte === BRACE);
    }
    await nextTurn();
  }
  return count > max;
}

function tooMany(field: string, what: string, limit: number): Problem {
  const message = `must have at most ${limit.toLocaleString("en-US")} ${what}`;
  const detail = `${field || "The body"} ${message}.`;
  return new Problem(422, "invalid_request", detail, { errors: [{ field, message }] });
}

/** The most bytes of a body that holds one thing, such as a link, a message or a form. */
export const BODY_MAX = 64 * 1024;
/** The most bytes of a body that holds several links. */
export const BULK_BODY_MAX = 2 ** 20;

type Decode = (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>;

const DECODERS = new Map<string, Decode>([
  ["gzip", promisify(gunzip)],
  ["deflate", promisify(inflate)],
  ["br", promisify(brotliDecompress)],
]);

/** Reads and decompresses a body, of up to `limit` bytes before and after. @throws Problem 400, 413 or 415 */
export async function readBody(request: IncomingMessage, limit: number): Promise<Buffer> {
  const encoding = request.headers["content-encoding"]?.toLowerCase() ?? "identity";
  if (encoding === "identity") return readAll(request, limit);
  const decode = DECODERS.get(encoding);
  if (!decode) throw unsupportedCompression();
  return decode(await readAll(request, limit), { maxOutputLength: limit }).catch(({ code }) => {
    throw code === "ERR_BUFFER_TOO_LARGE"
      ? tooLarge(limit)
      : new Problem(400, "invalid_json", `The body is not valid ${encoding}.`);
  });
}

/** Rejects if the body is too large, or if the client disconnects before its end. */
function readAll(request: IncomingMessage, limit: number): Promise<Buffer> {
  const declared = Number(request.headers["content-length"] ?? 0);
  if (declared > limit) return Promise.reject(tooLarge(limit));
  return new Promise((resolve, reject) => {
    const fail = () => reject(new Problem(400, "invalid_json", "The connection was closed before its end."));
    // Every request is closed after its end. To create an error then would only take time.
    const failUnlessRead = () => request.readableEnded || fail();
    if (request.destroyed) return fail();
    // Joining a large body at its end would block the process for 20 ms.
    const whole = declared > PART ? Buffer.allocUnsafe(declared) : undefined;
    const chunks: Buffer[] = [];
    let length = 0;
    let turnAt = READ_AT_ONCE;
    request
      .on("data", (chunk: Buffer) => {
        length += chunk.length;
        if (length > limit) reject(tooLarge(limit));
        else if (whole) chunk.copy(whole, length - chunk.length);
        else chunks.push(chunk);
        if (length < turnAt) return;
        turnAt = length + READ_AT_ONCE;
        request.pause();
        setImmediate(() => request.resume());
      })
      .on("end", () =>
        resolve(whole ?? (chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks))),
      )
      .on("error", fail)
      .on("close", failUnlessRead);
  });
}

export function unsupportedCompression(): Problem {
  const detail = "Send the body uncompressed or compressed with gzip, deflate or br.";
  return new Problem(415, "unsupported_media_type", detail);
}

export function tooLarge(limit: number): Problem {
  const size = limit < 2 ** 20 ? `${limit / 1024} KB` : `${limit / 2 ** 20} MB`;
  return new Problem(413, "body_too_large", `The body must be at most ${size}.`);
}
