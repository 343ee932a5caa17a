import type { Context } from "koa";
import type { Membership } from "../../../adapters/organizations/store.ts";
import { invalidField } from "../../../resources/http/validate.ts";
import { TIME_ZONES } from "../../../resources/time-zone.ts";
import { textFieldOf } from "../../http/request-body.ts";
import type { SignedInUser } from "../../http/state.ts";
import { setAppPolicy, setEnterpriseAuthorization } from "../../operations/apps.ts";
import * as operations from "../../operations/organizations.ts";
import * as ui from "../../ui/controls.ts";
import { isManager, sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { pathWith } from "../../ui/table.ts";
import {
  controlOf,
  mayRun,
  membershipOf,
  pathTo,
  SECOND_FACTOR_SETUP,
  signedInUserOf,
  TIME_ZONE,
} from "../access.ts";
import { type FieldErrors, formFieldsOf, type Show, splitFieldErrors } from "../forms.ts";
import { toUrl, urlField } from "../links/form.ts";
import { addOperation, addOperationPage, addReading, runOperation } from "../operation-routes.ts";
import { showPage } from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";
import { appPolicyPanel, approvedAppsPanel } from "./app-policy.ts";

export const settingsRoutes: RouteModule = (router, options) => {
  const { settings } = options;
  const to = (ctx: Context) => pathTo(ctx, "settings");

  /** Shows one panel per setting, each only to those who may use it. */
  const show: Show = async (ctx, error, problem) => {
    const membership = membershipOf(ctx);
    const current = await runOperation(ctx, options, operations.getSettings);
    const { error: rejection = error, errors } = splitFieldErrors(problem);
    const values = { ...current, ...(problem && (await formFieldsOf(ctx))) };
    const state = (name: "name" | "fallback_url" | "time_zone") => ({
      name,
      value: textFieldOf(values[name]),
      error: errors[name],
    });
    const body = html`${mayRun(membership, operations.renameOrganization) && namePanel(membership, state("name"))}
${mayRun(membership, operations.setFallbackUrl) && fallbackPanel(membership, state("fallback_url"))}
${mayRun(membership, operations.setTimeZone) && timeZonePanel(membership, state("time_zone"))}
${isManager(membership) && secondFactorPanel(membership, signedInUserOf(ctx), current.require_second_factor)}
${appPolicyPanel(membership, current, settings)}
${current.member_apps === "approved" && approvedAppsPanel(membership, current.approved_apps)}
${settings.IDP_NAME && mayRun(membership, setEnterpriseAuthorization) && enterpriseAuthorizationPanel(membership, current.enterprise_authorization, settings.IDP_NAME)}
${leavePanel(membership)}
${mayRun(membership, operations.deleteOrganization) && deletionPanel(membership)}`;
    const tile = ui.initial(membership.name);
    showPage(ctx, { title: "Settings", tile, section: "settings", error: rejection, body });
  };

  addReading(router, options, operations.getSettings, (ctx) => show(ctx));
  addOperation(router, options, setAppPolicy, { show, to });
  addOperation(router, options, setEnterpriseAuthorization, { to });
  addOperation(router, options, operations.requireSecondFactor, { show, to });
  addOperation(router, options, operations.setFallbackUrl, {
    show,
    toInput: (fields) => ({ ...fields, fallback_url: toUrl(fields.fallback_url) || null }),
    to,
  });
  addOperation(router, options, operations.setTimeZone, { show, to });
  addOperation(router, options, operations.renameOrganization, { show, to });
  addOperationPage(router, options, operations.deleteOrganization, {
    path: `${ORGANIZATION}/delete`,
    section: "settings",
    // The name confirms it.
    toInput: () => ({}),
    to: () => "/dashboard",
    async before(ctx, next) {
      if ((await formFieldsOf(ctx)).name === membershipOf(ctx).name) return next();
      throw invalidField("name", "must be the exact name of the organization");
    },
    render(ctx, problem) {
      const { errors, ...error } = splitFieldErrors(problem);
      const membership = membershipOf(ctx);
      const heading = `Delete ${membership.name}`;
      return { title: "Delete organization", heading, ...error, body: deletionForm(membership, errors) };
    },
  });
};

/** What a field shows: the current value, or a rejected one with its error. */
type FieldState = { name: string; value: string; error: string | undefined };

function namePanel({ id }: Membership, state: FieldState): Html {
  return ui.settingPanel(
    { title: "Name", text: "Shown to your members, and to users when your app requests access." },
    html`<form method="post" action="${sectionPath(id, "overview")}" class="row">${ui.CSRF_FIELD}
${ui.field({ ...state, label: "Organization name", attributes: html`required maxlength="100"` })}
<button type="submit" class="quiet">Rename organization</button>
</form>`,
  );
}

function fallbackPanel({ id }: Membership, state: FieldState): Html {
  const text =
    "Visitors of links that are archived, expired, used up or deleted go here, unless the link has its own fallback URL. Leave empty to show a page that says the link is no longer available.";
  return ui.settingPanel(
    { title: "Unavailable links", text },
    html`<form method="post" action="${sectionPath(id, "overview")}/fallback-url" class="row">${ui.CSRF_FIELD}
${urlField({ ...state, label: "Fallback URL" })}
<button type="submit" class="quiet">Save fallback URL</button>
</form>`,
  );
}

function timeZonePanel({ id }: Membership, state: FieldState): Html {
  const text =
    "Analytics show clicks by day and hour in this time zone. A change applies to new clicks; earlier ones keep their day and hour.";
  return ui.settingPanel(
    { id: TIME_ZONE, title: "Time zone", text },
    html`<form method="post" action="${sectionPath(id, "overview")}/time-zone" class="row">${ui.CSRF_FIELD}
${ui.select({ ...state, label: "Time zone", options: TIME_ZONES.map((name) => [name, name.replaceAll("_", " ")]) })}
<button type="submit" class="quiet">Save time zone</button>
</form>`,
  );
}

const SECOND_FACTOR = "second-factor";

/** Only those who have a second factor themselves can require one. */
function secondFactorPanel(
  membership: Membership,
  { secondFactor }: SignedInUser,
  isRequired: boolean,
): Html {
  const { id } = membership;
  const button = ui.formButton({
    action: `${sectionPath(id, "members")}/require-second-factor`,
    text: isRequired ? "Stop requiring two-factor authentication" : "Require two-factor authentication",
    fields: { require_second_factor: String(!isRequired) },
  });
  const setup = pathWith(SECOND_FACTOR_SETUP, {
    return_to: `${sectionPath(id, "settings")}#${SECOND_FACTOR}`,
  });
  const ownFactorFirst = html`<p>To require it, first set up two-factor authentication for your own account.</p>
${ui.linkButton(setup, "Set up two-factor authentication", "quiet")}`;
  const text = `${
    isRequired
      ? "Owners and admins must use two-factor authentication to work in this organization."
      : "Owners and admins can sign in with only a password. If you require two-factor authentication, those without it must set it up before they continue."
  } SSO sign-ins meet the requirement if the identity provider reports multi-factor authentication.`;
  const control = secondFactor === "none" ? ownFactorFirst : button;
  return ui.settingPanel(
    { id: SECOND_FACTOR, title: "Two-factor authentication", text },
    controlOf(membership, operations.requireSecondFactor, control),
  );
}

function enterpriseAuthorizationPanel({ id }: Membership, isEnabled: boolean, idpName: string): Html {
  const text = isEnabled
    ? `${idpName} may authorize apps for members of this organization, without asking them. Each app still gets only what the member’s role allows.`
    : `Members authorize each app themselves. You can let the administrators of ${idpName} do that for them.`;
  return ui.settingPanel(
    { title: "Enterprise-managed authorization", text },
    ui.formButton({
      action: `${sectionPath(id, "apps")}/enterprise-authorization`,
      text: isEnabled ? "Turn off" : `Let ${idpName} authorize apps`,
      fields: { enabled: String(!isEnabled) },
    }),
  );
}

function leavePanel({ id, role }: Membership): Html {
  const text = `You’re ${role === "member" ? "a" : "an"} ${role}. Leaving revokes the apps you authorized for this organization.`;
  return ui.settingPanel(
    { title: "Leave organization", text },
    ui.linkButton(`${sectionPath(id, "members")}/me/delete`, "Leave organization", "quiet"),
  );
}

function deletionPanel({ id }: Membership): Html {
  const text = "Revokes all tokens and deletes the organization’s data. Its short links stop working.";
  return ui.settingPanel(
    { title: "Delete organization", text, isDangerous: true },
    ui.linkButton(`${sectionPath(id, "overview")}/delete`, "Delete organization", "danger"),
  );
}

function deletionForm({ id, name }: Membership, errors: FieldErrors): Html {
  const action = `${sectionPath(id, "overview")}/delete`;
  return ui.panelForm(
    { action, submit: "Delete organization", cancel: sectionPath(id, "settings"), danger: "panel" },
    html`<p>You can’t undo this. Deleting the organization immediately:</p>
<ul>
<li>revokes all of its tokens and the access of its authorized apps</li>
<li>deletes its client, secrets, domains, webhooks and invitations, and removes its members</li>
<li>stops its short links from working; their slugs can’t be used again</li>
</ul>
${ui.field({ name: "name", label: `Type “${name}” to confirm`, error: errors.name, attributes: html`required autocomplete="off"` })}`,
  );
}
