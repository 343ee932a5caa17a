import type { Context } from "koa";
import type { Problem } from "../../resources/http/problem.ts";
import { seeOther } from "../http/redirects.ts";
import { type Input, prefersHtml, readInput } from "../http/request-body.ts";
import { CONFIRMATIONS } from "../operations/index.ts";
import { withCsrf } from "../ui/controls.ts";
import { type Content, dashboardPage, type Section } from "../ui/dashboard-layout.ts";
import type { Html } from "../ui/html.ts";
import { signedInUserOf } from "./access.ts";
import { isSignedConfirmation } from "./confirmation.ts";
import { noticesBanner } from "./notices/page.ts";

/** The confirmations of changes that aren't operations: the value of `done` in the URL → the sentence. */
const NOTICES = {
  "link-created": "Link created.",
  "link-saved": "Link saved.",
  "link-archived": "Link archived. Visitors now see that it’s no longer available.",
  "link-restored": "Link restored.",
  "link-deleted": "Link deleted.",
  "webhook-saved": "Webhook saved.",
  "webhook-enabled": "Webhook enabled.",
  "webhook-disabled": "Webhook disabled.",
  "webhook-deleted": "Webhook deleted.",
  "webhook-tested": "Test event queued.",
  "delivery-resent": "Delivery queued.",
  "deliveries-resent": "Failed deliveries queued.",
} as const;

export type Done = keyof typeof NOTICES;

/** The confirmation of a change of several links: `done` in the URL ends with their number, and is signed. */
const COUNTED_NOTICES = {
  "links-archived": (links: string) => `${links} archived.`,
  "links-restored": (links: string) => `${links} restored.`,
  "links-deleted": (links: string) => `${links} deleted.`,
  "links-tagged": (links: string) => `Tag added to ${links}.`,
  "links-untagged": (links: string) => `Tag removed from ${links}.`,
} as const;

export type CountedDone = keyof typeof COUNTED_NOTICES;

export function countLinks(count: number): string {
  return `${count.toLocaleString("en")} ${count === 1 ? "link" : "links"}`;
}

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
    notice: noticeOf(ctx),
    undo,
    error,
    notices: notices?.length ?? 0,
    failingWebhooks,
    banner: section === "overview" || !membership ? noticesBanner(notices ?? []) : undefined,
  };
  ctx.type = "html";
  ctx.body = withCsrf(dashboardPage(frame, content), csrf);
}

function noticeOf(ctx: Context): string | undefined {
  const { done } = ctx.query;
  if (typeof done !== "string") return undefined;
  if (Object.hasOwn(NOTICES, done)) return NOTICES[done as Done];
  if (Object.hasOwn(CONFIRMATIONS, done)) return CONFIRMATIONS[done];
  const [, name = "", count] = /^(.+)-(\d{1,4})$/.exec(done) ?? [];
  if (!Object.hasOwn(COUNTED_NOTICES, name) || !isSignedConfirmation(ctx)) return undefined;
  return COUNTED_NOTICES[name as CountedDone](countLinks(Number(count)));
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
