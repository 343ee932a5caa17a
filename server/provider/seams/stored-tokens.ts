import type { Client, Provider } from "oidc-provider";
import { withChecksum } from "../../../adapters/crypto/ids.ts";
import { tokenTime } from "../../../adapters/oauth/token-row.ts";

/**
 * Seam: a token gets an id of ours, and what it keeps of its client, when it is about to be stored.
 * No option: the length of an id is configurable, its form is not.
 * Upstream would have to offer: an option that generates ids.
 */

const PREFIXES = { AccessToken: "lga_", ClientCredentials: "lga_", RefreshToken: "lgr_" };

type NewToken = { client?: Client; generation?: unknown; isPublic?: boolean };
type Model = { prototype: { generateTokenId(this: NewToken): string } };

/**
 * Prefixes and checksums let scanners find leaked tokens, and help people to tell one kind from another. With the time,
 * tokens are stored in the order in which they were issued.
 */
export function generateTokenIds(provider: Provider): void {
  for (const [name, prefix] of Object.entries(PREFIXES)) {
    const { prototype } = provider[name as keyof typeof PREFIXES] as unknown as Model;
    const { generateTokenId } = prototype;
    prototype.generateTokenId = function generatePrefixed() {
      this.generation = this.client?.generation;
      this.isPublic = this.client?.tokenEndpointAuthMethod === "none";
      return withChecksum(prefix + tokenTime() + generateTokenId.call(this));
    };
  }
}

/**
 * Seam: oidc-provider stores and restores fields of ours.
 * No option: `extraTokenClaims` applies only to access tokens, and introspection exposes the claims.
 * Upstream would have to offer: a list of extra fields per model.
 */

/** The fields that are stored, and those that only the storage adds to what it returns. */
const FIELDS = {
  Grant: [
    "organizationId", // chosen on the consent page
    ...["address", "methods", "amr"], // of the user, and how the user signed in
  ],
  Session: [
    ...["address", "userAgent", "seenAt"], // the last use
    ...["methods", "provedAt", "credential"], // how and when the user signed in
    "replaces", // the previous id, while it is replaced
  ],
  AccessToken: [
    "generation", // of the client when it authenticated: raising the client's revokes all tokens, even one being issued
    "active", // from the storage: everything that the validity depends on
  ],
  ClientCredentials: ["generation", "active"],
  RefreshToken: [
    "generation",
    "isPublic", // whether the client has no credentials, which decides for how long a use may be retried
    "holder", // from the storage: the user, and the state of the grant
    "grant", // from the storage: the payload of the grant
    "requiresDpop", // from the storage: whether an organization requires DPoP
  ],
  AuthorizationCode: ["holder", "grant", "requiresDpop"],
  DeviceCode: ["holder", "grant", "requiresDpop"],
};

/** Adds the fields to the models. */
export function storeFields(provider: Provider): void {
  for (const [name, fields] of Object.entries(FIELDS)) {
    const model = provider[name as keyof typeof FIELDS] as unknown as { IN_PAYLOAD: string[] };
    const all = [...model.IN_PAYLOAD, ...fields];
    Object.defineProperty(model, "IN_PAYLOAD", { configurable: true, value: all });
  }
}
