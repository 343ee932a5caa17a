import type { Browser } from "./browser.ts";

export type Credentials = { client_id: string; client_secret: string };

type Authenticated = "token" | "introspection" | "revocation";

/** The lists of the metadata that the checks read. */
export type MetadataList =
  | "code_challenge_methods_supported"
  | "dpop_signing_alg_values_supported"
  | "grant_types_supported"
  | "id_token_signing_alg_values_supported"
  | "request_object_signing_alg_values_supported"
  | "response_types_supported"
  | "scopes_supported"
  | `${Authenticated}_endpoint_auth_methods_supported`
  | `${Authenticated}_endpoint_auth_signing_alg_values_supported`;

/** RFC 8414 §2, as far as the checks read it. */
export type Metadata = Partial<Record<MetadataList, string[]>> & {
  issuer: string;
  jwks_uri?: string;
  authorization_response_iss_parameter_supported?: boolean;
  client_id_metadata_document_supported?: boolean;
  [endpoint: `${string}_endpoint`]: string | undefined;
};

/** The deployment under test, and what its operator configured. */
export type Target = {
  issuer: string;
  metadata: Metadata;
  metadataUrl: string;
  client?: Credentials | undefined;
  /** A client of another organization. */
  other?: Credentials | undefined;
  scope?: string | undefined;
  /** The URL of a protected resource that GET reads. */
  resource?: string | undefined;
  /** The resource indicator of its tokens (RFC 8707). */
  audience?: string | undefined;
  /** The URL of an MCP endpoint. */
  mcp?: string | undefined;
  /** A loopback redirect URI of the client. */
  redirectUri?: string | undefined;
  browser?: Browser | undefined;
};
