import type { IncomingMessage } from "node:http";
import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate } from "node:zlib";
import { Problem } from "./problem.ts";

/** The most bytes of a body that holds one thing, such as a link, a message or a form. */
export const BODY_MAX = 64 * 1024;
/** The most bytes of a body that holds several links. */
export const BULK_BODY_MAX = 2 ** 20;

type Decode = (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>;

const DECODERS = new Map<string, Decode>([
  ["gzip", promisify(gunzip)],
  ["deflate", promisify(inflate)],
  ["br", promisify(brotliDecompress)],
]);

/**
 * Reads a request body, and decompresses it.
 * @param limit the most bytes, also after decompression
 * @throws Problem 400 if it is not what `Content-Encoding` says, 413 if it is too large, 415 for an unknown encoding
 */
export async function readBody(request: IncomingMessage, limit: number): Promise<Buffer> {
  const encoding = request.headers["content-encoding"]?.toLowerCase() ?? "identity";
  if (encoding === "identity") return readAll(request, limit);
  const decode = DECODERS.get(encoding);
  if (!decode) {
    const detail = "Send the body uncompressed or compressed with gzip, deflate or br.";
    throw new Problem(415, "unsupported_media_type", detail);
  }
  return decode(await readAll(request, limit), { maxOutputLength: limit }).catch(({ code }) => {
    throw code === "ERR_BUFFER_TOO_LARGE"
      ? tooLarge(limit)
      : new Problem(400, "invalid_json", `The body is not valid ${encoding}.`);
  });
}

/** Rejects if the body is too large, or if the client disconnects before its end. */
function readAll(request: IncomingMessage, limit: number): Promise<Buffer> {
  if (Number(request.headers["content-length"]) > limit) return Promise.reject(tooLarge(limit));
  return new Promise((resolve, reject) => {
    const fail = () => reject(new Problem(400, "invalid_json", "The connection was closed before its end."));
    // Every request is closed after its end. To create an error then would only take time.
    const failUnlessRead = () => request.readableEnded || fail();
    if (request.destroyed) return fail();
    const chunks: Buffer[] = [];
    let length = 0;
    request
      .on("data", (chunk: Buffer) => {
        length += chunk.length;
        if (length <= limit) chunks.push(chunk);
        else reject(tooLarge(limit));
      })
      .on("end", () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)))
      .on("error", fail)
      .on("close", failUnlessRead);
  });
}

function tooLarge(limit: number): Problem {
  const size = limit < 2 ** 20 ? `${limit / 1024} KB` : `${limit / 2 ** 20} MB`;
  return new Problem(413, "body_too_large", `The body must be at most ${size}.`);
}
