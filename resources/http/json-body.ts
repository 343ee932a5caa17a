import type { Middleware } from "koa";
import bodyParser from "koa-bodyparser";
import { Problem } from "./problem.ts";

const LIMIT = "1mb";
const UNSUPPORTED = "Send UTF-8 JSON, uncompressed or compressed with gzip, deflate or br.";

const parse = bodyParser({ enableTypes: ["json"], jsonLimit: LIMIT, strict: false, onerror: throwBodyError });

/** Parses a JSON body into `ctx.request.body`. @throws Problem 400 if it is not JSON, 413 over 1 MB, 415 for other types */
export const jsonBody: Middleware = async function readJson(ctx, next) {
  const type = ctx.get("content-type");
  if (!type || ctx.request.length === 0) {
    throw new Problem(400, "invalid_json", "Send a JSON body with Content-Type: application/json.");
  }
  if (!isJson(type)) throw new Problem(415, "unsupported_media_type", UNSUPPORTED);
  await parse(ctx, async () => {});
  // The parser leaves it unset if there is no body to read.
  if (!ctx.request.rawBody) throw new Problem(400, "invalid_json", "The body is empty.");
  return next();
};

/** RFC 8259 §8.1: JSON is UTF-8. A body in another charset would be misread. */
function isJson(type: string): boolean {
  if (!/^application\/json *(;|$)/i.test(type)) return false;
  const [, charset = "utf-8"] = /; *charset="?([^";]*)/i.exec(type) ?? [];
  return /^utf-?8$/i.test(charset.trim());
}

type BodyError = Error & { status?: number; type?: string };

function throwBodyError(error: BodyError): never {
  if (error.status === 413) throw new Problem(413, "body_too_large", "The body must be at most 1 MB.");
  if (error.status === 415) throw new Problem(415, "unsupported_media_type", UNSUPPORTED);
  throw new Problem(400, "invalid_json", "The body is not valid JSON.");
}
