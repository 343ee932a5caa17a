import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto";
import { deflateRawSync, inflateRawSync } from "node:zlib";
import { clientKindOf, REGISTERED_PREFIX } from "../../adapters/oauth/app-policy.ts";
import { ABSOLUTE_LIFETIME } from "../settings/token-lifetimes.ts";
import { redirectTargetOf } from "./redirect-uris.ts";

const MAC_LENGTH = 43; // HMAC-SHA256 in base64url
const HEADER_LENGTH = 3; // the version, and the day of expiry
const MAX_METADATA_BYTES = 16_384; // no request is longer
const DAY_MS = 24 * 60 * 60 * 1000;
const LIFETIME_MS = ABSOLUTE_LIFETIME * 1000;

// Raise it with every change of the format or the dictionary: registered ids are read with the dictionary that they
// were written with.
const VERSION = 1;
// Common values of registrations, the most frequent last (RFC 1950 §2.2). It makes ids about a third shorter.
const DICTIONARY = Buffer.from(`\
http://[::1]/https://localhost:/callback/oauth2/callback://auth/callback/mcp/oauth/callback MCP Client
http://127.0.0.1:33418/
https://insiders.vscode.dev/redirect
https://vscode.dev/redirect
http://127.0.0.1/
http://localhost:7777/oauth/callback
cursor://anysphere.cursor-mcp/oauth/callback
https://www.cursor.com/agents/mcp/oauth/callback
http://localhost:8787/callback`);

/** `name` is what the client calls itself, or empty. */
export type Registration = { name: string; redirectUris: string[]; expiresAt: number };

export type RegisteredClientIds = ReturnType<typeof createRegisteredClientIds>;

/** The ids contain their registration, so none is stored (RFC 7591 appendix A.5.2). All processes share `secret`. */
export function createRegisteredClientIds(secret: string) {
  const key = Buffer.from(hkdfSync("sha256", secret, "", "registered client id", 32));
  const sign = (text: string) => createHmac("sha256", key).update(text).digest("base64url");
  return {
    /** Equal registrations of one day get the same id, which RFC 7591 §3.2.1 allows for instances of one client. */
    issue(client: Pick<Registration, "name" | "redirectUris">): string {
      const text = REGISTERED_PREFIX + pack(client);
      return text + sign(text);
    },

    /** Also returns an expired registration. */
    verify(clientId: string): Registration | undefined {
      if (clientKindOf(clientId) !== "registered") return undefined;
      const text = clientId.slice(0, -MAC_LENGTH);
      // Compares text: a MAC with another last character can decode to the same bytes, and each client has one id.
      const given = Buffer.from(clientId.slice(-MAC_LENGTH));
      const expected = Buffer.from(sign(text));
      if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
      return unpack(text);
    },
  };
}

/**
 * Returns the name in quotation marks, or else all hosts and schemes: a single one could be that of another client.
 * Undefined for any other client. The id must have been verified.
 */
export function claimedNameOf(clientId: string): string | undefined {
  const { name, redirectUris = [] } = readRegistration(clientId) ?? {};
  if (name) return `“${name}”`;
  return [...new Set(redirectUris.map((uri) => redirectTargetOf(uri).name))].join(", ") || undefined;
}

/** Returns undefined for any other client. The id must have been verified. */
export function readRegistration(clientId: string): Registration | undefined {
  return clientKindOf(clientId) === "registered" ? unpack(clientId.slice(0, -MAC_LENGTH)) : undefined;
}

function pack({ name, redirectUris }: Pick<Registration, "name" | "redirectUris">): string {
  const header = Buffer.alloc(HEADER_LENGTH);
  header.writeUInt8(VERSION);
  // A new registration lasts as long as a grant. When both have expired, the user has to approve the app again anyway.
  header.writeUInt16BE(Math.ceil((Date.now() + LIFETIME_MS) / DAY_MS), 1);
  const metadata = deflateRawSync([name, ...redirectUris].join("\n"), { level: 9, dictionary: DICTIONARY });
  return Buffer.concat([header, metadata]).toString("base64url");
}

function unpack(text: string): Registration | undefined {
  const bytes = Buffer.from(text.slice(REGISTERED_PREFIX.length), "base64url");
  if (bytes.readUInt8() !== VERSION) return undefined;
  const metadata = inflateRawSync(bytes.subarray(HEADER_LENGTH), {
    dictionary: DICTIONARY,
    maxOutputLength: MAX_METADATA_BYTES,
  });
  const [name = "", ...redirectUris] = metadata.toString().split("\n");
  return { name, redirectUris, expiresAt: bytes.readUInt16BE(1) * DAY_MS };
}
