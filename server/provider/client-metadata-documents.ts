import type { Client, KoaContextWithOIDC } from "oidc-provider";
import type { Settings } from "../config.ts";

/** Accepts clients identified by the URL of a metadata document. They act for users only, never for themselves. */
export function clientIdMetadataDocuments({ CIMD }: Settings): object {
  if (!CIMD) return {};
  return {
    clientIdMetadataDocument: {
      enabled: true,
      ack: "draft-02",
      allowFetch: (_ctx: KoaContextWithOIDC, clientId: string) => isDocumentUrl(new URL(clientId)),
      allowClient: (_ctx: KoaContextWithOIDC, client: Client) =>
        (client.grantTypes ?? []).every((type) => type === "authorization_code" || type === "refresh_token"),
    },
  };
}

/**
 * Returns whether a metadata document may be fetched. The library checks the IP address only after it has connected,
 * which would let callers scan the ports of this host and its network, so IP addresses and local names are rejected
 * before.
 */
function isDocumentUrl({ hostname, pathname }: URL): boolean {
  const host = hostname.replace(/\.$/, "");
  const isIpAddress = host.startsWith("[") || /(^|\.)\d+$/.test(host);
  const isLocal = !host.includes(".") || host.endsWith(".localhost") || host.endsWith(".local");
  return pathname !== "/" && !isIpAddress && !isLocal;
}
