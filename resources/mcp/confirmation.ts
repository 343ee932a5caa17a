import { hkdfSync } from "node:crypto";
import {
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  createRequestStateCodec,
  type InputRequiredResult,
  inputRequired,
  inputResponse,
  type ServerContext,
} from "@modelcontextprotocol/server";
import type { AuthenticatedCaller } from "../access/bearer.ts";
import { fingerprintOf } from "../idempotency/run-once.ts";
import type { Tool } from "./tool.ts";

export type Confirmations = ReturnType<typeof createConfirmations>;

const KEY_BYTES = 32;
const LIFETIME_S = 10 * 60;
const NAME = "confirm";

/** MCP 2026-07-28, "Multi Round-Trip Requests": the signed state names the caller, the call and the question. */
export function createConfirmations(secret: string, callerOf: (ctx: ServerContext) => AuthenticatedCaller) {
  const states = createRequestStateCodec<string>({
    key: new Uint8Array(hkdfSync("sha256", secret, "", "MCP confirmation", KEY_BYTES)),
    ttlSeconds: LIFETIME_S,
    bind: (ctx) => {
      const { organizationId, clientId, userId } = callerOf(ctx);
      return JSON.stringify([organizationId, clientId, userId ?? null]);
    },
  });

  return {
    /** @throws Error for a state that this service didn't sign */
    verify: states.verify,

    /** Returns the question to the user, or why the tool must not run; undefined if it may. */
    async confirm(
      { name, question }: Tool,
      input: Record<string, unknown>,
      ctx: ServerContext,
    ): Promise<InputRequiredResult | string | undefined> {
      const message = canAsk(ctx) ? await question(callerOf(ctx), input) : undefined;
      if (message === undefined) return undefined;
      const asked = fingerprintOf(name, { input, question: message });
      const response = inputResponse(ctx.mcpReq.inputResponses, NAME);
      if (response.kind === "elicit" && ctx.mcpReq.requestState<string>() === asked) {
        if (response.action === "accept") return undefined;
        return `The user ${response.action === "decline" ? "declined" : "canceled"}. Nothing was deleted.`;
      }
      // Without fields: to accept the question is the answer.
      const requestedSchema = { type: "object" as const, properties: {} };
      return inputRequired({
        inputRequests: { [NAME]: inputRequired.elicit({ message, requestedSchema }) },
        requestState: await states.mint(asked, ctx),
      });
    },
  };
}

/** The client declares with each request that it can show a form. Earlier revisions need a stream for that. */
function canAsk(ctx: ServerContext): boolean {
  const envelope: { [CLIENT_CAPABILITIES_META_KEY]?: ClientCapabilities } = { ...ctx.mcpReq.envelope };
  const elicitation = envelope[CLIENT_CAPABILITIES_META_KEY]?.elicitation;
  if (!elicitation) return false;
  // An empty declaration stands for forms, the only mode of earlier revisions.
  return elicitation.form !== undefined || Object.keys(elicitation).length === 0;
}
