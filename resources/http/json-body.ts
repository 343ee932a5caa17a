import type { IncomingMessage } from "node:http";
import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate } from "node:zlib";
import { createTurns } from "../turns.ts";
import type { ApiMiddleware } from "./api-context.ts";
import { Problem } from "./problem.ts";

/** Parses a JSON body of up to `limit` bytes. @throws Problem 400, 413, 415, 422 for too many fields or items */
export function jsonBody(limit: number): ApiMiddleware {
  return async function readJson(ctx, next) {
    const type = ctx.get("content-type");
    if (!type || ctx.req.headers["content-length"] === "0") {
      throw new Problem(400, "invalid_json", "Send a JSON body with Content-Type: application/json.");
    }
    if (!isJson(type)) throw new Problem(415, "unsupported_media_type", "Send UTF-8 JSON.");
    const bytes = await readBody(ctx.req, limit);
    const proceed = () => {
      ctx.request.body = parse(bytes);
      return next();
    };
    return bytes.length > BODY_MAX ? inTurn(ctx.state.caller.organizationId, proceed) : proceed();
  };
}

// 1 MB takes 10 ms. Until its turn, a large body is one buffer, which takes the garbage collector no time.
const inTurn = createTurns({ pauses: false });

// Nearly all clients send exactly this.
const PLAIN_TYPE = "application/json";

/** RFC 8259 §8.1: JSON is UTF-8. A body in another charset would be misread. */
function isJson(type: string): boolean {
  if (type === PLAIN_TYPE) return true;
  if (!/^application\/json *(;|$)/i.test(type)) return false;
  const [, charset = "utf-8"] = /; *charset="?([^";]*)/i.exec(type) ?? [];
  return /^utf-?8$/i.test(charset.trim());
}

function parse(bytes: Buffer): unknown {
  try {
    return parseJson(bytes);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new Problem(400, "invalid_json", "The body is not valid JSON.");
  }
}

const FIELDS_MAX = 100;
// Each invalid item is an error. No longer list is accepted: this is the limit of a leak report.
const ITEMS_MAX = 1000;
// A bulk request of 100 links with all fields has 8,000.
const ENTRIES_MAX = 10_000;

// `TextDecoder` also removes a byte order mark.
const utf8 = new TextDecoder();
const [QUOTE, COMMA, BRACKET, BACKSLASH, BRACE] = Buffer.from('",[\\{');

/**
 * Parses a UTF-8 text as JSON.
 * @throws SyntaxError also for a `__proto__`: copying the object would replace the prototype of the copy
 * @throws Problem 422 for more than 100 fields in an object or 1,000 items in an array, and for so many in all that
 * parsing would take long
 */
export function parseJson(bytes: Uint8Array): unknown {
  if (bytes.length > BODY_MAX && hasMoreEntries(bytes, ENTRIES_MAX))
    throw tooMany("", "fields and items", ENTRIES_MAX);
  const body: unknown = JSON.parse(utf8.decode(bytes));
  checkFields(body);
  return body;
}

export function checkFields(body: unknown): void {
  if (!isContainer(body)) return;
  checkObject(body, "");
  for (const field of Object.keys(body)) {
    // Not recursive: JSON can have more levels than the stack.
    const rest = [(body as Record<string, unknown>)[field]].filter(isContainer);
    for (let value = rest.pop(); value; value = rest.pop()) {
      checkObject(value, field);
      for (const child of Object.values(value)) if (isContainer(child)) rest.push(child);
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
function hasMoreEntries(bytes: Uint8Array, max: number): boolean {
  let count = 0;
  let isInString = false;
  for (let index = 0; index < bytes.length && count <= max; index++) {
    const byte = bytes[index];
    if (byte === QUOTE) isInString = !isInString;
    else if (!isInString) count += Number(byte === COMMA || byte === BRACKET || byte === BRACE);
    else if (byte === BACKSLASH) index++;
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
  if (Number(request.headers["content-length"]) > limit) return Promise.reject(tooLarge(limit));
  return new Promise((resolve, reject) => {
    const fail = () => reject(new Problem(400, "invalid_json", "The connection was closed before its end."));
    // Every request is closed after its end. To create an error then would only take time.
    const failUnlessRead = () => request.readableEnded || fail();
    if (request.destroyed) return fail();
    const chunks: Buffer[] = [];
    let length = 0;
    request
      .on("data", (chunk: Buffer) => {
        length += chunk.length;
        if (length <= limit) chunks.push(chunk);
        else reject(tooLarge(limit));
      })
      .on("end", () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)))
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
