import type { Context } from "koa";
import bodyParser from "koa-bodyparser";
import { Problem } from "../../resources/http/problem.ts";

const LIMIT = "64kb"; // enough for a password, a name or a list of URLs

/** The fields of a request body, JSON or form. */
export type Input = Record<string, unknown>;

const parse = bodyParser({
  enableTypes: ["json", "form"],
  jsonLimit: LIMIT,
  formLimit: LIMIT,
  onerror: (error) => {
    throw error;
  },
});

/**
 * Reads the fields of a JSON body or a form; a request without a body has none.
 * @throws Problem 400, 413 or 415
 */
export async function readInput(ctx: Context): Promise<Input> {
  if (ctx.request.body === undefined) {
    const isEmpty = ctx.request.length === 0 || !ctx.get("content-type");
    if (!isEmpty && ctx.is("json", "urlencoded") === false)
      throw new Problem(415, "unsupported_media_type", "Send JSON or a form.");
    await parse(ctx, async () => {}).catch(throwBodyError);
  }
  const { body } = ctx.request;
  if (typeof body === "object" && body !== null && !Array.isArray(body)) return body as Input;
  throw new Problem(400, "invalid_json", "The body must be a JSON object.");
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

function throwBodyError({ status }: { status?: number }): never {
  if (status === 413) throw new Problem(413, "body_too_large", `The body must be at most ${LIMIT}.`);
  if (status === 415) {
    throw new Problem(
      415,
      "unsupported_media_type",
      "Send UTF-8, uncompressed or compressed with gzip, deflate or br.",
    );
  }
  throw new Problem(400, "invalid_json", "The body could not be parsed.");
}
