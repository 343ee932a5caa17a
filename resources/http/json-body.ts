import type { ApiMiddleware } from "./api-context.ts";
import { Problem } from "./problem.ts";
import { readBody } from "./read-body.ts";
import { parseJson } from "./safe-json.ts";

/**
 * Creates middleware that parses a JSON body into `ctx.request.body`.
 * @param limit the most bytes
 * @throws Problem 400 if it is not JSON, 413 if it is too large, 415 for other types, 422 for too many fields
 */
export function jsonBody(limit: number): ApiMiddleware {
  return async function readJson(ctx, next) {
    const type = ctx.get("content-type");
    if (!type || ctx.req.headers["content-length"] === "0") {
      throw new Problem(400, "invalid_json", "Send a JSON body with Content-Type: application/json.");
    }
    if (!isJson(type)) throw new Problem(415, "unsupported_media_type", "Send UTF-8 JSON.");
    ctx.request.body = parse(await readBody(ctx.req, limit));
    return next();
  };
}

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
