import { inputSchemaOf, type Tool } from "../../resources/mcp/tool.ts";
import { toJsonSchema } from "../../resources/openapi/json-schema.ts";
import { badge } from "../ui/controls.ts";
import { type Html, html } from "../ui/html.ts";
import { prose } from "./prose.ts";
import { fieldsOf, fieldTable } from "./schema.ts";

/** Renders the MCP tools with their description, scopes and parameters. */
export function toolsView(tools: readonly Tool[]): Html {
  return html`${tools.map(
    (tool) => html`<details class="tool" id="${toolAnchor(tool.name)}">
<summary><code>${tool.name}</code> ${tool.title}</summary>
<p>${prose(tool.description)}</p>
<p>Requires ${tool.scopes.length > 0 ? tool.scopes.map((scope) => badge(scope)) : badge("any token")}${
      tool.annotations.readOnlyHint ? html` ${badge("read-only", "good")}` : html``
    }${tool.annotations.destructiveHint ? html` ${badge("destructive", "warn")}` : html``}</p>
${parametersOf(tool)}
</details>
`,
  )}`;
}

/** Returns the fragment of a tool's entry on the page. */
export function toolAnchor(name: string): string {
  return `tool-${name}`;
}

function parametersOf(tool: Tool): Html {
  const { name } = tool;
  const fields = fieldsOf(toJsonSchema(inputSchemaOf(tool), "input"));
  return fields.length > 0 ? fieldTable(`Parameters of ${name}`, fields) : html`<p>No parameters.</p>`;
}
