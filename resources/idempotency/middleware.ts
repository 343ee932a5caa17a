import type { ApiContext, ApiMiddleware } from "../http/api-context.ts";
import { Problem } from "../http/problem.ts";
import { respond, type ServiceResponse } from "../http/response.ts";
import { invalidField } from "../http/validate.ts";
import { KEY, KEY_RULE, REPLAYED_HEADER, type RunOnce } from "./run-once.ts";

// The headers stored with a response. The others belong to the individual request.
const STORED_HEADERS = ["Location", "ETag"];

/**
 * Makes a POST idempotent by its `Idempotency-Key` header (draft-ietf-httpapi-idempotency-key-header-07). Requests
 * without the header are not affected.
 */
export function idempotent(runOnce: RunOnce): (operation: { id: string }) => ApiMiddleware {
  return ({ id }) =>
    async function handleIdempotencyKey(ctx, next) {
      const key = readKey(ctx);
      if (key === undefined) return next();
      const { caller } = ctx.state;
      const request = { caller, key, operation: id, input: inputOf(ctx) };
      const { isReplayed, omitsSecret, ...response } = await runOnce(request, async ({ linkId }) => {
        ctx.state.caller = { ...caller, linkId };
        await next();
        return toStoredResponse(ctx);
      });
      if (!isReplayed) return;
      if (omitsSecret) throw secretShownOnce();
      respond(ctx, response);
      ctx.set(REPLAYED_HEADER);
    };
}

/** @throws Problem 422 for an invalid key, and for more than one */
function readKey(ctx: ApiContext): string | undefined {
  if (ctx.req.headers["idempotency-key"] === undefined) return undefined;
  // Node joins several with ", ", and a valid key has no space.
  const key = ctx.get("idempotency-key");
  if (KEY.test(key)) return key;
  throw invalidField("Idempotency-Key", KEY_RULE, "invalid_idempotency_key");
}

/** Returns the body combined with the path parameters: the same input that the MCP tool takes. */
function inputOf(ctx: ApiContext): unknown {
  const { params } = ctx;
  const { body } = ctx.request;
  if (body === undefined) return params;
  return typeof body === "object" && body !== null && !Array.isArray(body) ? { ...body, ...params } : [body];
}

function secretShownOnce(): Problem {
  const detail =
    "The first request with this idempotency key succeeded. Its response had a secret, which is shown once.";
  return new Problem(409, "secret_shown_once", detail, { headers: REPLAYED_HEADER });
}

function toStoredResponse({ status, body, response }: ApiContext): ServiceResponse {
  const headers = STORED_HEADERS.map((name) => [name, response.get(name)]).filter(([, value]) => value);
  return { status, headers: Object.fromEntries(headers), body: body as ServiceResponse["body"] };
}
