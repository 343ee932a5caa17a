import type { Router } from "@koa/router";
import type { Context, Middleware } from "koa";
import type { z } from "zod";
import { contentTag, matchesIfNoneMatch } from "../../resources/http/etag.ts";
import { readQuery, typeOfField, validate } from "../../resources/http/validate.ts";
import { type Principal, respondOnce } from "../../resources/idempotency/run-once.ts";
import { DASHBOARD } from "../clients/client-metadata.ts";
import { sendCsv } from "../csv.ts";
import { type Input, prefersHtml } from "../http/request-body.ts";
import {
  type CsvFile,
  inputSchemaOf,
  isIdempotent,
  methodOf,
  type Operation,
  pathOf,
  type Result,
} from "../operations/operation.ts";
import { membershipOf, signedInUserOf } from "./access.ts";
import {
  addChange,
  addForm,
  type Change,
  type FormPage,
  formFieldsOf,
  inputOf,
  withoutEmpty,
} from "./forms.ts";
import { respondToChange, sendJson } from "./responses.ts";
import type { RouteOptions } from "./route.ts";

/** What a page adds to an operation: its form, and where a browser goes then. */
type Form<O extends Operation> = Pick<Change, "before" | "show"> & {
  /** Where the form is sent; by default the operation's path, followed by `/delete` for a deletion. */
  action?: string;
  /** Returns the input that the fields of the form mean, if they aren't those of the operation. */
  toInput?(fields: Input): Input;
  /** The page that says that it's done. */
  to(ctx: Context, output: Result<O>): string;
  /** Responds to a browser in another way, unless it returns false. */
  respond?(ctx: Context, output: Result<O>, input: Input): unknown;
};

/** Adds an operation for programs and, with a form, for browsers. */
export function addOperation<O extends Operation>(
  router: Router,
  options: RouteOptions,
  operation: O,
  form?: Form<O>,
): void {
  const pageOf = form && ((ctx: Context) => form.to(ctx, undefined as Result<O>));
  addChange(router, { ...changeOf(options, operation, form), show: form?.show, pageOf });
}

/** Adds a page of its own for the form of an operation. */
export function addOperationPage<O extends Operation>(
  router: Router,
  options: RouteOptions,
  operation: O,
  { path, section, render, ...form }: Omit<Form<O>, "show"> & Pick<FormPage, "path" | "section" | "render">,
): void {
  addForm(router, { ...changeOf(options, operation, form), path, section, render });
}

function changeOf<O extends Operation>(
  options: RouteOptions,
  operation: O,
  form: Form<O> | undefined,
): Change {
  const method = methodOf(operation);
  const path = patternOf(operation);
  const action = form?.action ?? (form && method === "DELETE" ? `${path}/delete` : path);
  const schema = inputSchemaOf(operation, options);
  const change = async (ctx: Context) => {
    const toInput =
      form?.toInput ?? ((fields: Input) => (form && schema ? fromForm(schema, fields) : fields));
    // At the address of the form, the fields are the form's, in JSON too.
    const isAtForm = ctx.method !== method;
    const fields = isAtForm ? toInput(await formFieldsOf(ctx)) : await inputOf(ctx, toInput);
    const perform = async () => {
      const input = schema ? (validate(schema, fields) as Input) : {};
      await respondTo(ctx, operation, form, input, await runOperation(ctx, options, operation, input));
    };
    const hasKey = isIdempotent(operation) && ctx.req.headers["idempotency-key"] !== undefined;
    if (!hasKey || prefersHtml(ctx)) return perform();
    const { at, shownOnce } = operation;
    const request = { caller: principalOf(ctx), operation: at, ...(shownOnce && { shownOnce }) };
    const attempt = async () => {
      await perform();
      return { status: ctx.status, body: ctx.body as Record<string, unknown> };
    };
    const { status, headers = {}, body } = await respondOnce(ctx, request, attempt, options.runOnce);
    ctx.status = status;
    ctx.set(headers);
    ctx.body = body;
  };
  return {
    access: accessTo(operation, options),
    action: form || method === "POST" ? action : undefined,
    program: method === "POST" && action === path ? undefined : [method, path],
    needsRecentSignIn: operation.needsRecentSignIn,
    summary: operation.summary,
    before: form?.before,
    change,
  };
}

/** Adds an operation that reads: programs get its output, browsers a page, if there is one. */
export function addReading<O extends Operation>(
  router: Router,
  options: RouteOptions,
  operation: O,
  show?: (ctx: Context, query: Input) => unknown,
): void {
  const { query, needsRecentSignIn, file, csv } = operation;
  const steps = [...accessTo(operation, options), ...(query ? [readQuery(query)] : [])];
  router.get(patternOf(operation), ...steps, async (ctx) => {
    if (needsRecentSignIn) options.currentSignIn(ctx).requireRecent();
    const input: Input = query ? validate(query, withoutEmpty(ctx.state.query)) : {};
    if (show && prefersHtml(ctx)) return void (await show(ctx, input));
    const output = (await runOperation(ctx, options, operation, input)) as object;
    if (csv) {
      const { name, parts } = output as CsvFile;
      return sendCsv(ctx, name, parts);
    }
    const tag = contentTag(JSON.stringify(output));
    ctx.set("ETag", tag);
    if (file) ctx.set("Content-Disposition", `attachment; filename="${file}"`);
    if (matchesIfNoneMatch(ctx, tag)) ctx.status = 304;
    else sendJson(ctx, output);
  });
}

/** Runs an operation for the signed-in user. Throws Problem. */
export async function runOperation<O extends Operation>(
  ctx: Context,
  { currentSignIn, ...environment }: RouteOptions,
  operation: O,
  input: Input = {},
): Promise<Result<O>> {
  const user = signedInUserOf(ctx);
  const { membership } = ctx.state;
  const request = {
    ...environment,
    params: ctx.params,
    input,
    user,
    actor: user.actor,
    signIn: currentSignIn(ctx),
    ...(membership && { organization: membership, member: { user, role: membership.role } }),
  };
  return (await operation.run?.(request as never)) as Result<O>;
}

/** Idempotency keys of a user belong to an organization, and to the client of first-party tokens. */
function principalOf(ctx: Context): Principal {
  return { organizationId: membershipOf(ctx).id, clientId: DASHBOARD, userId: signedInUserOf(ctx).id };
}

/** Converts fields, which are all text: words to true or false, digits to numbers, and empty optional ones to none. */
function fromForm(schema: z.ZodType, fields: Input): Input {
  const shape: Record<string, z.ZodType> = "shape" in schema ? (schema as z.ZodObject).shape : {};
  const entries = Object.entries(fields).flatMap(([name, value]): [string, unknown][] => {
    const field = shape[name];
    if (!field) return [[name, value]];
    if (value === "" && field.safeParse(undefined).success) return [];
    const type = typeOfField(field);
    if (type === "boolean") return [[name, { true: true, false: false }[String(value)]]];
    if (type === "number") return [[name, String(value).trim() === "" ? Number.NaN : Number(value)]];
    return [[name, value]];
  });
  return Object.fromEntries(entries);
}

async function respondTo<O extends Operation>(
  ctx: Context,
  operation: O,
  form: Form<O> | undefined,
  input: Input,
  output: Result<O>,
): Promise<void> {
  if (prefersHtml(ctx) && form?.respond && (await form.respond(ctx, output, input)) !== false) return;
  const { done = {}, outcome, about, status } = operation;
  const [first] = Object.keys(done);
  respondToChange(ctx, {
    to: form?.to(ctx, output) ?? ctx.path,
    done: outcome ? outcome(input as never, output as never) : first,
    about: about?.(output as never),
    status,
    body: operation.output && (output as object),
  });
}

function accessTo({ roles, at }: Operation, { allow }: RouteOptions): Middleware[] {
  return at.includes(" /dashboard/organizations/{id}") ? [allow(...(roles ?? []))] : [];
}

function patternOf(operation: Operation): string {
  return pathOf(operation).replaceAll(/\{(\w+)\}/g, ":$1");
}
