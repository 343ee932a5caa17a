import type { Context } from "koa";
import { safeReturnTo } from "../../auth/return-to.ts";
import { isChange } from "../../http/csrf.ts";
import type { Input } from "../../http/request-body.ts";
import { ACCOUNT } from "../../operations/account.ts";
import { hidden } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { pathWith } from "../../ui/table.ts";
import { SECOND_FACTOR_SETUP } from "../access.ts";

/** Where the setup of a second factor leads back to: the page that asked for it, or the account. */
export type SetupReturn = {
  path: string;
  /** Where the setup begins again after a sign-in. */
  start: string;
  /** Passes the path on to a form or page of the setup. */
  field: Html;
  query: (page: string) => string;
};

/** Reads the parameter of a page, or the field of a form, whose CSRF token has been checked. */
export function setupReturnOf(ctx: Context): SetupReturn {
  const fields = isChange(ctx) ? (ctx.request.body as Input | undefined) : ctx.query;
  const text = fields?.return_to;
  if (!text) return { path: ACCOUNT, start: ACCOUNT, field: html``, query: (page) => page };
  const path = safeReturnTo(text);
  const query = (page: string) => pathWith(page, { return_to: path });
  return { path, start: query(SECOND_FACTOR_SETUP), field: hidden("return_to", path), query };
}

/** Returns the fields of a form of the setup that belong to its operation. */
export function withoutReturn({ return_to: _, ...fields }: Input): Input {
  return fields;
}
