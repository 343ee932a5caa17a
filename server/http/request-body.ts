import type { Context } from "koa";
import bodyParser from "koa-bodyparser";
import { Problem } from "../../resources/problem.ts";

const LIMIT = "64kb"; // a password, a name, a list of addresses

/** The fields of a request, however they were sent. */
export type Input = Record<string, unknown>;

const parse = bodyParser({
  enableTypes: ["json", "form"],
  jsonLimit: LIMIT,
  formLimit: LIMIT,
  onerror: (error) => {
    throw error;
  },
});

/** Reads the fields of a body in JSON or of a form; a request without a body has none. */
export async function readInput(ctx: Context): Promise<Input> {
  if (ctx.request.body === undefined) {
    const isEmpty = ctx.request.length === 0 || !ctx.get("content-type");
    if (!isEmpty && ctx.is("json", "urlencoded") === false)
      throw new Problem(415, "unsupported_media_type", "Send JSON or a form.");
    await parse(ctx, async () => {}).catch(refuse);
  }
  const { body } = ctx.request;
  if (typeof body === "object" && body !== null && !Array.isArray(body)) return body as Input;
  throw new Problem(400, "invalid_json", "The body is not a JSON object.");
}

/** The text of a field; empty when it is absent or no text. */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Whether a person at a browser is answered, with pages; programs get JSON. */
export function prefersHtml(ctx: Context): boolean {
  ctx.vary("Accept");
  return ctx.accepts("json", "html") === "html";
}

function refuse({ status }: { status?: number }): never {
  if (status === 413) throw new Problem(413, "body_too_large", `The body may have at most ${LIMIT}.`);
  if (status === 415) throw new Problem(415, "unsupported_media_type", "Send UTF-8.");
  throw new Problem(400, "invalid_json", "The body cannot be read.");
}
