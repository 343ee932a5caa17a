import type { ProblemCodeDescription } from "../../resources/http/problem-codes.ts";
import { breakable } from "../ui/controls.ts";
import { type Html, html } from "../ui/html.ts";
import { table } from "../ui/table.ts";
import { prose } from "./prose.ts";

/** The error codes that `type` can link to. */
export type Codes = {
  /** The codes of the API and MCP. */
  api: Record<string, ProblemCodeDescription>;
  /** The codes of `/auth` and `/dashboard`. */
  dashboard: Record<string, ProblemCodeDescription>;
  /** The fields whose errors have the code `invalid_<field>`. */
  fields: string[];
};

/** Renders each error code with its meaning and what to do about it. */
export function codesView({ api, dashboard, fields }: Codes): Html {
  const fieldCodes = fields
    .map((field) => `invalid_${field}`)
    .filter((code) => !(code in api || code in dashboard));
  return html`<p>Branch on <code>code</code>. The <code>type</code> of an error links to its entry here.</p>
<h3>API and MCP</h3>
${codeTable("API and MCP error codes", api)}
<h3>Invalid fields</h3>
<p>If a single field is invalid, the status is 422 and the code names the field. Fix the field as <code>errors</code> describes and
send the request again. The codes are
${fieldCodes.sort().map((code, index) => html`${index ? ", " : ""}<code id="${code}">${code}</code>`)}.</p>
<h3>Sign-in and dashboard</h3>
${codeTable("Sign-in and dashboard error codes", dashboard)}`;
}

function codeTable(caption: string, codes: Record<string, ProblemCodeDescription>): Html {
  return table<[code: string, ProblemCodeDescription]>(
    caption,
    {
      Code: ([code]) => html`<code class="name" id="${code}">${breakable(code)}</code>`,
      Status: ([, { status }]) => String(status),
      Meaning: ([, { meaning }]) => html`<div>${prose(meaning)}</div>`,
      "What to do": ([, { next }]) => html`<div>${prose(next)}</div>`,
    },
    Object.entries(codes),
  );
}
