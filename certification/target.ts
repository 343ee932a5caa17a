import type { Browser } from "./browser.ts";

export type Credentials = { client_id: string; client_secret: string };

/** RFC 8414 §2, of which a server under test may have anything. */
// biome-ignore lint/suspicious/noExplicitAny: the checks find out what the values are
export type Metadata = Record<string, any>;

/** The deployment under test, and what its operator configured. */
export type Target = {
  issuer: string;
  metadata: Metadata;
  metadataUrl: string;
  client: Credentials;
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
