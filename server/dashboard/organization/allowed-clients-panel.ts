import type { AllowedClients } from "../../../adapters/oauth/client-policy.ts";
import type { Membership } from "../../../adapters/organizations/store.ts";
import { KNOWN_CLIENT_NAMES } from "../../clients/known-clients.ts";
import { csrfField, select } from "../../ui/controls.ts";
import { isManager, sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";

const NAMES: Record<AllowedClients, string> = {
  known: "Known AI clients",
  any: "Any app",
  none: "Only apps of organizations on this server",
};

const KNOWN = `Known AI clients are ${KNOWN_CLIENT_NAMES}.`;
const ALWAYS = "Apps of organizations on this server can always be connected.";
const REGISTERED = "Cursor and apps on a member’s own computer that register themselves count as known.";

type Panel = {
  membership: Membership;
  setting: AllowedClients;
  /** What the server accepts. */
  choices: readonly AllowedClients[];
  /** Apps may register themselves. */
  canRegister: boolean;
  csrf: string | undefined;
};

/** Renders which apps members may connect; owners and admins can change it. */
export function allowedClientsPanel({ membership, setting, choices, canRegister, csrf }: Panel): Html {
  // The server may have accepted more when the setting was chosen.
  const known = canRegister ? `${KNOWN} ${REGISTERED}` : KNOWN;
  const current = choices.includes(setting) ? setting : "known";
  if (!isManager(membership)) {
    return html`<p class="soft">Members may connect ${lowerFirst(NAMES[current])}${current === "known" ? `: ${KNOWN_CLIENT_NAMES}. ${canRegister ? REGISTERED : ""}` : "."}</p>`;
  }
  return html`<section class="panel">
<form method="post" action="${sectionPath(membership.id, "apps")}" class="stack">${csrfField(csrf)}
${select({
  name: "allowed_clients",
  label: "Apps that members may connect",
  value: current,
  options: choices.map((choice) => [choice, NAMES[choice]] as const),
  hint: `${known} ${ALWAYS} Apps that are no longer allowed lose access immediately.`,
})}
<button type="submit" class="quiet">Save setting</button>
</form></section>`;
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
