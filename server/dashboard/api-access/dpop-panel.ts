import type { Membership } from "../../../adapters/organizations/store.ts";
import { formButton } from "../../ui/controls.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";

type Panel = { membership: Membership; isRequired: boolean; csrf: string | undefined };

/** Renders whether the organization requires DPoP; owners can change it. */
export function dpopPanel({ membership, isRequired, csrf }: Panel): Html {
  const button = formButton({
    action: `${sectionPath(membership.id, "client")}/require-dpop`,
    csrf,
    text: isRequired ? "Stop requiring DPoP" : "Require DPoP",
    look: isRequired ? "quiet" : "danger",
    fields: { require_dpop: String(!isRequired) },
  });
  return html`<section class="panel"><h2>Token binding</h2>
<p class="soft">With DPoP (RFC 9449), a token is bound to a key of the app, so a stolen token is useless without that key. Apps that support DPoP can always use it.</p>
<p>${
    isRequired
      ? "This organization requires DPoP. Tokens that aren’t bound to a key are rejected."
      : "This organization also accepts bearer tokens. If you require DPoP, they stop working immediately, for your client and for authorized apps."
  }</p>
${membership.role === "owner" ? button : html`<p class="soft">Only owners can change this.</p>`}</section>`;
}
