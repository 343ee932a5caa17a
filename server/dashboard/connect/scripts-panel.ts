import type { Membership } from "../../../adapters/organizations/store.ts";
import { linkButton } from "../../ui/controls.ts";
import { isManager, sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";

/** Renders where to start with programs that act for the organization itself. */
export function scriptsPanel(membership: Membership): Html {
  return html`<section class="panel"><h2>Scripts and CI</h2>
<p>Scripts, servers and agents without a browser act for the organization itself. They get tokens with the client credentials grant, and use the REST API or the MCP server.</p>
${
  isManager(membership)
    ? html`<p>CI jobs and clusters need no secret: they can get access <a href="${sectionPath(membership.id, "overview")}/workload-identity">with tokens of their platform</a>.</p>
${linkButton(`${sectionPath(membership.id, "client")}/quick-start`, "Open quick start")}`
    : html`<p class="soft">Owners and admins find the client ID, the secrets and a quick start under API access.</p>`
}</section>`;
}
