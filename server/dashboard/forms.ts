import type { Router } from "@koa/router";
import type { Context, Middleware } from "koa";
import { type Precondition, preconditionOf } from "../../resources/http/etag.ts";
import { Problem } from "../../resources/http/problem.ts";
import { requireRecentSignIn } from "../auth/authenticate.ts";
import { isChange } from "../http/csrf.ts";
import { type Input, prefersHtml, readInput } from "../http/request-body.ts";
import type { PageContent, Section } from "../ui/dashboard-layout.ts";
import { showPage } from "./responses.ts";

/** Shows a page; `error` says why the form sent from it was rejected, `problem` says so for each field. */
export type Show = (ctx: Context, error?: string, problem?: Problem) => Promise<void>;

const INPUT_ERRORS = [409, 412, 422];
// Refusals that depend on the input, although their status says that the user may not do this.
const REFUSED_INPUT = ["quota_exceeded", "shared_account"];

/** In a browser, shows the page of a rejected form again, with the errors, or one that may be sent again later. */
export function redisplayForm(show: Show): Middleware {
  return async function showPageAgain(ctx, next) {
    try {
      await next();
    } catch (error) {
      const isInputError =
        error instanceof Problem &&
        (INPUT_ERRORS.includes(error.status) ||
          REFUSED_INPUT.includes(error.code) ||
          (error.status === 503 && isChange(ctx)));
      if (!isInputError || !prefersHtml(ctx)) throw error;
      ctx.status = error.status;
      ctx.set(error.headers);
      await show(ctx, error.message, error);
    }
  };
}

/** A change that a form and programs request. */
export type Change = {
  access: readonly Middleware[];
  /** Where the form is sent; absent if only programs request the change. */
  action?: string | undefined;
  /** The method and path by which programs request it, if they have their own. */
  program?: readonly [method: string, path: string] | undefined;
  needsRecentSignIn?: boolean | undefined;
  /** What a user who has to sign in again is asked then: a verb and a noun. */
  summary?: string | undefined;
  /** Returns the path of the page with the form, to which a user who has to sign in again returns. */
  pageOf?: ((ctx: Context) => string) | undefined;
  /** The page with the form, shown again if the input is rejected. */
  show?: Show | undefined;
  /** Runs before a change that is sent to the form's address. */
  before?: Middleware | undefined;
  change(ctx: Context): Promise<void>;
};

/** Adds the addresses at which a change is requested. */
export function addChange(router: Router, options: Change): void {
  const { access, action, program, needsRecentSignIn, summary, pageOf, show, before, change } = options;
  const checkSignIn: Middleware = (ctx, next) => {
    ctx.state.summary = summary;
    if (needsRecentSignIn) requireRecentSignIn(ctx, pageOf?.(ctx));
    return next();
  };
  if (program) router.register(program[1], [program[0]], [...access, checkSignIn, change]);
  if (action === undefined) return;
  const rejected = show ? [redisplayForm(show)] : [];
  router.post(action, ...access, ...rejected, checkSignIn, ...(before ? [before] : []), change);
}

export type FormPage = Omit<Change, "show" | "pageOf"> & {
  path: string;
  section?: Section | undefined;
  /** The message of `problem` is the page's error unless the result has another. */
  render(ctx: Context, problem?: Problem): PageContent | Promise<PageContent>;
};

/** Adds a page with a form, which is sent to the page's own path by default, and the change that it requests. */
export function addForm(router: Router, { path, section, render, ...change }: FormPage): void {
  const show: Show = async (ctx, error, problem) => {
    if (change.needsRecentSignIn) requireRecentSignIn(ctx);
    showPage(ctx, { section, error, ...(await render(ctx, problem)) });
  };
  const pageOf = (ctx: Context) => path.replaceAll(/:(\w+)/g, (_, name) => ctx.params[name]);
  router.get(path, ...change.access, (ctx) => show(ctx));
  addChange(router, { action: path, ...change, show, pageOf });
}

/** The error of each rejected field: field name → sentence. */
export type FieldErrors = Partial<Record<string, string>>;

/** Splits a problem into one error per field of the form and a summary for its top. */
export function splitFieldErrors(
  problem: Problem | undefined,
  // A form has one field for a list: an error of tags.2 belongs to tags.
  formFieldOf = (field: string) => field.split(".")[0] ?? "",
): { error?: string; errors: FieldErrors } {
  if (!problem?.errors) return { ...(problem && { error: problem.message }), errors: {} };
  const errors: FieldErrors = {};
  for (const { field, message } of problem.errors) errors[formFieldOf(field)] ??= toSentence(message);
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
export function toSentence(rule: string): string {
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

/** Returns the input of a change: what a program sent, or what the fields of a form mean. */
export async function inputOf(ctx: Context, toInput: (fields: Input) => Input): Promise<Input> {
  const fields = await formFieldsOf(ctx);
  return isForm(ctx) ? toInput(fields) : fields;
}

/**
 * Returns the changes that a program or a form sent, on the condition that the resource still has the tag that the program
 * names, or one of those of the version that the form showed.
 */
export async function changesOf(
  ctx: Context,
  toInput: (fields: Input) => Input,
  tagsOf: (version: number) => string[],
): Promise<{ input: Input; precondition: Precondition | undefined }> {
  const sent = await formFieldsOf(ctx);
  if (!isForm(ctx)) return { input: sent, precondition: preconditionOf(ctx) };
  const { version, ...fields } = sent;
  const isShown = (current: string) => tagsOf(Number(version)).includes(current);
  return { input: toInput(fields), precondition: version === undefined ? undefined : isShown };
}

/** Returns the parameters of a filter that a user filled in. */
export function withoutEmpty(query: object): object {
  return Object.fromEntries(Object.entries(query).filter(([, value]) => value !== ""));
}
