import type { Context } from "koa";
import bodyParser from "koa-bodyparser";
import { jsonBody } from "../../resources/http/json-body.ts";
import { Problem } from "../../resources/http/problem.ts";
import { BODY_MAX } from "../../resources/http/read-body.ts";
import { checkFields } from "../../resources/http/safe-json.ts";

// Enough for a password, a name or a list of URLs.
const FORM_MAX = 16 * 1024;

/** The fields of a request body, JSON or form. */
export type Input = Record<string, unknown>;

/** Parses a form of up to 16 KB into `ctx.request.body`. @throws Problem 400, 413 or 415 */
export const formBody = parseForm(FORM_MAX);

const readJson = jsonBody(BODY_MAX);
const readForm = parseForm(BODY_MAX);
const done = async () => {};

/**
 * Reads the fields of a JSON body or a form; a request without a body has none.
 * @throws Problem 400, 413, 415, or 422 for too many fields
 */
export async function readInput(ctx: Context): Promise<Input> {
  if (ctx.request.body === undefined) await readFields(ctx);
  const { body } = ctx.request;
  if (typeof body === "object" && body !== null && !Array.isArray(body)) return body as Input;
  throw new Problem(400, "invalid_json", "The body must be a JSON object.");
}

async function readFields(ctx: Context): Promise<void> {
  const type = ctx.get("content-type") && ctx.is("json", "urlencoded");
  if (!type || ctx.request.length === 0) {
    if (type === false) throw new Problem(415, "unsupported_media_type", "Send JSON or a form.");
    ctx.request.body = {};
  } else if (type === "json") await readJson(ctx, done);
  else {
    await readForm(ctx, done);
    checkFields(ctx.request.body);
  }
}

/** Returns the text of a field; empty if it is absent or not a string. */
export function textFieldOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Returns whether to respond with a page, for browsers, or with JSON. */
export function prefersHtml(ctx: Context): boolean {
  ctx.vary("Accept");
  return ctx.accepts("json", "html") === "html";
}

function parseForm(limit: number) {
  return bodyParser({
    enableTypes: ["form"],
    formLimit: String(limit),
    onerror({ status }: Error & { status?: number }) {
      if (status === 413)
        throw new Problem(413, "body_too_large", `The body must be at most ${limit / 1024} KB.`);
      if (status === 415) {
        const detail = "Send the body uncompressed or compressed with gzip, deflate or br.";
        throw new Problem(415, "unsupported_media_type", detail);
      }
      throw new Problem(400, "invalid_request", "The body could not be parsed.");
    },
  });
}
