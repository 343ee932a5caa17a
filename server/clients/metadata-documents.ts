import { LRUCache } from "lru-cache";
import type { Client, ErrorOut, KoaContextWithOIDC } from "oidc-provider";
import { DEVICE_GRANT, JWT_BEARER_GRANT } from "../../adapters/oauth/oidc/clients.ts";
import { parseJson } from "../../resources/http/json-body.ts";
import { FetchFailed, type GuardedFetch } from "../../resources/outbound/guarded-fetch.ts";
import { isPublicUrl } from "../../resources/outbound/ssrf-guard.ts";
import { tryTo } from "../../resources/try-to.ts";
import type { Settings } from "../settings/config.ts";
import { type Document, documentPerServer, KNOWN_DOCUMENTS, knownDocumentOf } from "./known-clients.ts";
import { canonicalRedirectUri, validateRedirectUris } from "./redirect-uris.ts";

// The largest document of a known client has 700 bytes.
const MAX_BYTES = 5 * 1024;
const JSON_TYPE = /^application\/([\w.+-]+\+)?json\s*(;|$)/i;
const COPY_LIFETIME_S = 24 * 60 * 60;
// A document that could not be fetched is soon tried again.
const FALLBACK_LIFETIME_S = 5 * 60;
// A browser waits for the document.
const TIMEOUT_MS = 3000;
// oidc-provider keeps usable documents for at least as long, and doesn't keep failures.
const OUTCOME_LIFETIME_MS = 30_000;
const MAX_OUTCOMES = 500;
const MAX_CONCURRENT = 20;

// RFC 7591 §2 and RFC 9449 §5.2, without `scope`, which names scopes of other servers as well, and without fields that
// start requests or change what is issued. Secrets stay, because oidc-provider rejects documents that have one.
const FIELDS = `client_id client_name redirect_uris token_endpoint_auth_method token_endpoint_auth_signing_alg
  jwks jwks_uri client_secret client_secret_expires_at dpop_bound_access_tokens`.split(/\s+/);

const CODE = "authorization_code";

export class InvalidDocument extends Error {
  override readonly name = "InvalidDocument";
}

/** Accepts clients identified by the URL of a metadata document. They act for users only, never for themselves. */
export function clientIdMetadataDocuments({ CIMD }: Settings): object {
  const { accepted, addresses } = CIMD;
  if (accepted === "off") return {};
  return {
    clientIdMetadataDocument: {
      enabled: true,
      ack: "draft-02",
      allowFetch: (_ctx: KoaContextWithOIDC, clientId: string) =>
        knownDocumentOf(clientId) !== undefined ||
        addresses.has(clientId) ||
        (accepted === "any" && isPublicUrl(clientId)),
      allowClient: (_ctx: KoaContextWithOIDC, client: Client) =>
        client.grantTypeAllowed("authorization_code"),
    },
  };
}

/** For a metadata document that can't be used, says why. */
export function describeError({ error, error_description }: ErrorOut, { cause }: Error): string {
  const description = error_description ?? error;
  const isExplained = cause instanceof InvalidDocument || cause instanceof FetchFailed;
  return isExplained ? `${description}: ${cause.message}` : description;
}

type Published = { document: Document; headers: Record<string, string> };

/** Creates the function that oidc-provider calls to fetch metadata documents, limited per `networkOfCaller`. */
export function createFetchDocument(
  { accepted, addresses }: Settings["CIMD"],
  fetch: GuardedFetch,
  networkOfCaller: () => string,
): typeof globalThis.fetch {
  const copies = new Map(KNOWN_DOCUMENTS);
  const fetchOnce = createFetchOnce(fetch, networkOfCaller);

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

/** Limits requests per host and network, because anyone can name any URL; failures are cached, too. */
function createFetchOnce(fetch: GuardedFetch, networkOfCaller: () => string) {
  const outcomes = new LRUCache<string, Promise<Published>>({
    max: MAX_OUTCOMES,
    ttl: OUTCOME_LIFETIME_MS,
    perf: Date,
    // Otherwise a time that was read counts for another millisecond.
    ttlResolution: 0,
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
  if (!JSON_TYPE.test(response.headers.get("content-type") ?? ""))
    throw new InvalidDocument("the document must be served as application/json");
  const document = await readDocument(response);
  if (typeof document !== "object" || document === null || Array.isArray(document))
    throw new InvalidDocument("the document must be a JSON object");
  if ((document as Document).client_id !== url)
    throw new InvalidDocument("client_id must be the URL of the document");
  const cached = ["cache-control", "expires"].flatMap((name) => {
    const value = response.headers.get(name);
    return value ? [[name, value]] : [];
  });
  return { document: document as Document, headers: Object.fromEntries(cached) };
}

/** Returns undefined for what isn't JSON, or is deeper or larger than a request may be. */
async function readDocument(response: Response): Promise<unknown> {
  const bytes = await response.bytes().catch(() => new Uint8Array());
  return tryTo(() => parseJson(bytes));
}

function respond(document: Document, headers: Record<string, string>): Response {
  return Response.json(toClientMetadata(document), { headers });
}

function maxAge(seconds: number): Record<string, string> {
  return { "cache-control": `max-age=${seconds}` };
}

/** Ignores what doesn't apply to this server. Throws InvalidDocument if that leaves no way to ask a user. */
function toClientMetadata(document: Document): Document {
  const kept = Object.entries(document).filter(([name]) => FIELDS.includes(name));
  const { jwks_uri } = document;
  const grantTypes = supportedGrantTypes(document);
  const redirectUris = listOf(document, "redirect_uris").filter(
    (uri) => validateRedirectUris([uri]).length === 0,
  );
  if (!grantTypes.includes(CODE)) throw new InvalidDocument(`grant_types must contain ${CODE}`);
  if (redirectUris.length === 0)
    throw new InvalidDocument("redirect_uris must contain one that is allowed here");
  if (jwks_uri !== undefined && !isPublicUrl(jwks_uri))
    throw new InvalidDocument("jwks_uri must be an https URL on the public internet");
  return {
    ...Object.fromEntries(kept),
    grant_types: grantTypes,
    redirect_uris: redirectUris.map(canonicalRedirectUri),
  };
}

/** RFC 7591 §2: the default is the code flow. Only a client that authenticates may exchange an assertion for a token. */
function supportedGrantTypes(document: Document): string[] {
  if (document.grant_types === undefined) return [CODE];
  const isConfidential = document.token_endpoint_auth_method === "private_key_jwt";
  const supported = [CODE, "refresh_token", isConfidential ? JWT_BEARER_GRANT : DEVICE_GRANT];
  return listOf(document, "grant_types").filter((type) => supported.includes(type));
}

function listOf(document: Document, name: string): string[] {
  const value = document[name];
  const isList = Array.isArray(value) && value.every((item) => typeof item === "string");
  if (!isList) throw new InvalidDocument(`${name} must be a list of strings`);
  return value;
}
