import { createPrivateKey, randomUUID } from "node:crypto";
import { SignJWT } from "jose";
import type { KoaContextWithOIDC } from "oidc-provider";
import { sha256 } from "../../adapters/crypto/hash.ts";
import { type Keys, statementKeyOf } from "../keys/shared-keys.ts";

// Explicitly typed, so that it can't be taken for an ID token (RFC 8725 §3.11).
const TYPE = "revocation-statement+jwt";

/** What a revocation ended: `grant` is a user's authorization with all its tokens, null nothing of the client. */
type Revoked = "token" | "grant" | null;

/**
 * Signs what the request revoked. Call it after the revocation was committed: no request that begins after
 * `revoked_at` succeeds with the token.
 */
export async function signRevocation({ oidc }: KoaContextWithOIDC, keys: Keys): Promise<string> {
  const key = statementKeyOf(keys);
  const { client, params, issuer, entities } = oidc as typeof oidc & {
    entities: Record<string, { clientId?: string }>;
  };
  const ofUser = entities.AccessToken ?? entities.RefreshToken;
  const token = ofUser ?? entities.ClientCredentials;
  const isOwn = token !== undefined && token.clientId === client?.clientId;
  const revoked: Revoked = isOwn ? (ofUser ? "grant" : "token") : null;
  return new SignJWT({
    token_sha256: sha256(String(params?.token)),
    revoked,
    revoked_at: new Date().toISOString(),
  })
    .setProtectedHeader({ alg: "ES256", kid: String(key.kid), typ: TYPE })
    .setIssuer(issuer)
    .setAudience(String(client?.clientId))
    .setIssuedAt()
    .setJti(randomUUID())
    .sign(createPrivateKey({ key: key as never, format: "jwk" }));
}
