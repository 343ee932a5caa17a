import type { Middleware } from "koa";
import bodyParser from "koa-bodyparser";
import { Problem } from "./problem.ts";

const LIMIT = "1mb";
const UNSUPPORTED = "Send UTF-8 JSON, plain or compressed with gzip, deflate or br.";

const parse = bodyParser({ enableTypes: ["json"], jsonLimit: LIMIT, strict: false, onerror: refuse });

/** Reads a JSON body into `ctx.request.body`. 415 for another type, 413 over 1 MB, 400 for what is not JSON. */
export const json: Middleware = async function readJson(ctx, next) {
  const type = ctx.get("content-type");
  if (!type || ctx.request.length === 0) {
    throw new Problem(400, "invalid_json", "A JSON body with Content-Type: application/json is required.");
  }
  if (!isJson(type)) throw new Problem(415, "unsupported_media_type", UNSUPPORTED);
  await parse(ctx, async () => {});
  // What cannot be read, for there is no body, is left empty.
  if (!ctx.request.rawBody) throw new Problem(400, "invalid_json", "The body is empty.");
  return next();
};

/** RFC 8259 §8.1: JSON is UTF-8. A body that says it is something else would be read wrongly. */
function isJson(type: string): boolean {
  if (!/^application\/json *(;|$)/i.test(type)) return false;
  const [, charset = "utf-8"] = /; *charset="?([^";]*)/i.exec(type) ?? [];
  return /^utf-?8$/i.test(charset.trim());
}

type BodyError = Error & { status?: number; type?: string };

function refuse(error: BodyError): never {
  if (error.status === 413) throw new Problem(413, "body_too_large", `The body may have at most ${LIMIT}.`);
  if (error.status === 415) throw new Problem(415, "unsupported_media_type", UNSUPPORTED);
  throw new Problem(400, "invalid_json", "The body is not valid JSON.");
}
