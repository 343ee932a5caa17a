import { inputOf, type Tool } from "../../../resources/mcp/tool.ts";
import { toJsonSchema } from "../../../resources/openapi/json-schema.ts";
import { badge } from "../dashboard/controls.ts";
import { type Html, html } from "../html.ts";
import { prose } from "./prose.ts";
import { fieldsOf, fieldTable } from "./schema.ts";

/** The tools of MCP: what each does, needs and takes. */
export function toolsView(tools: readonly Tool[]): Html {
  return html`${tools.map(
    (tool) => html`<details class="tool" id="${toolAnchor(tool.name)}">
<summary><code>${tool.name}</code> ${tool.title}</summary>
<p>${prose(tool.description)}</p>
<p>Needs ${tool.scopes.length > 0 ? tool.scopes.map((scope) => badge(scope)) : badge("any token")}${
      tool.annotations.readOnlyHint ? html` ${badge("changes nothing", "good")}` : html``
    }${tool.annotations.destructiveHint ? html` ${badge("replaces or removes", "warn")}` : html``}</p>
${takes(tool)}
</details>
`,
  )}`;
}

/** The address on the page of a tool. */
export function toolAnchor(name: string): string {
  return `tool-${name}`;
}

function takes(tool: Tool): Html {
  const { name } = tool;
  const fields = fieldsOf(toJsonSchema(inputOf(tool), "input"));
  return fields.length > 0 ? fieldTable(`What ${name} takes`, fields) : html`<p>It takes nothing.</p>`;
}
