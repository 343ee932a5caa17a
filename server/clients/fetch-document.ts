import { LRUCache } from "lru-cache";
import type { GuardedFetch } from "../../resources/outbound/guarded-fetch.ts";
import type { Settings } from "../settings/config.ts";
import { type Document, InvalidDocument, toClientMetadata } from "./document-metadata.ts";
import { documentPerServer, KNOWN_DOCUMENTS } from "./known-clients.ts";

// The largest document of a known client has 700 bytes.
const MAX_BYTES = 5 * 1024;
const JSON_TYPE = /^application\/([\w.+-]+\+)?json\s*(;|$)/i;
const COPY_LIFETIME_S = 24 * 60 * 60;
// A document that could not be fetched is soon tried again.
const FALLBACK_LIFETIME_S = 5 * 60;
// A browser waits for the document.
const TIMEOUT_MS = 3000;
// The library keeps usable documents for at least as long, and doesn't keep failures.
const OUTCOME_LIFETIME_MS = 30_000;
const MAX_OUTCOMES = 500;
const MAX_CONCURRENT = 20;

type Published = { document: Document; headers: Record<string, string> };

/**
 * Creates the function that the library calls instead of `fetch`, which it uses for metadata documents only: keys are
 * fetched where assertions are verified. With `known`, it connects only to the addresses that the operator added.
 * @param networkOfCaller returns the network that the current request comes from
 */
export function createFetchDocument(
  { accepted, addresses }: Settings["CIMD"],
  fetch: GuardedFetch,
  networkOfCaller: () => string,
): typeof globalThis.fetch {
  const copies = new Map(KNOWN_DOCUMENTS);
  const fetchOnce = createFetchOnce(fetch, networkOfCaller);

  /** Fetches a document; that of a known client replaces its copy, which is used if the host doesn't answer. */
  async function fetchOrCopy(clientId: string, copy: Document | undefined): Promise<Response> {
    try {
      const { document, headers } = await fetchOnce(clientId);
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
    const perServer = accepted !== "off" && documentPerServer(clientId);
    if (perServer) return respond(perServer, maxAge(COPY_LIFETIME_S));
    const copy = copies.get(clientId);
    if (accepted === "any" || addresses.has(clientId)) return fetchOrCopy(clientId, copy);
    if (accepted === "known" && copy) return respond(copy, maxAge(COPY_LIFETIME_S));
    throw new TypeError("this server fetches no metadata documents");
  };
}

/**
 * Returns a function that fetches a document at most once in half a minute, even if that fails. Anyone can name any
 * URL, so requests to one host, and for callers in one network, are limited.
 */
function createFetchOnce(fetch: GuardedFetch, networkOfCaller: () => string) {
  const outcomes = new LRUCache<string, Promise<Published>>({
    max: MAX_OUTCOMES,
    ttl: OUTCOME_LIFETIME_MS,
    perf: Date,
  });
  const running: string[] = [];
  const isBusy = (key: string) => running.filter((one) => one === key).length >= MAX_CONCURRENT;

  return async function fetchOnce(clientId: string): Promise<Published> {
    const known = outcomes.get(clientId);
    if (known) return known;
    const keys = [`host ${URL.parse(clientId)?.host}`, `network ${networkOfCaller()}`];
    if (keys.some(isBusy)) throw new InvalidDocument("too many documents are being fetched, try again later");
    running.push(...keys);
    const outcome = fetchJson(fetch, clientId).finally(() => {
      for (const key of keys) running.splice(running.indexOf(key), 1);
    });
    outcomes.set(clientId, outcome);
    return outcome;
  };
}

async function fetchJson(fetch: GuardedFetch, url: string): Promise<Published> {
  const response = await fetch(url, { maxBytes: MAX_BYTES, timeoutMs: TIMEOUT_MS });
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
