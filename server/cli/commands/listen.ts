import type { AllowedHosts } from "../../../resources/outbound/ssrf-guard.ts";
import { validateWebhookUrl } from "../../../resources/webhooks/schema.ts";
import { createSend, type EndpointResponse } from "../../../resources/webhooks/send.ts";
import { newWebhookSecret, signatureHeaders } from "../../../resources/webhooks/signature.ts";
import { followEvents, Refused, type RemoteEvent } from "../../remote-events.ts";
import { VERSION } from "../../version.ts";
import { type Command, CommandError, type CommandInput } from "../execution/command.ts";

/** The default of commands that use a running server. */
export const SERVER = "http://localhost:3000";
// Standard Webhooks 1.0.0: 24 to 64 bytes.
const SECRET = /^whsec_[A-Za-z0-9+/]{32,86}={0,2}$/;

type ListenResult = { events: number; failed: number; after: string | null };
type Forwarded = EndpointResponse & { ms: number };

/** Prints the events of a running server, and forwards them as a webhook would. */
export const listenCommand: Command = {
  name: "listen",
  summary: "Print events as they happen, and forward them",
  description:
    "Print events of a running server as they happen, and forward them to a local receiver of webhooks",
  options: {
    "--forward <url>": "where to send each event, signed like the request of a webhook",
    "--server <url>": "the server (default: http://localhost:3000)",
    "--types <type...>": "only events of these types, such as link.created",
    "--after <cursor>": "the position to start after, as this command prints it at its end (default: now)",
  },
  example: "--forward http://localhost:8080/",
  describe: (result) => describe(result as ListenResult),
  runAlone: listen,
};

async function listen({ options, note, print }: CommandInput): Promise<ListenResult> {
  const { server, client, secret } = await readInput(options);
  const forward = options.forward as string | undefined;
  const send = forward === undefined ? undefined : createForward(forward, secret.value);
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => stop.abort());
  const { signal } = stop;
  const result: ListenResult = { events: 0, failed: 0, after: (options.after as string | undefined) ?? null };
  let isListening = false;
  const pages = followEvents({
    server,
    client,
    types: options.types as string[] | undefined,
    cursor: result.after ?? "latest",
    signal,
    onRetry: (reason, waitMs) => note(`${reason}. Trying again in ${Math.ceil(waitMs / 1000)} s.`),
    onRecovered: () => note("Connected again."),
  });
  try {
    for await (const page of pages) {
      if (!isListening) announce(print, server, forward, secret);
      isListening = true;
      for (const event of page.data) {
        const forwarded = await send?.(event, signal);
        // Not complete, so the page is read again from the printed position.
        if (signal.aborted) return result;
        result.events++;
        if (forwarded && !isAccepted(forwarded)) result.failed++;
        print({ ...event, forwarded: forwarded ?? null }, toLine(event, forwarded));
      }
      result.after = page.resume_cursor;
    }
  } catch (error) {
    if (error instanceof Refused) throw new CommandError(error.code, error.message);
    if (!signal.aborted) throw error;
  }
  return result;
}

/** Returns the allowlist of one host: the user chose it, and it is usually local. */
function allowOf(url: string): AllowedHosts {
  return new Set([URL.parse(url)?.hostname ?? ""]);
}

type Secret = { value: string; isOwn: boolean };

/** Secrets come from the environment, because other users of a machine can read arguments. Throws CommandError. */
async function readInput({ server = SERVER, forward }: CommandInput["options"]) {
  // Not above, so the help loads no database.
  const { readVariables } = await import("../../settings/config.ts");
  const variables = readVariables("CLIENT_ID", "CLIENT_SECRET", "WEBHOOK_SECRET");
  const { CLIENT_ID: id, CLIENT_SECRET: secret, WEBHOOK_SECRET: own } = variables;
  if (!id || !secret)
    throw new CommandError(
      "missing_credentials",
      `${id ? "CLIENT_SECRET" : "CLIENT_ID"} is missing. Set CLIENT_ID and CLIENT_SECRET in the environment.`,
    );
  requireServerUrl(String(server), "--server");
  const message =
    forward === undefined ? undefined : validateWebhookUrl(String(forward), allowOf(String(forward)));
  if (message) throw new CommandError("invalid_forward", `--forward ${message}.`);
  if (own !== undefined && !SECRET.test(own))
    throw new CommandError("invalid_secret", "WEBHOOK_SECRET must be whsec_ and 24 to 64 bytes in base64.");
  const signing: Secret = { value: own ?? newWebhookSecret(), isOwn: own !== undefined };
  return { server: String(server), client: { id, secret }, secret: signing };
}

/** Throws CommandError. */
export function requireServerUrl(text: string, subject: string): URL {
  const url = URL.parse(text);
  if (url && /^https?:$/.test(url.protocol)) return url;
  throw new CommandError("invalid_server", `${subject} must be an absolute http or https URL.`);
}

/** Creates the function that sends an event as webhooks get it, once. */
function createForward(url: string, secret: string) {
  const send = createSend({ allowed: allowOf(url), userAgent: `linkgate/${VERSION}` });
  return async ({ id, ...payload }: RemoteEvent, signal: AbortSignal): Promise<Forwarded> => {
    const body = JSON.stringify(payload);
    const start = performance.now();
    const { status, error } = await send(url, signatureHeaders(id, Date.now(), body, [secret]), body, signal);
    const ms = Math.round(performance.now() - start);
    return { ...(status !== undefined && { status }), ...(error !== undefined && { error }), ms };
  };
}

function isAccepted({ status = 0 }: Forwarded): boolean {
  return status >= 200 && status < 300;
}

/** Printed once the position is known: from now on, no event is missed. */
function announce(
  print: CommandInput["print"],
  server: string,
  forward: string | undefined,
  { value, isOwn }: Secret,
): void {
  const shown = forward === undefined || isOwn ? null : value;
  const signed = `signed with ${isOwn ? "WEBHOOK_SECRET" : value}`;
  const to = forward === undefined ? "" : ` and forwarding to ${forward}, ${signed}`;
  print({ server, forward: forward ?? null, secret: shown }, `Listening to ${server}${to}.`);
}

function toLine({ timestamp, type, id }: RemoteEvent, forwarded: Forwarded | undefined): string {
  const outcome = forwarded ? ` ${forwarded.status ?? forwarded.error} (${forwarded.ms} ms)` : "";
  return `${timestamp} ${type} ${id}${outcome}`;
}

function describe({ events, failed, after }: ListenResult): string {
  const counts = `Stopped after ${events} ${events === 1 ? "event" : "events"}, ${failed} not accepted.`;
  return after === null ? counts : `${counts} To continue: --after ${after}`;
}
