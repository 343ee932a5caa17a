import type { Context } from "koa";
import type { ClientStore } from "../../adapters/oauth/clients.ts";
import { describeBrowser, UNKNOWN_BROWSER } from "../http/describe-browser.ts";
import { networkOf } from "../http/network.ts";
import { createUseRecorder, type ReportError } from "./use-recorder.ts";

// Enough to tell programs apart.
const USER_AGENT_MAX = 200;
const SEPARATOR = "\n";

/** Returns a function that stores who used a client secret, at most once a minute for each caller. */
export function createSecretUseRecorder(
  clients: Pick<ClientStore, "recordSecretUse">,
  onError: ReportError,
): (secretId: string, ctx: Context) => void {
  const record = createUseRecorder(async (use, lastUsedAt) => {
    const [secretId = "", address = "", userAgent = ""] = use.split(SEPARATOR);
    const described = describeBrowser(userAgent);
    const program = described === UNKNOWN_BROWSER ? "Unknown program" : described;
    await clients.recordSecretUse(secretId, { program, network: networkOf(address), lastUsedAt });
  }, onError);
  return (secretId, ctx) =>
    record([secretId, ctx.ip, ctx.get("user-agent").slice(0, USER_AGENT_MAX)].join(SEPARATOR));
}
