import type { Context, Middleware } from "koa";
import { type Answer, give } from "./answer.ts";
import type { Caller } from "./bearer.ts";
import { KEY, KEY_RULE, type Once, REPLAYED } from "./idempotency.ts";
import type { Operation } from "./openapi/operation.ts";
import { Problem } from "./problem.ts";

// What of an answer is kept beside its status and body; all else is about the one request.
const HEADERS = ["Location", "ETag"];

/** Heeds the header Idempotency-Key (draft-ietf-httpapi-idempotency-key-header-07); without it, nothing is asked or kept. */
export function idempotent(once: Once): (operation: Operation) => Middleware {
  return ({ id }) =>
    async function answerOnce(ctx, next) {
      const key = keyOf(ctx);
      if (key === undefined) return next();
      const caller: Caller = ctx.state.caller;
      const request = { caller, key, operation: id, input: inputOf(ctx) };
      const { isReplayed, ...answer } = await once(request, async ({ linkId }) => {
        ctx.state.caller = { ...caller, linkId };
        await next();
        return answerOf(ctx);
      });
      if (!isReplayed) return;
      give(ctx, answer);
      ctx.set(REPLAYED);
    };
}

/** @throws Problem 422 for one that breaks the rule, and for several */
function keyOf(ctx: Context): string | undefined {
  const keys = ctx.req.headersDistinct["idempotency-key"];
  if (keys === undefined) return undefined;
  const [key = ""] = keys;
  if (keys.length === 1 && KEY.test(key)) return key;
  throw new Problem(422, "invalid_idempotency_key", `Idempotency-Key: ${KEY_RULE}`, {
    errors: [{ field: "Idempotency-Key", message: KEY_RULE }],
  });
}

/** The body, with what stands in the path: what the tool of MCP takes. */
function inputOf(ctx: Context): unknown {
  const { params } = ctx;
  const { body } = ctx.request;
  if (body === undefined) return params;
  return typeof body === "object" && body !== null && !Array.isArray(body) ? { ...body, ...params } : [body];
}

function answerOf({ status, body, response }: Context): Answer {
  const headers = HEADERS.map((name) => [name, response.get(name)]).filter(([, value]) => value !== "");
  return { status, headers: Object.fromEntries(headers), body: body as Answer["body"] };
}
