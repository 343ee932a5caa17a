import { isPublicUrl } from "../../resources/outbound/public-url.ts";
import { canonicalRedirectUri, validateRedirectUris } from "./redirect-uris.ts";

/** A metadata document of a client, as it was published. */
export type Document = Record<string, unknown>;

/** A metadata document can't be used. The message is for the developer of the client. */
export class InvalidDocument extends Error {
  override readonly name = "InvalidDocument";
}

// RFC 7591 §2. Not `scope`, which names scopes of other servers as well; the user decides what is granted. Neither what
// would start another request or change what is issued, such as `sector_identifier_uri`. Secrets are kept:
// oidc-provider rejects documents that have one.
const FIELDS = `client_id client_name redirect_uris token_endpoint_auth_method token_endpoint_auth_signing_alg
  jwks jwks_uri client_secret client_secret_expires_at`.split(/\s+/);

const CODE = "authorization_code";
const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/**
 * Returns a document as this server uses it: documents are written for every server, so what doesn't apply here is
 * ignored.
 * @throws InvalidDocument if that leaves no way to ask a user. oidc-provider checks the rest.
 */
export function toClientMetadata(document: Document): Document {
  const kept = Object.entries(document).filter(([name]) => FIELDS.includes(name));
  const { jwks_uri } = document;
  const grantTypes = supportedGrantTypes(document);
  const redirectUris = listOf(document, "redirect_uris").filter(isUsable);
  if (!grantTypes.includes(CODE)) throw new InvalidDocument(`grant_types must contain ${CODE}`);
  if (redirectUris.length === 0)
    throw new InvalidDocument("redirect_uris must contain one that is allowed here");
  if (jwks_uri !== undefined && !isPublicUrl(jwks_uri)) {
    throw new InvalidDocument("jwks_uri must be an https URL on the public internet");
  }
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
  const supported = [CODE, "refresh_token", ...(isConfidential ? [JWT_BEARER] : [])];
  return listOf(document, "grant_types").filter((type) => supported.includes(type));
}

function listOf(document: Document, name: string): string[] {
  const value = document[name];
  const isList = Array.isArray(value) && value.every((item) => typeof item === "string");
  if (!isList) throw new InvalidDocument(`${name} must be a list of strings`);
  return value;
}

function isUsable(uri: string): boolean {
  return validateRedirectUris([uri]).length === 0;
}
