import type { Router } from "@koa/router";
import { z } from "zod";
import type { AllowedClients, MemberApps } from "../../../adapters/oauth/app-policy.ts";
import type { AppPolicySettings } from "../../../adapters/organizations/settings.ts";
import type { Membership } from "../../../adapters/organizations/store.ts";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import { validate } from "../../../resources/http/validate.ts";
import { KNOWN_CLIENT_NAMES } from "../../clients/known-clients.ts";
import type { Settings } from "../../settings/config.ts";
import { CSRF_FIELD, formButton, select, settingPanel } from "../../ui/controls.ts";
import { isManager, sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { actorOf, MANAGERS, pathTo } from "../access.ts";
import { formFieldsOf, respondToChange, type Show } from "../responses.ts";
import { addChange, addOwnerSwitch, ORGANIZATION, type RouteOptions } from "../route.ts";

const PATH = `${ORGANIZATION}/apps`;
const CHOICE_LIST = new Intl.ListFormat("en-GB", { type: "disjunction" }); // without a comma before “or”
const MEMBER_APPS = ["any", "approved", "none"] as const;

export function addPolicyRoutes(router: Router, options: RouteOptions, show: Show): void {
  const { storage, settings, allow } = options;
  const choices = choicesOn(settings);
  const changes = z
    .strictObject({
      allowed_clients: z.enum(choices, { error: `must be ${CHOICE_LIST.format(choices)}` }).optional(),
      member_apps: z.enum(MEMBER_APPS, { error: `must be ${CHOICE_LIST.format(MEMBER_APPS)}` }).optional(),
    })
    .refine(({ allowed_clients, member_apps }) => (allowed_clients ?? member_apps) !== undefined, {
      error: "must contain allowed_clients or member_apps",
    });

  addChange(router, ["put", PATH], { access: [allow(...MANAGERS)], show }, async (ctx) => {
    const { organizationId, actor } = actorOf(ctx);
    const { allowed_clients, member_apps } = validate(changes, await formFieldsOf(ctx));
    const policy = {
      ...(allowed_clients && { allowedClients: allowed_clients }),
      ...(member_apps && { memberApps: member_apps }),
    };
    if (!(await storage.appPolicies.set(organizationId, policy, actor))) throw notFound("organization");
    respondToChange(ctx, { to: pathTo(ctx, "settings"), done: "app-policy-changed" });
  });

  addOwnerSwitch(router, allow, {
    path: `${PATH}/enterprise-authorization`,
    section: "settings",
    field: "enabled",
    set(_, isEnabled, { organizationId, actor }) {
      if (!settings.IDP_ISSUER) {
        throw new Problem(409, "no_identity_provider", "This server has no identity provider.");
      }
      return storage.enterpriseAuthorization.set(organizationId, isEnabled, actor);
    },
    done: ["enterprise-on", "enterprise-off"],
    isEchoed: false,
  });
}

/** Returns what an organization may choose on a server: never more than the server itself accepts. */
function choicesOn({ CIMD, DYNAMIC_REGISTRATION }: Settings): AllowedClients[] {
  const isOpen = CIMD.accepted === "any" || DYNAMIC_REGISTRATION !== "off";
  return isOpen ? ["known", "any", "none"] : ["known", "none"];
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
  const choices = choicesOn(settings);
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
