import { readFileSync } from "node:fs";

/** The metadata that a host publishes in its document or sends to register (RFC 7591 §2). */
export type HostMetadata = {
  client_id?: string;
  client_name: string;
  redirect_uris: string[];
  token_endpoint_auth_method: string;
  jwks_uri?: string;
};

/** An MCP host as others have observed it: what identifies it, and what its requests contain. */
export type Host = {
  name: string;
  /** When its document or its requests were last compared with these. */
  observed: string;
  /** Where the redirects go; `<port>` stands for a random one, and `<id>` for the one that it derives from the server. */
  redirect_uris: string[];
  /** Where it looks for the metadata of the authorization server, in this order. */
  metadata: string[];
  /** `scope`: the one of the challenge, in each token request, too, if `scope_again`. Most hosts send `resource`. */
  sends: { scope: boolean; scope_again?: boolean; resource?: boolean; prompt?: string };
} & (
  | { identifies_by: "document"; document: HostMetadata & { client_id: string } }
  | { identifies_by: "registration"; registration: HostMetadata }
);

const read = (file: string): Host[] => JSON.parse(readFileSync(new URL(file, import.meta.url), "utf8"));

export const HOSTS = read("hosts.json");
/** Servers that people run themselves, as their source code showed in November 2026. */
export const SELF_HOSTED = read("self-hosted.json");
