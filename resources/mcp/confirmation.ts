import { hkdfSync } from "node:crypto";
import {
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  createRequestStateCodec,
  type InputRequiredResult,
  inputRequired,
  inputResponse,
  type RequestStateCodec,
  type ServerContext,
} from "@modelcontextprotocol/server";
import type { AuthenticatedCaller } from "../access/bearer.ts";
import { fingerprintOf } from "../idempotency/run-once.ts";

/** The question about one call, and whether its user has answered it. */
export type Answer = { ask: InputRequiredResult } | "accepted" | "declined" | "canceled";

/** Asks users to confirm calls, without keeping anything on the server between the question and the answer. */
export type Confirmations = {
  /** Verifies the state that a client returns with an answer. @throws Error for one that this service didn't sign */
  verify: RequestStateCodec<string>["verify"];
  /** Returns the user's answer, or the question if this call has none for it. */
  answerTo(question: string, call: { tool: string; input: object }, ctx: ServerContext): Promise<Answer>;
};

const KEY_BYTES = 32;
const LIFETIME_S = 10 * 60;
const NAME = "confirm";

/**
 * Creates the confirmations of revision 2026-07-28, "Multi Round-Trip Requests". The signed state names the call and the
 * question, and is bound to the caller, so an answer counts for nothing else. If what would be deleted has changed since,
 * the question is another one, and is asked again.
 * @param secret shared by all processes
 */
export function createConfirmations(
  secret: string,
  callerOf: (ctx: ServerContext) => AuthenticatedCaller,
): Confirmations {
  const states = createRequestStateCodec<string>({
    key: new Uint8Array(hkdfSync("sha256", secret, "", "MCP confirmation", KEY_BYTES)),
    ttlSeconds: LIFETIME_S,
    bind: (ctx) => {
      const { organizationId, clientId, userId } = callerOf(ctx);
      return JSON.stringify([organizationId, clientId, userId ?? null]);
    },
  });

  return {
    verify: states.verify,

    async answerTo(question, { tool, input }, ctx) {
      const asked = fingerprintOf(tool, { input, question });
      const response = inputResponse(ctx.mcpReq.inputResponses, NAME);
      if (response.kind === "elicit" && ctx.mcpReq.requestState<string>() === asked) {
        return { accept: "accepted", decline: "declined", cancel: "canceled" }[response.action] as Answer;
      }
      // Without fields: to accept the question is the answer.
      const requestedSchema = { type: "object" as const, properties: {} };
      return {
        ask: inputRequired({
          inputRequests: { [NAME]: inputRequired.elicit({ message: question, requestedSchema }) },
          requestState: await states.mint(asked, ctx),
        }),
      };
    },
  };
}

/**
 * Returns whether the client declared with this request that it can show a form. Clients of the 2025 revisions declare
 * theirs when they connect, and could be asked only over a stream, which this endpoint doesn't have.
 */
export function canAsk(ctx: ServerContext): boolean {
  const envelope: { [CLIENT_CAPABILITIES_META_KEY]?: ClientCapabilities } = { ...ctx.mcpReq.envelope };
  const elicitation = envelope[CLIENT_CAPABILITIES_META_KEY]?.elicitation;
  if (!elicitation) return false;
  // An empty declaration stands for forms, the only mode of earlier revisions.
  return elicitation.form !== undefined || Object.keys(elicitation).length === 0;
}
