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
import { invalidField } from "../../resources/http/validate.ts";

// Enough for a password, a name or a list of URLs.
const FORM_MAX = 16 * 1024;
/** The most bytes of a file with links. */
export const LINK_FILE_MAX = 5 * 1024 * 1024;
/** Where a form uploads a file, and how many bytes the fields may have. */
const UPLOADS: [path: RegExp, bytes: number][] = [
  // The preview sends the file again as a text, in which each line break takes a byte more.
  [/^\/dashboard\/organizations\/[^/]+\/links\/import$/, 2 * LINK_FILE_MAX],
];

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

/** Returns how many bytes the fields of an upload may have, or undefined for another request. */
export function uploadMax(ctx: Context): number | undefined {
  const [, fileMax] = UPLOADS.find(([path]) => path.test(ctx.path)) ?? [];
  return fileMax !== undefined && ctx.is("multipart") ? fileMax : undefined;
}

async function readFields(ctx: Context): Promise<void> {
  const fileMax = uploadMax(ctx);
  if (fileMax !== undefined) {
    ctx.request.body = await readUpload(ctx, fileMax);
    return;
  }
  const type = ctx.get("content-type") && ctx.is(["json", "urlencoded"]);
  if (!type || ctx.request.length === 0) {
    if (type === false) throw new Problem(415, "unsupported_media_type", "Send JSON or a form.");
    ctx.request.body = {};
  } else if (type === "json") await readJson(ctx, done);
  else {
    await readForm(ctx, done);
    checkFields(ctx.request.body);
  }
}

/** Returns the fields of a multipart form; files are buffers. */
async function readUpload(ctx: Context, limit: number): Promise<Input> {
  const bytes = await readBody(ctx.req, limit + FORM_MAX).catch((error) => {
    throw error instanceof Problem && error.status === 413 ? tooLarge(limit) : error;
  });
  const [, boundary] = /boundary="?([^";\\\s]+)/i.exec(ctx.get("content-type")) ?? [];
  if (boundary === undefined) throw unparsable();
  return Object.fromEntries(parseMultipart(bytes, boundary).filter(([name]) => name !== "__proto__"));
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
      throw unparsable();
    },
  });
}

const PARTS_MAX = 100;
// They have two headers, and the name of the file.
const HEADERS_MAX = 4096;
const BREAK = "\r\n";

/**
 * Returns the fields of a form (RFC 7578 §4.1), texts as strings and files as parts of `body`: the platform's `formData()`
 * copies a file four times, and takes long for many parts or headers. Throws Problem 400, or 422 for too many fields.
 */
export function parseMultipart(body: Buffer, boundary: string): [name: string, value: string | Buffer][] {
  const delimiter = `${BREAK}--${boundary}`;
  const first = delimiter.slice(BREAK.length);
  if (body.toString("latin1", 0, first.length) !== first) throw unparsable();
  const fields: [name: string, value: string | Buffer][] = [];
  let at = first.length;
  // RFC 2046 §5.1.1: the last boundary ends with two hyphens.
  while (body.toString("latin1", at, at + 2) !== "--") {
    if (fields.length === PARTS_MAX)
      throw invalidField("", `must have at most ${PARTS_MAX} fields`, "invalid_request");
    const headersEnd = body.subarray(at, at + HEADERS_MAX).indexOf(BREAK + BREAK);
    const start = at + headersEnd + 2 * BREAK.length;
    const end = headersEnd < 0 ? -1 : body.indexOf(delimiter, start);
    if (end < 0) throw unparsable();
    const headers = body.toString("utf8", at, start);
    const [, name] = /[; ]name="([^"\r\n]*)"/i.exec(headers) ?? [];
    if (name === undefined) throw unparsable();
    const content = body.subarray(start, end);
    fields.push([name, /; *filename\*?=/i.test(headers) ? content : content.toString()]);
    at = end + delimiter.length;
  }
  return fields;
}

function unparsable(): Problem {
  return new Problem(400, "invalid_request", "The body could not be parsed.");
}
