import type { Membership } from "../../../adapters/organizations/store.ts";
import { linkButton } from "../../ui/controls.ts";
import { isManager, sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";

/** Renders where to start with programs that act for the organization itself. */
export function scriptsPanel(membership: Membership): Html {
  return html`<section class="panel"><h2>Scripts and CI</h2>
<p>Scripts, servers and agents without a browser act for the organization itself, with the REST API or the MCP server. They get tokens with the client credentials grant. CI jobs and clusters need no secret: they exchange the tokens of their platform.</p>
${isManager(membership) ? links(membership.id) : html`<p class="soft">Owners and admins find quick starts for both under API access.</p>`}
</section>`;
}

function links(organizationId: string): Html {
  const quickStart = `${sectionPath(organizationId, "client")}/quick-start`;
  const workloadIdentity = `${sectionPath(organizationId, "overview")}/workload-identity`;
  return html`<div class="actions">${linkButton(quickStart, "Open quick start")}${linkButton(workloadIdentity, "Set up workload identity", "quiet")}</div>`;
}
