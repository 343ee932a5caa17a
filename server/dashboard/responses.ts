import type { Context, Middleware } from "koa";
import { Problem } from "../../resources/problem.ts";
import { type Input, prefersHtml, readInput } from "../people/input.ts";
import { dashboardPage, type Frame, type Section } from "../views/dashboard/layout.ts";
import type { Html } from "../views/html.ts";
import { membershipOf, personOf } from "./access.ts";

/** What a page says at its top about what was just done: the word in the address → the sentence. */
const NOTICES = {
  created: "The organization was made.",
  renamed: "The organization has its new name.",
  deleted: "The organization was deleted.",
  left: "You have left the organization.",
  joined: "Welcome: you belong to this organization now.",
  "plan-changed": "The plan was changed.",
  "role-changed": "The role was changed.",
  removed: "The member was removed.",
  "invitation-revoked": "The invitation was taken back.",
  "uris-saved": "The redirect URIs were saved.",
  "secret-ended": "The secret was ended.",
  "password-changed": "The password was changed.",
  "session-ended": "The sign-in was ended.",
  "sessions-ended": "Every other sign-in was ended.",
  "identity-unlinked": "It no longer signs you in.",
  "app-revoked": "The app has lost its access.",
  "link-created": "The link was made.",
  "link-saved": "The link was saved.",
  "link-archived": "The link was archived: its short address answers that it is over.",
  "link-restored": "The link leads there again.",
  "link-deleted": "The link was deleted.",
  "webhook-saved": "The webhook was saved.",
  "webhook-enabled": "The webhook is told of things again.",
  "webhook-disabled": "The webhook is told nothing more.",
  "webhook-deleted": "The webhook was deleted.",
  "webhook-tested": "A test event is on its way.",
  "delivery-resent": "It is on its way again.",
} as const;

/** Something that was done, as the address of the next page names it. */
export type Done = keyof typeof NOTICES;

/** What `showPage` needs to know of a page besides its body. */
export type PageContent = Parameters<typeof dashboardPage>[1] & {
  section?: Section;
  notice?: string;
  error?: string | undefined;
};

/** Answers with a page of the dashboard. */
export function showPage(
  ctx: Context,
  { section, notice, error, ...content }: PageContent,
  body: Html,
): void {
  const { username, csrf } = personOf(ctx);
  const frame: Frame = {
    username,
    csrf,
    organizations: ctx.state.memberships ?? [],
    organization: membershipOf(ctx),
    section,
    notice: notice ?? NOTICES[String(ctx.query.done) as Done],
    error,
  };
  ctx.type = "html";
  ctx.body = dashboardPage(frame, content, body);
}

/** Answers a change: a browser goes on to a page, a program gets what there is to tell, or 204. */
export function answerDone(
  ctx: Context,
  { to, done, status = 200, body }: { to: string; done?: Done; status?: number; body?: object },
): void {
  if (prefersHtml(ctx)) {
    ctx.status = 303;
    return void ctx.redirect(done ? `${to}?done=${done}` : to);
  }
  ctx.status = body ? status : 204;
  if (body) ctx.body = body;
}

/** Shows a page; `error` is what was wrong with a form that was sent from it, `problem` the same field by field. */
export type Show = (ctx: Context, error?: string, problem?: Problem) => Promise<void>;

const MISTAKES = [409, 412, 422];

/** Shows the page of a form again, in a browser, with what was wrong with what was filled in. */
export function again(show: Show): Middleware {
  return async function showAgain(ctx, next) {
    try {
      await next();
    } catch (error) {
      const isMistake = error instanceof Problem && MISTAKES.includes(error.status);
      if (!isMistake || !prefersHtml(ctx)) throw error;
      ctx.status = error.status;
      await show(ctx, error.message, error);
    }
  };
}

/** What is wrong with each field of a form, to be shown beside it: the name of the field → the sentence. */
export type FieldErrors = Partial<Record<string, string>>;

/** A refusal field by field, and what is left to say above the form. */
export function byField(problem: Problem | undefined): { error?: string; errors: FieldErrors } {
  if (!problem?.errors) return { ...(problem && { error: problem.message }), errors: {} };
  const errors: FieldErrors = {};
  // Of a list, such as tags.2, the form has one field.
  for (const { field, message } of problem.errors) errors[field.split(".")[0] ?? ""] ??= message;
  return { error: "This did not work: see what is marked below.", errors };
}

/** The fields that were sent, without the one that proves a form to be ours. */
export async function fieldsOf(ctx: Context): Promise<Input> {
  const { csrf: _, ...fields } = await readInput(ctx);
  return fields;
}

/** Whether the fields came from a form, where everything is text. */
export function isForm(ctx: Context): boolean {
  return ctx.is("urlencoded") === "urlencoded";
}
