import { errors, type KoaContextWithOIDC } from "oidc-provider";
import { InvalidJwt, type VerifiedJwt } from "../assertions/verify-jwt.ts";
import { isFapi } from "../clients/client-metadata.ts";
import { refuseClient } from "./require-api-access.ts";

/**
 * The FAPI 2.0 Security Profile for the clients that follow it. Their metadata requires pushed requests and
 * DPoP (`adapters/oauth/oidc/clients.ts`); PKCE, `iss` and codes of 60 seconds apply to every client.
 */

const ALGS = ["PS256", "ES256", "EdDSA", "Ed25519"];

/** §5.3.2.1: clients authenticate with `private_key_jwt`. Throws InvalidClientAuth. */
export function refuseSecret(): never {
  refuseClient("the client follows FAPI 2.0 and must use private_key_jwt");
}

/** §5.3.2.1 (audience) and §5.4 (algorithms). Throws InvalidJwt. */
export function checkAssertion({ claims, header }: VerifiedJwt, issuer: string): void {
  if (!ALGS.includes(header.alg)) throw new InvalidJwt("FAPI 2.0 requires alg to be PS256, ES256 or EdDSA");
  if (claims.aud !== issuer) throw new InvalidJwt("FAPI 2.0 requires aud to be the issuer, as a string");
}

/** §5.3.2.2. Throws InvalidRequest. */
export function requireRedirectUri({ oidc }: KoaContextWithOIDC): void {
  if (isFapi(oidc.client) && oidc.params?.redirect_uri === undefined)
    throw new errors.InvalidRequest("redirect_uri is required: the client follows FAPI 2.0");
}
