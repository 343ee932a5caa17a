import type { Explanation } from "../../../resources/problems.ts";
import { table } from "../dashboard/table.ts";
import { type Html, html } from "../html.ts";
import { prose } from "./prose.ts";

/** Every code that `type` may lead to, each at an anchor of its own. */
export type Codes = {
  /** Those of the API and MCP, and those of `/auth` and `/dashboard`. */
  api: Record<string, Explanation>;
  people: Record<string, Explanation>;
  /** The fields whose refusal is `invalid_<field>`. */
  fields: string[];
};

/** The codes with what they mean, and what to do about them. */
export function codesView({ api, people, fields }: Codes): Html {
  const unnamed = fields
    .map((field) => `invalid_${field}`)
    .filter((code) => !(code in api || code in people));
  return html`<p>A program goes by <code>code</code>; <code>type</code> leads here.</p>
<h3>API and MCP</h3>
${codeTable("Codes of the API and of MCP", api)}
<h3>One wrong field</h3>
<p>A field that alone breaks its rule is refused with 422 and a code that names it: <code>errors</code> tells the rule.
Correct the field and send it again. The codes:
${unnamed.sort().map((code, index) => html`${index ? ", " : ""}<code id="${code}">${code}</code>`)}.</p>
<h3>Signing in and the dashboard</h3>
${codeTable("Codes of /auth and /dashboard", people)}`;
}

function codeTable(caption: string, codes: Record<string, Explanation>): Html {
  return table<[code: string, Explanation]>(
    caption,
    [
      { head: "Code", cell: ([code]) => html`<code class="name" id="${code}">${code}</code>` },
      { head: "Status", cell: ([, { status }]) => String(status) },
      { head: "Meaning", cell: ([, { meaning }]) => html`<div>${prose(meaning)}</div>` },
      { head: "What to do", cell: ([, { next }]) => html`<div>${prose(next)}</div>` },
    ],
    Object.entries(codes),
  );
}
