import type { Middleware } from "koa";
import bodyParser from "koa-bodyparser";
import { Problem } from "./problem.ts";

const LIMIT = "1mb";

const parse = bodyParser({ enableTypes: ["json"], jsonLimit: LIMIT, strict: true, onerror: refuse });

/** Reads a JSON body into `ctx.request.body`. 415 for another type, 413 over 1 MB, 400 for what is not JSON. */
export const json: Middleware = function readJson(ctx, next) {
  if (!ctx.is("application/json")) {
    if (ctx.get("content-type")) throw new Problem(415, "unsupported_media_type", "Send application/json.");
    throw new Problem(400, "invalid_json", "A JSON body with Content-Type: application/json is required.");
  }
  return parse(ctx, next);
};

type BodyError = Error & { status?: number; type?: string };

function refuse(error: BodyError): never {
  if (error.status === 413) throw new Problem(413, "body_too_large", `The body may have at most ${LIMIT}.`);
  if (error.status === 415)
    throw new Problem(415, "unsupported_media_type", "Send UTF-8 JSON, plain, gzip or deflate.");
  throw new Problem(400, "invalid_json", "The body is not valid JSON.");
}
