import type { GuardedFetch } from "../../resources/outbound/guarded-fetch.ts";
import type { Settings } from "../config.ts";
import { type Document, InvalidDocument, toClientMetadata } from "./document-metadata.ts";
import { KNOWN_DOCUMENTS } from "./known-clients.ts";

// The largest document of a known client has 700 bytes.
const MAX_BYTES = 5 * 1024;
const JSON_TYPE = /^application\/([\w.+-]+\+)?json\s*(;|$)/i;
const COPY_LIFETIME_S = 24 * 60 * 60;
// A document that could not be fetched is soon tried again.
const FALLBACK_LIFETIME_S = 5 * 60;

/**
 * Creates the function that the library calls instead of `fetch`, which it uses for metadata documents only: keys are
 * fetched where assertions are verified. With `known`, it never connects to anything.
 */
export function createFetchDocument(
  accepted: Settings["CIMD"],
  fetch: GuardedFetch,
): typeof globalThis.fetch {
  const copies = new Map(KNOWN_DOCUMENTS);

  /** Fetches a document; that of a known client replaces its copy, which is used if the host doesn't answer. */
  async function fetchOrCopy(clientId: string, copy: Document | undefined): Promise<Response> {
    try {
      const { document, headers } = await fetchJson(fetch, clientId);
      const response = respond(document, headers);
      if (copy) copies.set(clientId, document);
      return response;
    } catch (error) {
      if (!copy) throw error;
      return respond(copy, maxAge(FALLBACK_LIFETIME_S));
    }
  }

  return async function fetchDocument(url) {
    const clientId = String(url);
    const copy = copies.get(clientId);
    if (accepted === "any") return fetchOrCopy(clientId, copy);
    if (accepted === "known" && copy) return respond(copy, maxAge(COPY_LIFETIME_S));
    throw new TypeError("this server fetches no metadata documents");
  };
}

async function fetchJson(
  fetch: GuardedFetch,
  url: string,
): Promise<{ document: Document; headers: Record<string, string> }> {
  const response = await fetch(url, { maxBytes: MAX_BYTES });
  if (response.status !== 200) throw new InvalidDocument(`the document was answered with ${response.status}`);
  // A page that happens to be JSON, such as an upload, was not published as a document.
  if (!JSON_TYPE.test(response.headers.get("content-type") ?? "")) {
    throw new InvalidDocument("the document must be served as application/json");
  }
  const document: unknown = await response.json().catch(() => undefined);
  if (typeof document !== "object" || document === null || Array.isArray(document)) {
    throw new InvalidDocument("the document must be a JSON object");
  }
  if ((document as Document).client_id !== url) {
    throw new InvalidDocument("client_id must be the URL of the document");
  }
  const cached = ["cache-control", "expires"].flatMap((name) => {
    const value = response.headers.get(name);
    return value ? [[name, value]] : [];
  });
  return { document: document as Document, headers: Object.fromEntries(cached) };
}

function respond(document: Document, headers: Record<string, string>): Response {
  return Response.json(toClientMetadata(document), { headers });
}

function maxAge(seconds: number): Record<string, string> {
  return { "cache-control": `max-age=${seconds}` };
}
