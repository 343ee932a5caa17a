import type { AllowedClients, MemberApps } from "../../../adapters/oauth/client-policy.ts";
import type { AppPolicySettings } from "../../../adapters/organizations/app-policy.ts";
import type { Membership } from "../../../adapters/organizations/store.ts";
import { KNOWN_CLIENT_NAMES } from "../../clients/known-clients.ts";
import { csrfField, select } from "../../ui/controls.ts";
import { isManager, sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";

const KINDS: Record<AllowedClients, string> = {
  known: "Known AI clients",
  any: "Any app",
  none: "Only apps of organizations on this server",
};

const MEMBER_APPS: Record<MemberApps, string> = {
  any: "Any app that the organization accepts",
  approved: "Only approved apps",
  none: "No apps",
};

const FOR_MEMBERS: Record<MemberApps, string> = {
  any: "Members may authorize any app that the organization accepts.",
  approved:
    "Members may authorize only approved apps. To use another app, ask an owner or admin to approve it.",
  none: "Members may not authorize apps. Ask an owner or admin if you need one.",
};

const KNOWN = `Known AI clients are ${KNOWN_CLIENT_NAMES}.`;
const ALWAYS = "Apps of organizations on this server are always accepted.";
const REGISTERED = "Cursor and apps on a member’s own computer that register themselves count as known.";

type Panel = {
  membership: Membership;
  setting: AppPolicySettings;
  /** What the server accepts. */
  choices: readonly AllowedClients[];
  /** Apps may register themselves. */
  canRegister: boolean;
  csrf: string | undefined;
};

/** Renders which apps the organization accepts and which of them members may authorize; managers can change both. */
export function appPolicyPanel({ membership, setting, choices, canRegister, csrf }: Panel): Html {
  // The server may have accepted more when the setting was chosen.
  const known = canRegister ? `${KNOWN} ${REGISTERED}` : KNOWN;
  const { allowedClients, memberApps } = setting;
  const current = choices.includes(allowedClients) ? allowedClients : "known";
  if (!isManager(membership)) {
    return html`<p class="soft">Accepted apps: ${lowerFirst(KINDS[current])}${current === "known" ? `, which are ${KNOWN_CLIENT_NAMES}. ${canRegister ? REGISTERED : ""}` : "."}
${FOR_MEMBERS[memberApps]}</p>`;
  }
  return html`<section class="panel">
<form method="post" action="${sectionPath(membership.id, "apps")}" class="stack">${csrfField(csrf)}
${select({
  name: "allowed_clients",
  label: "Accepted apps",
  value: current,
  options: choices.map((choice) => [choice, KINDS[choice]] as const),
  hint: `${known} ${ALWAYS} This applies to owners and admins, too.`,
})}
${select({
  name: "member_apps",
  label: "Apps members may authorize",
  value: memberApps,
  options: Object.entries(MEMBER_APPS),
  hint: "Owners and admins may authorize any accepted app. Apps that are no longer allowed lose access immediately.",
})}
<button type="submit" class="quiet">Save settings</button>
</form></section>`;
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
