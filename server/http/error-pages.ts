import type { Context, Middleware } from "koa";
import { answerOutage, isOutage } from "./outage.ts";
import type { OnError } from "./parts.ts";
import { messagePage } from "./views/page.ts";

type Failure = { title: string; text: string; code: string };

const NOT_FOUND: Failure = {
  title: "Nothing here",
  text: "There is no page at this address.",
  code: "not_found",
};
const REFUSED: Failure = {
  title: "This did not work",
  text: "The request could not be read. Go back and try again.",
  code: "invalid_request",
};
const UNEXPECTED: Failure = {
  title: "Something went wrong",
  text: "It is our mistake, and it was written down. Please try again later.",
  code: "server_error",
};

/**
 * Answers what was thrown on the way, and addresses that nobody knows: a page for people, JSON for programs. Koa's own
 * answer would take the headers away that every answer has.
 */
export function explainFailures(onError: OnError): Middleware {
  return async function explainFailure(ctx, next) {
    try {
      await next();
      if (ctx.status === 404 && ctx.body === undefined) answer(ctx, 404, NOT_FOUND);
    } catch (error) {
      if (ctx.headerSent) throw error;
      const status = statusOf(error);
      if (status >= 500) onError(error, ctx);
      if (isOutage(error)) answerOutage(ctx);
      else answer(ctx, status, status >= 500 ? UNEXPECTED : REFUSED);
    }
  };
}

/** What a body parser refuses has a status of its own (413, 415); whatever says nothing is our mistake. */
function statusOf(error: unknown): number {
  const { status, expose } = error as { status?: number; expose?: boolean };
  return expose && status !== undefined && status >= 400 && status < 500 ? status : 500;
}

function answer(ctx: Context, status: number, { title, text, code }: Failure): void {
  ctx.status = status;
  if (ctx.accepts("json", "html") === "html") {
    ctx.type = "html";
    ctx.body = messagePage(title, text);
    return;
  }
  ctx.body = { error: code, error_description: text, request_id: ctx.state.requestId };
}
