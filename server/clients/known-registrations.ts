import { LRUCache } from "lru-cache";
import { KNOWN_DOCUMENTS } from "./known-clients.ts";
import { EDITOR_REDIRECT_URIS } from "./known-redirect-uris.ts";
import { LOOPBACK } from "./redirect-uris.ts";
import { readRegistration } from "./registered-client-id.ts";

const MAX_CACHED_ANSWERS = 1000;

const REDIRECT_URIS = new Set([
  ...EDITOR_REDIRECT_URIS,
  ...[...KNOWN_DOCUMENTS.values()].flatMap(({ redirect_uris }) => redirect_uris as string[]),
]);

// Where ChatGPT receives the codes of one MCP server.
const CHATGPT_REDIRECT_URI = /^https:\/\/chatgpt\.com\/connector\/oauth\/[\w-]{12}$/;

/**
 * Creates a function that returns whether a registered client may pass as known: its codes can only reach known
 * clients, and programs on the user's own computer. Such a program could also use the id of a known client, so its
 * registration makes nothing worse. Other private-use schemes don't count, because some browsers have schemes that open
 * any website. The id must have been verified.
 */
export function createKnownRegistrations(): (clientId: string) => boolean {
  const answers = new LRUCache<string, boolean>({ max: MAX_CACHED_ANSWERS });
  return (clientId) => {
    const cached = answers.get(clientId);
    if (cached !== undefined) return cached;
    const answer = readRegistration(clientId)?.redirectUris.every(isKnownTarget) ?? false;
    answers.set(clientId, answer);
    return answer;
  };
}

/** Returns whether what is sent to a redirect URI can only reach known clients, and programs on the user's own computer. */
export function isKnownTarget(uri: string): boolean {
  const { protocol, hostname = "" } = URL.parse(uri) ?? {};
  const isOnLoopback = protocol === "http:" && LOOPBACK.has(hostname);
  return isOnLoopback || REDIRECT_URIS.has(uri) || CHATGPT_REDIRECT_URI.test(uri);
}
