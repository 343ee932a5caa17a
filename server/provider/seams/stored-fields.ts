import type { Provider } from "oidc-provider";

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
};

/** Adds the fields to the models. */
export function storeFields(provider: Provider): void {
  for (const [name, fields] of Object.entries(FIELDS)) {
    const model = provider[name as keyof typeof FIELDS] as unknown as { IN_PAYLOAD: string[] };
    const all = [...model.IN_PAYLOAD, ...fields];
    Object.defineProperty(model, "IN_PAYLOAD", { configurable: true, value: all });
  }
}
