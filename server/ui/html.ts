import tag from "escape-html-template-tag";

/** Markup whose values were escaped. */
export type Html = { toString(): string };

/** Template tag for markup: escapes each value, takes `Html` and lists of it as they are. */
// The package describes its CommonJS face only; at run time its default export is the tag itself.
export const html = tag as unknown as (parts: TemplateStringsArray, ...values: unknown[]) => Html;
