import { startBrowser } from "./browser.ts";
import type { Result } from "./check.ts";
import { wellKnown } from "./checks/metadata.ts";
import { countOf, type Report } from "./report.ts";
import { runChecks } from "./run.ts";
import type { Credentials, Metadata } from "./target.ts";

export type { Result, Verdict } from "./check.ts";
export { type Report, toJunit, toText } from "./report.ts";

/** What the checks may use besides the issuer. They skip what needs a field that is missing. */
export type Configuration = Partial<Credentials> & {
  /** A client of another organization. */
  other_client?: Credentials | undefined;
  scope?: string | undefined;
  /** The URL of a protected resource that GET reads. */
  resource?: string | undefined;
  /** The resource indicator of its tokens (RFC 8707). */
  resource_indicator?: string | undefined;
  /** The URL of an MCP endpoint. */
  mcp?: string | undefined;
  /** A loopback redirect URI of the client. */
  redirect_uri?: string | undefined;
};

export type Options = {
  /** Runs only the checks whose ID starts with one of these. */
  only?: readonly string[] | undefined;
  /** Hears each result, and how many there will be. */
  onResult?(result: Result, total: number): void;
  /** With a `redirect_uri`, hears the address that the user opens in a browser. */
  onBrowser?(address: string): void;
};

/** The URL is not that of an authorization server. */
export class MetadataNotFound extends Error {
  override readonly name = "MetadataNotFound";
}

/** Checks a running authorization server from outside. Throws MetadataNotFound. */
export async function checkServer(
  base: string,
  configuration: Configuration = {},
  { only, onResult, onBrowser }: Options = {},
): Promise<Report> {
  const { client_id, client_secret, other_client, resource_indicator, redirect_uri, ...others } =
    configuration;
  const { url, metadata } = await findMetadata(base);
  const browser = redirect_uri ? await startBrowser(redirect_uri) : undefined;
  const target = {
    ...others,
    issuer: base === `${metadata.issuer}/` || `${base}/` === metadata.issuer ? metadata.issuer : base,
    metadata,
    metadataUrl: url,
    client: client_id && client_secret ? { client_id, client_secret } : undefined,
    other: other_client,
    audience: resource_indicator,
    redirectUri: browser?.redirectUri,
    browser,
  };
  if (browser) onBrowser?.(browser.address);
  const checks = await runChecks(target, only, onResult).finally(() => browser?.close());
  return { issuer: target.issuer, ...countOf(checks), checks };
}

/** Finds the metadata of an issuer (RFC 8414 §3, OpenID Connect Discovery §4). */
async function findMetadata(base: string): Promise<{ url: string; metadata: Metadata }> {
  const openid = `${base.replace(/\/$/, "")}/.well-known/openid-configuration`;
  for (const url of [wellKnown(base, "oauth-authorization-server"), openid]) {
    const response = await fetch(url).catch(() => undefined);
    if (!response?.ok) continue;
    const metadata = (await response.json().catch(() => undefined)) as Metadata | undefined;
    if (metadata?.issuer) return { url, metadata };
  }
  throw new MetadataNotFound(`${base} publishes no authorization server metadata.`);
}
