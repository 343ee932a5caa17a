import type { Context } from "koa";
import { safeReturnTo } from "../../auth/return-to.ts";
import { isChange } from "../../http/csrf.ts";
import { readInput } from "../../http/request-body.ts";
import { type Html, html } from "../../ui/html.ts";
import { hidden } from "../../ui/sign-in.ts";
import { pathWith } from "../../ui/table.ts";
import { ACCOUNT, SECOND_FACTOR_SETUP } from "../access.ts";

/** Where the setup of a second factor leads back to: the page that asked for it, or the account. */
export type SetupReturn = {
  path: string;
  /** Where the setup begins again after a sign-in. */
  start: string;
  /** Passes the path on to a form or page of the setup. */
  field: Html;
  query: (page: string) => string;
};

/** Reads the parameter of a page, or the field of a form. */
export async function setupReturnOf(ctx: Context): Promise<SetupReturn> {
  const text = isChange(ctx) ? (await readInput(ctx)).return_to : ctx.query.return_to;
  if (!text) return { path: ACCOUNT, start: ACCOUNT, field: html``, query: (page) => page };
  const path = safeReturnTo(text);
  const query = (page: string) => pathWith(page, { return_to: path });
  return { path, start: query(SECOND_FACTOR_SETUP), field: hidden("return_to", path), query };
}
