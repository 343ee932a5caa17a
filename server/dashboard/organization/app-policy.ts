import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { AllowedClients, MemberApps } from "../../../adapters/oauth/app-policy.ts";
import type { AppPolicySettings } from "../../../adapters/organizations/settings.ts";
import type { Membership } from "../../../adapters/organizations/store.ts";
import { KNOWN_CLIENT_NAMES } from "../../clients/known-clients.ts";
import { allowedClientsOn, setAppPolicy, setEnterpriseAuthorization } from "../../operations/apps.ts";
import type { Settings } from "../../settings/config.ts";
import { CSRF_FIELD, formButton, select, settingPanel } from "../../ui/controls.ts";
import { isManager, sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { pathTo } from "../access.ts";
import type { Show } from "../forms.ts";
import { addOperation } from "../operation-routes.ts";
import type { RouteOptions } from "../route.ts";

export function addPolicyRoutes(router: Router, options: RouteOptions, show: Show): void {
  const to = (ctx: Context) => pathTo(ctx, "settings");
  addOperation(router, options, setAppPolicy, { show, to });
  addOperation(router, options, setEnterpriseAuthorization, { to });
}

const KINDS: Record<AllowedClients, string> = {
  known: "Known AI clients",
  any: "Any app",
  none: "Only apps of organizations on this server",
};

const MEMBER_APPS_LABELS: Record<MemberApps, string> = {
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

const TITLE = "Apps";
const KNOWN = `Known AI clients are ${KNOWN_CLIENT_NAMES}.`;
const ALWAYS = "Apps of organizations on this server are always accepted.";
const REGISTERED = "Cursor and apps on a member’s own computer that register themselves count as known.";

/** Renders which apps the organization accepts and which of them members may authorize; managers can change both. */
export function appPolicyPanel(
  membership: Membership,
  { allowedClients, memberApps }: AppPolicySettings,
  settings: Settings,
): Html {
  const choices = allowedClientsOn(settings);
  const canRegister = settings.DYNAMIC_REGISTRATION !== "off";
  // The server may have accepted more when the setting was chosen.
  const current = choices.includes(allowedClients) ? allowedClients : "known";
  if (!isManager(membership)) {
    const kind = KINDS[current].charAt(0).toLowerCase() + KINDS[current].slice(1);
    return settingPanel(
      { title: TITLE, text: FOR_MEMBERS[memberApps] },
      html`<p>Accepted apps: ${kind}${current === "known" ? `, which are ${KNOWN_CLIENT_NAMES}. ${canRegister ? REGISTERED : ""}` : "."}</p>`,
    );
  }
  return settingPanel(
    {
      id: "apps",
      title: TITLE,
      text: `${ALWAYS} Owners and admins may authorize any accepted app, and you can limit members further.`,
    },
    html`<form method="post" action="${sectionPath(membership.id, "apps")}" class="stack">${CSRF_FIELD}
${select({
  name: "allowed_clients",
  label: "Accepted apps",
  value: current,
  options: choices.map((choice) => [choice, KINDS[choice]] as const),
  hint: canRegister ? `${KNOWN} ${REGISTERED}` : KNOWN,
})}
${select({
  name: "member_apps",
  label: "Apps members may authorize",
  value: memberApps,
  options: Object.entries(MEMBER_APPS_LABELS),
  hint: "Apps that are no longer allowed lose access immediately.",
})}
<button type="submit" class="quiet">Save settings</button>
</form>`,
  );
}

/** Renders whether the identity provider may authorize apps; the button changes it. */
export function enterpriseAuthorizationPanel({ id }: Membership, isEnabled: boolean, idpName: string): Html {
  const text = isEnabled
    ? `${idpName} may authorize apps for members of this organization, without asking them. Each app still gets only what the member’s role allows.`
    : `Members authorize each app themselves. You can let the administrators of ${idpName} do that for them.`;
  return settingPanel(
    { title: "Enterprise-managed authorization", text },
    formButton({
      action: `${sectionPath(id, "apps")}/enterprise-authorization`,
      text: isEnabled ? "Turn off" : `Let ${idpName} authorize apps`,
      fields: { enabled: String(!isEnabled) },
    }),
  );
}
