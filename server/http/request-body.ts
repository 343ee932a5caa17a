import type { Context } from "koa";
import bodyParser from "koa-bodyparser";
import {
  BODY_MAX,
  checkFields,
  jsonBody,
  readBody,
  tooLarge,
  unsupportedCompression,
} from "../../resources/http/json-body.ts";
import { Problem } from "../../resources/http/problem.ts";

// Enough for a password, a name or a list of URLs.
const FORM_MAX = 16 * 1024;

// Where a form uploads a file.
const UPLOADS = /^\/dashboard\/organizations\/[^/]+\/links\/import$/;
/** The most bytes of a file that a form uploads. */
export const UPLOAD_MAX = 5 * 2 ** 20;
// A file is sent again as a text, in which each line break takes a byte more.
const UPLOAD_BODY_MAX = 2 * UPLOAD_MAX;

export type Input = Record<string, unknown>;

/** Throws Problem 400, 413 or 415. */
export const formBody = parseForm(FORM_MAX);

const readJson = jsonBody(BODY_MAX);
const readForm = parseForm(BODY_MAX);
const done = async () => {};

/** Throws Problem 400, 413, 415, or 422 for too many fields. */
export async function readInput(ctx: Context): Promise<Input> {
  if (ctx.request.body === undefined) await readFields(ctx);
  const { body } = ctx.request;
  if (typeof body === "object" && body !== null && !Array.isArray(body)) return body as Input;
  throw new Problem(400, "invalid_json", "The body must be a JSON object.");
}

async function readFields(ctx: Context): Promise<void> {
  const types = UPLOADS.test(ctx.path) ? ["json", "urlencoded", "multipart"] : ["json", "urlencoded"];
  const type = ctx.get("content-type") && ctx.is(types);
  if (!type || ctx.request.length === 0) {
    if (type === false) throw new Problem(415, "unsupported_media_type", "Send JSON or a form.");
    ctx.request.body = {};
  } else if (type === "json") await readJson(ctx, done);
  else if (type.startsWith("multipart")) ctx.request.body = await readUpload(ctx);
  else {
    await readForm(ctx, done);
    checkFields(ctx.request.body);
  }
}

/** Returns the fields of a multipart form; files are `File` objects. */
async function readUpload(ctx: Context): Promise<Input> {
  const bytes = await readBody(ctx.req, UPLOAD_BODY_MAX);
  try {
    const headers = { "Content-Type": ctx.get("content-type") };
    const fields = Object.fromEntries(await new Response(bytes as BodyInit, { headers }).formData());
    checkFields(fields);
    return fields;
  } catch (error) {
    if (error instanceof Problem) throw error;
    throw new Problem(400, "invalid_request", "The body could not be parsed.");
  }
}

export function textFieldOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function prefersHtml(ctx: Context): boolean {
  ctx.vary("Accept");
  return ctx.accepts("json", "html") === "html";
}

function parseForm(limit: number) {
  return bodyParser({
    enableTypes: ["form"],
    formLimit: String(limit),
    onerror({ status }: Error & { status?: number }) {
      if (status === 413) throw tooLarge(limit);
      if (status === 415) throw unsupportedCompression();
      throw new Problem(400, "invalid_request", "The body could not be parsed.");
    },
  });
}
