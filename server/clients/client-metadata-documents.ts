import type { Client, ErrorOut, KoaContextWithOIDC } from "oidc-provider";
import { FetchFailed } from "../../resources/outbound/guarded-fetch.ts";
import { isPublicUrl } from "../../resources/outbound/public-url.ts";
import type { Settings } from "../settings/config.ts";
import { InvalidDocument } from "./document-metadata.ts";
import { knownDocumentOf } from "./known-clients.ts";

/** Accepts clients identified by the URL of a metadata document. They act for users only, never for themselves. */
export function clientIdMetadataDocuments({ CIMD }: Settings): object {
  const { accepted, addresses } = CIMD;
  if (accepted === "off") return {};
  return {
    clientIdMetadataDocument: {
      enabled: true,
      ack: "draft-02",
      allowFetch: (_ctx: KoaContextWithOIDC, clientId: string) =>
        knownDocumentOf(clientId) !== undefined ||
        addresses.has(clientId) ||
        (accepted === "any" && isPublicUrl(clientId)),
      allowClient: (_ctx: KoaContextWithOIDC, client: Client) =>
        client.grantTypeAllowed("authorization_code"),
    },
  };
}

/** Describes an error of an authorization request; for a metadata document that can't be used, it says why. */
export function describeError({ error, error_description }: ErrorOut, { cause }: Error): string {
  const description = error_description ?? error;
  const isExplained = cause instanceof InvalidDocument || cause instanceof FetchFailed;
  return isExplained ? `${description}: ${cause.message}` : description;
}
