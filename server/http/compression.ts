import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { Context, Middleware } from "koa";
import { LRUCache } from "lru-cache";

type Bytes = Buffer<ArrayBuffer>;
type Encoding = { name: string; compress(text: string): Promise<Bytes>; cached: LRUCache<string, Bytes> };

// Less fits into one packet, and hardly becomes smaller.
const MIN_LENGTH = 1024;
// Compression runs on the threads that also wait for the disk: this takes tens of milliseconds there.
const MAX_LENGTH = 1024 * 1024;
// The documents that only depend on the code: pages, style sheets, scripts and metadata.
const CACHED_MAX = 50;

const TEXT = /^(?:text\/|application\/(?:[\w.-]+\+)?json|image\/svg\+xml)/;

/** Preferred first. Higher Brotli levels take several times as long and save a few percent. */
const ENCODINGS = [
  createEncoding("br", promisify(brotliCompress), { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }),
  createEncoding("gzip", promisify(gzip), {}),
];

export const compressTexts: Middleware = async function compressText(ctx, next) {
  await next();
  await compress(ctx);
};

/**
 * Compresses a text, but not one with a strong `ETag` (RFC 9110 §8.8.1). A `no-store` page is compressed only if its CSRF
 * token is masked and it has no other secret, because the size could reveal one (BREACH).
 */
export async function compress(ctx: Context): Promise<void> {
  const text = textOf(ctx);
  // Otherwise, Koa would convert the object again.
  if (text !== undefined && typeof ctx.body === "object") ctx.body = text;
  const isWorthwhile = text !== undefined && text.length > MIN_LENGTH && text.length <= MAX_LENGTH;
  // RFC 9110 §15.4.5: a 304 has the `Vary` of the response that it stands for.
  if (isWorthwhile || ctx.status === 304) ctx.vary("Accept-Encoding");
  if (!isWorthwhile) return;
  const encoding = ENCODINGS.find(({ name }) => ctx.acceptsEncodings(name));
  if (!encoding) return;
  const isPublic = headerOf(ctx.response, "Cache-Control").startsWith("public");
  const bytes = (isPublic && encoding.cached.get(text)) || (await encoding.compress(text));
  if (isPublic) encoding.cached.set(text, bytes);
  ctx.set("Content-Encoding", encoding.name);
  ctx.body = bytes;
}

function textOf({ body, respond, response, state }: Context): string | undefined {
  const isSecret = headerOf(response, "Cache-Control").includes("no-store") && !state.isMasked;
  const isStrong = headerOf(response, "ETag").startsWith('"');
  const isText = TEXT.test(headerOf(response, "Content-Type"));
  if (respond === false || isSecret || isStrong || !isText) return undefined;
  const isObject = Object.getPrototypeOf(body ?? "") === Object.prototype || Array.isArray(body);
  const text = isObject ? JSON.stringify(body) : body;
  return typeof text === "string" ? text : undefined;
}

function headerOf(response: Context["response"], name: string): string {
  return String(response.get(name) ?? "");
}

function createEncoding<Options>(
  name: string,
  compress: (text: string, options: Options) => Promise<Bytes>,
  options: Options,
): Encoding {
  return { name, compress: (text) => compress(text, options), cached: new LRUCache({ max: CACHED_MAX }) };
}
