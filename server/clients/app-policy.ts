import { type AppPolicyCheck, createAppPolicyCheck } from "../../adapters/oauth/app-policy.ts";
import type { Settings } from "../settings/config.ts";
import { LOOPBACK } from "../settings/setting-types.ts";
import { KNOWN_DOCUMENTS, knownDocumentOf } from "./known-clients.ts";
import { EDITOR_REDIRECT_URIS } from "./redirect-uris.ts";
import { readRegistration } from "./registered-client-id.ts";

const REDIRECT_URIS = new Set([
  ...EDITOR_REDIRECT_URIS,
  ...[...KNOWN_DOCUMENTS.values()].flatMap(({ redirect_uris }) => redirect_uris as string[]),
]);

// Where ChatGPT receives the codes of one MCP server.
const CHATGPT_REDIRECT_URI = /^https:\/\/chatgpt\.com\/connector\/oauth\/[\w-]{12}$/;

export function appPolicyCheckOf({ CIMD, DYNAMIC_REGISTRATION }: Settings): AppPolicyCheck {
  return createAppPolicyCheck({
    documents: CIMD.accepted,
    isKnown: (clientId) =>
      knownDocumentOf(clientId) !== undefined ||
      CIMD.addresses.has(clientId) ||
      isKnownRegistration(clientId),
    registration: DYNAMIC_REGISTRATION !== "off",
  });
}

/**
 * Returns whether codes of a registered client, whose id must be verified, can only reach known clients and programs
 * on the user's computer. Such a program could use the id of a known client anyway. Other private-use schemes don't
 * count, because some browsers have schemes that open any website.
 */
function isKnownRegistration(clientId: string): boolean {
  return readRegistration(clientId)?.redirectUris.every(isKnownTarget) ?? false;
}

export function isKnownTarget(uri: string): boolean {
  const { protocol, hostname = "" } = URL.parse(uri) ?? {};
  const isOnLoopback = protocol === "http:" && LOOPBACK.has(hostname);
  return isOnLoopback || REDIRECT_URIS.has(uri) || CHATGPT_REDIRECT_URI.test(uri);
}
