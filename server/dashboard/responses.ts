import type { Context } from "koa";
import type { Notice } from "../../adapters/accounts/notices.ts";
import type { Problem } from "../../resources/http/problem.ts";
import { seeOther } from "../http/redirects.ts";
import { type Input, prefersHtml, readInput } from "../http/request-body.ts";
import { describeNotice } from "../mail/notices.ts";
import { time, withCsrf } from "../ui/controls.ts";
import { type Content, dashboardPage, type Section } from "../ui/dashboard-layout.ts";
import { type Html, html } from "../ui/html.ts";
import { signedInUserOf } from "./access.ts";
import { confirmationOf } from "./confirmation.ts";

export type PageContent = Content & {
  section?: Section | undefined;
  error?: string | undefined;
  /** The form that undoes what the confirmation is about. */
  undo?: Html | undefined;
};

export function showPage(ctx: Context, { section, error, undo, ...content }: PageContent): void {
  const { username, csrf } = signedInUserOf(ctx);
  const { memberships, membership, supportContact, notices, failingWebhooks = 0 } = ctx.state;
  const frame = {
    username,
    organizations: memberships ?? [],
    organization: membership,
    supportContact,
    section,
    notice: confirmationOf(ctx),
    undo,
    error,
    notices: notices?.length ?? 0,
    failingWebhooks,
    banner: section === "overview" || !membership ? noticesBanner(notices ?? []) : undefined,
  };
  ctx.type = "html";
  ctx.body = withCsrf(dashboardPage(frame, content), csrf);
}

/** Renders the line above every dashboard page while there are notices that the user hasn't dismissed. */
function noticesBanner([latest, ...others]: Notice[]): Html {
  if (!latest) return html``;
  const more = others.length > 0 ? html` and ${others.length} more` : html``;
  return html`<p class="alert"><strong>Security notice:</strong> ${describeNotice(latest).title} (${time(latest.createdAt)})${more}. <a href="/dashboard/notices">Review</a></p>`;
}

/** Responds to a completed change: redirects a browser to `to`, sends other clients `body` or 204. */
export function respondToChange(
  ctx: Context,
  {
    to,
    done,
    status = 200,
    body,
  }: { to: string; done?: string | undefined; status?: number | undefined; body?: object | undefined },
): void {
  if (prefersHtml(ctx)) seeOther(ctx, done ? withDone(to, done) : to);
  else if (body) sendJson(ctx, body, status);
  else ctx.status = 204;
}

function withDone(to: string, done: string): string {
  const [path = "", anchor] = to.split("#");
  return `${path}${path.includes("?") ? "&" : "?"}done=${done}${anchor ? `#${anchor}` : ""}`;
}

/** Responds to a client other than a browser. */
export function sendJson(ctx: Context, body: object, status = 200): void {
  ctx.status = status;
  ctx.body = body;
}

/** Shows a page; `error` says why the form sent from it was rejected, `problem` says so for each field. */
export type Show = (ctx: Context, error?: string, problem?: Problem) => Promise<void>;

/** The error of each rejected field: field name → sentence. */
export type FieldErrors = Partial<Record<string, string>>;

/** Splits a problem into one error per field and a summary for the top of the form. */
export function splitFieldErrors(problem: Problem | undefined): { error?: string; errors: FieldErrors } {
  if (!problem?.errors) return { ...(problem && { error: problem.message }), errors: {} };
  const errors: FieldErrors = {};
  // A form has one field for a list: an error of tags.2 belongs to tags.
  for (const { field, message } of problem.errors) errors[field.split(".")[0] ?? ""] ??= toSentence(message);
  return { error: "Fix the errors below and try again.", errors };
}

/** The alert names every error if one of them has no field in the form, such as that of an unknown parameter. */
export function queryErrors(
  problem: Problem | undefined,
  formFields: string[],
): { error?: string; errors: FieldErrors } {
  const { error, errors } = splitFieldErrors(problem);
  if (!problem || error === undefined) return { errors };
  const isInForm = Object.keys(errors).every((field) => formFields.includes(field));
  if (isInForm) return { error, errors };
  if (problem.code !== "unknown_field") return { error: problem.message, errors };
  const unknown = Object.keys(errors).map((field) => `Unknown filter “${field}”.`);
  return { error: unknown.join(" "), errors };
}

/** Turns a rule such as “must be a URL” into the sentence that a form shows. */
function toSentence(rule: string): string {
  const sentence = rule.charAt(0).toUpperCase() + rule.slice(1);
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`;
}

export async function formFieldsOf(ctx: Context): Promise<Input> {
  const { csrf: _, ...fields } = await readInput(ctx);
  return fields;
}

/** Returns whether the fields came from an HTML form, where every value is text. */
export function isForm(ctx: Context): boolean {
  return ctx.is("urlencoded") === "urlencoded";
}
