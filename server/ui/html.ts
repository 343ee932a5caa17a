import tag, { safe } from "escape-html-template-tag";

/** HTML whose interpolated values are escaped. */
export type Html = { toString(): string };

/** Template tag that escapes every interpolated value except `Html` and arrays of `Html`. */
// The package's types describe its CommonJS build only; at run time the default export is the tag itself.
export const html = tag as unknown as (parts: TemplateStringsArray, ...values: unknown[]) => Html;

/** Marks markup as HTML that needs no escaping. Only for markup that a library has rendered from escaped values. */
export function trusted(markup: string): Html {
  return safe(markup);
}
