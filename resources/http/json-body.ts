import type { IncomingMessage } from "node:http";
import bodyParser from "koa-bodyparser";
import type { ApiMiddleware } from "./api-context.ts";
import { Problem } from "./problem.ts";
import { parseJson } from "./safe-json.ts";

const LIMIT_BYTES = 2 ** 20;
const UNSUPPORTED = "Send UTF-8 JSON, uncompressed or compressed with gzip, deflate or br.";

// It uses no more of the context than the API has.
const parseStream = bodyParser({
  enableTypes: ["json"],
  jsonLimit: String(LIMIT_BYTES),
  strict: false,
  onerror: throwBodyError,
}) as unknown as ApiMiddleware;

/** Parses a JSON body into `ctx.request.body`. @throws Problem 400 if it is not JSON, 413 over 1 MB, 415 for other types */
export const jsonBody: ApiMiddleware = async function readJson(ctx, next) {
  const type = ctx.get("content-type");
  const length = lengthOf(ctx.req);
  if (!type || length === 0) {
    throw new Problem(400, "invalid_json", "Send a JSON body with Content-Type: application/json.");
  }
  if (!isJson(type)) throw new Problem(415, "unsupported_media_type", UNSUPPORTED);
  if (length !== undefined && !ctx.req.headers["content-encoding"]) {
    ctx.request.body = await readAll(ctx.req, length).then(parseJson).catch(throwBodyError);
    return next();
  }
  await parseStream(ctx, async () => {});
  // The parser leaves it unset if there is no body to read.
  if (!ctx.request.rawBody) throw new Problem(400, "invalid_json", "The body is empty.");
  return next();
};

// Nearly all clients send exactly this.
const PLAIN_TYPE = "application/json";

/** RFC 8259 §8.1: JSON is UTF-8. A body in another charset would be misread. */
function isJson(type: string): boolean {
  if (type === PLAIN_TYPE) return true;
  if (!/^application\/json *(;|$)/i.test(type)) return false;
  const [, charset = "utf-8"] = /; *charset="?([^";]*)/i.exec(type) ?? [];
  return /^utf-?8$/i.test(charset.trim());
}

/** Returns the length of a body, or `undefined` if it is sent in chunks. */
function lengthOf({ headers }: IncomingMessage): number | undefined {
  const length = headers["content-length"];
  return length === undefined ? undefined : Number(length);
}

/** Reads a body of known length, which Node's HTTP parser enforces. Rejects if the client disconnects before its end. */
function readAll(request: IncomingMessage, length: number): Promise<Buffer> {
  if (length > LIMIT_BYTES) return Promise.reject(Object.assign(new Error("too large"), { status: 413 }));
  return new Promise((resolve, reject) => {
    const fail = () => reject(new Error("the client disconnected"));
    // Every request is closed after its end. To create an error then would only take time.
    const failUnlessRead = () => request.readableEnded || fail();
    if (request.destroyed) return fail();
    const chunks: Buffer[] = [];
    request
      .on("data", (chunk: Buffer) => chunks.push(chunk))
      .on("end", () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)))
      .on("error", fail)
      .on("close", failUnlessRead);
  });
}

type BodyError = Error & { status?: number; type?: string };

function throwBodyError(error: BodyError): never {
  if (error.status === 413) throw new Problem(413, "body_too_large", "The body must be at most 1 MB.");
  if (error.status === 415) throw new Problem(415, "unsupported_media_type", UNSUPPORTED);
  throw new Problem(400, "invalid_json", "The body is not valid JSON.");
}
