import type { Context, Middleware } from "koa";
import { isUnavailable } from "../../resources/http/unavailable.ts";
import { messagePage, type PageLink } from "../ui/page.ts";
import type { OnError } from "./on-error.ts";
import { respondUnavailable } from "./unavailable.ts";

const TITLES: Record<number, string> = {
  403: "Access denied",
  404: "Page not found",
  413: "Request too large",
  429: "Too many requests",
  503: "Please try again",
};

const NOT_FOUND = { code: "not_found", text: "Check the URL and try again." };
const UNREADABLE = {
  code: "invalid_request",
  text: "The request could not be read. Go back and try again.",
};
const UNEXPECTED = {
  code: "server_error",
  text: "Something went wrong on our end. The error has been logged. Try again later.",
};

/** Returns the page of an error. @param title the title itself, or the status that it is derived from */
export function errorPage(title: string | number, text: string, link?: PageLink): string {
  const heading = typeof title === "string" ? title : TITLES[title];
  return messagePage(heading ?? "Something went wrong", text, link);
}

/**
 * Answers errors and unknown addresses: with a page for browsers, with JSON for programs. Koa's own error response would
 * drop the headers that every response has.
 * @param base where pages link to the home page; the host of short links has none
 */
export function handleErrors(onError: OnError, base: string): Middleware {
  const { host } = new URL(base);
  const respond = (ctx: Context, status: number, { code, text }: { code: string; text: string }) => {
    ctx.status = status;
    if (ctx.accepts("json", "html") === "html") {
      const home = ctx.host.toLowerCase() === host ? { href: "/", text: "Go to the home page" } : undefined;
      ctx.type = "html";
      ctx.body = errorPage(status, text, home);
      return;
    }
    ctx.body = { error: code, error_description: text, request_id: ctx.state.requestId };
  };

  return async function answerError(ctx, next) {
    try {
      await next();
      if (ctx.status === 404 && ctx.body === undefined) respond(ctx, 404, NOT_FOUND);
    } catch (error) {
      if (ctx.headerSent) throw error;
      const status = statusOf(error);
      if (status >= 500) onError(error, ctx);
      if (isUnavailable(error)) respondUnavailable(ctx);
      else respond(ctx, status, status >= 500 ? UNEXPECTED : UNREADABLE);
    }
  };
}

/** Returns the status of a body parser's error, such as 413 or 415; 500 for every other error. */
function statusOf(error: unknown): number {
  const { status, expose } = error as { status?: number; expose?: boolean };
  return expose && status !== undefined && status >= 400 && status < 500 ? status : 500;
}
