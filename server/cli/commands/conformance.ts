import { readFile, writeFile } from "node:fs/promises";
import { z } from "zod";
import { startBrowser } from "../../../certification/browser.ts";
import type { Result } from "../../../certification/check.ts";
import { wellKnown } from "../../../certification/checks/metadata.ts";
import { countOf, type Report, toJunit } from "../../../certification/report.ts";
import { runChecks } from "../../../certification/run.ts";
import type { Metadata, Target } from "../../../certification/target.ts";
import { CommandError, type CommandInput } from "../execution/command.ts";
import { showStatus } from "../execution/progress.ts";

const credentials = z.strictObject({ client_id: z.string().min(1), client_secret: z.string().min(1) });
const configuration = credentials.extend({
  other_client: credentials.optional(),
  scope: z.string().optional(),
  resource: z.url().optional(),
  resource_indicator: z.url().optional(),
  mcp: z.url().optional(),
  redirect_uri: z.url({ hostname: /^(localhost|127\.0\.0\.1|\[::1\])$/ }).optional(),
});
type Configuration = z.infer<typeof configuration>;

/** Checks a running authorization server, of linkgate or another one, from outside. */
export async function checkConformance({ args: [base], options, note }: CommandInput): Promise<Report> {
  const given: Partial<Configuration> =
    options.config === undefined ? {} : await readConfiguration(String(options.config));
  const { url, metadata } = await findMetadata(base);
  const browser = given.redirect_uri ? await startBrowser(given.redirect_uri) : undefined;
  const target: Target = {
    issuer: base === `${metadata.issuer}/` || `${base}/` === metadata.issuer ? metadata.issuer : base,
    metadata,
    metadataUrl: url,
    client:
      given.client_id && given.client_secret
        ? { client_id: given.client_id, client_secret: given.client_secret }
        : undefined,
    other: given.other_client,
    scope: given.scope,
    resource: given.resource,
    audience: given.resource_indicator,
    mcp: given.mcp,
    redirectUri: browser?.redirectUri,
    browser,
  };
  // With --json, too: without the address the checks could not continue.
  if (browser)
    process.stderr.write(`Open ${browser.address} in a browser, and sign in when it asks you to.\n`);
  const checks = await runChecks(target, options.only as string[] | undefined, progressOf(note)).finally(() =>
    browser?.close(),
  );
  const report: Report = { issuer: target.issuer, ...countOf(checks), checks };
  if (typeof options.junit === "string") await writeFile(options.junit, toJunit(report));
  return report;
}

/** Throws CommandError that names the field. */
async function readConfiguration(file: string): Promise<Configuration> {
  const text = await readFile(file, "utf8").catch(() => {
    throw new CommandError("file_not_found", `Can't read ${file}.`);
  });
  try {
    return configuration.parse(JSON.parse(text));
  } catch (error) {
    const [issue] = error instanceof z.ZodError ? error.issues : [];
    const problem = issue ? `${issue.path.join(".") || "the object"}: ${issue.message}` : "it is not JSON";
    throw new CommandError("invalid_config", `${file} is invalid: ${problem}.`);
  }
}

/** Finds the metadata of an issuer (RFC 8414 §3, OpenID Connect Discovery §4). Throws CommandError. */
async function findMetadata(base: string): Promise<{ url: string; metadata: Metadata }> {
  if (!URL.canParse(base)) throw new CommandError("invalid_url", `${base} is not a URL.`);
  const openid = `${base.replace(/\/$/, "")}/.well-known/openid-configuration`;
  for (const url of [wellKnown(base, "oauth-authorization-server"), openid]) {
    const response = await fetch(url).catch(() => undefined);
    if (!response?.ok) continue;
    const metadata = (await response.json().catch(() => undefined)) as Metadata | undefined;
    if (metadata?.issuer) return { url, metadata };
  }
  throw new CommandError("no_metadata", `${base} publishes no authorization server metadata.`);
}

/** Shows how far the checks are, on one line of a terminal. */
function progressOf(note: (text: string) => void) {
  let done = 0;
  return ({ id }: Result, total: number) => {
    done++;
    showStatus(done === total ? "" : `${done} of ${total} ${id}`);
    if (!process.stderr.isTTY && (done % 25 === 0 || done === total)) note(`${done} of ${total} checks`);
  };
}
