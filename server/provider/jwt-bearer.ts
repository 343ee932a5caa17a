import { decodeProtectedHeader } from "jose";
import { errors, type KoaContextWithOIDC, type Provider } from "oidc-provider";

/** The grant type of assertions (RFC 7523 §2.1). */
export const JWT_BEARER_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/** The `typ` of an assertion about a user (draft-ietf-oauth-identity-assertion-authz-grant). */
export const ID_JAG = "oauth-id-jag+jwt";

/**
 * Registers the grant for assertions about a user, which also lists it in the metadata. The token of a workload never gets
 * here: sent without other authentication, it is the authentication of a `client_credentials` request.
 */
export function registerJwtBearer(
  provider: Provider,
  handleIdentityAssertion: (ctx: KoaContextWithOIDC) => Promise<void>,
): void {
  provider.registerGrantType(
    JWT_BEARER_GRANT,
    async (ctx) => {
      if (isAboutUser(ctx.oidc.params?.assertion)) return handleIdentityAssertion(ctx);
      throw new errors.InvalidRequest("an assertion must be sent with client_id and no other authentication");
    },
    ["assertion", "scope", "resource"],
    ["resource"],
  );
}

/** Returns whether an assertion claims to be about a user. */
export function isAboutUser(assertion: unknown): boolean {
  if (typeof assertion !== "string") return false;
  try {
    // RFC 7515 §4.1.9: a media type, in any case, whose `application/` may be omitted.
    const typ: unknown = decodeProtectedHeader(assertion).typ;
    return typeof typ === "string" && typ.toLowerCase().replace(/^application\//, "") === ID_JAG;
  } catch {
    return false;
  }
}
