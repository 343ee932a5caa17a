import type { Context } from "koa";
import { errors, type Interaction } from "oidc-provider";
import type { AllowedClients } from "../../adapters/oauth/app-policy.ts";
import { isApiScope } from "../../resources/access/scopes.ts";
import type { AuthOptions } from "../auth/auth-options.ts";
import { enforceLimit } from "../auth/error-handler.ts";
import { redirectTargetOf } from "../clients/redirect-uris.ts";
import { seeOther } from "../http/redirects.ts";
import { textFieldOf } from "../http/request-body.ts";
import { changeSettings } from "../operations/organization-settings.ts";
import { assetAddress } from "../ui/asset-files.ts";
import { breakable, hidden, icon, initial } from "../ui/controls.ts";
import { isManager, sectionPath } from "../ui/dashboard-layout.ts";
import { type Html, html } from "../ui/html.ts";
import { alert, BRAND, document } from "../ui/page.ts";
import { pathWith } from "../ui/table.ts";
import {
  approveConsent,
  type ConsentOption,
  denyConsent,
  type Exclusion,
  type ExclusionReason,
  findConsentOptions,
  findEarlierConsent,
} from "./consent.ts";
import { deviceOf } from "./device.ts";
import {
  accountIdOf,
  hiddenFields,
  interactionPath,
  type RequestingApp,
  requestingAppOf,
  type Step,
} from "./interaction.ts";

export function consentStep(options: AuthOptions): Step {
  const { provider, storage, appPolicyCheck, csrf, base, sessions, authenticationLimits } = options;
  const findOptions = async (ctx: Context, interaction: Interaction) =>
    findConsentOptions(storage, appPolicyCheck, {
      userId: accountIdOf(interaction),
      clientId: clientIdOf(interaction),
      scopes: requestedScopes(interaction),
      amr: (await sessions.current(ctx))?.amr,
    });

  async function showPage(ctx: Context, interaction: Interaction, error?: string): Promise<void> {
    if (error) ctx.status = 422;
    const app = await requestingAppOf(options, interaction);
    const account = await storage.accounts.find(accountIdOf(interaction));
    const user = html`<strong><bdi>${account?.username}</bdi></strong>`;
    const device = await deviceOf(provider, interaction);
    const target = device ? undefined : redirectTargetOf(textFieldOf(interaction.params.redirect_uri));
    const scopes = requestedScopes(interaction);
    const found = await findOptions(ctx, interaction);
    const isWhole = error !== undefined || ctx.query.all !== undefined;
    const earlier = isWhole
      ? undefined
      : await findEarlierConsent(provider, storage, interaction, found.options);
    const { refusal } = found;
    const choices = earlier ? [earlier.option] : found.options;
    const excluded = earlier ? [] : found.excluded;
    const canAllow = choices.length > 0;
    const possible = scopes.filter((scope) => choices.some((choice) => choice.scopes.includes(scope)));
    const offered = earlier?.added ?? (canAllow ? possible : scopes);
    const waysOn = ({ id, role, needed }: Exclusion) => ({
      isManager: isManager({ role }),
      needed: KINDS[needed ?? "any"],
      settingsUrl: `${base}${sectionPath(id, "settings")}#apps`,
      approvalUrl: `${base}${pathWith(`${sectionPath(id, "apps")}/approve`, { client_id: clientIdOf(interaction) })}`,
      again: interactionPath(interaction),
    });
    // The host comes right after the headline: a name could pretend to be it.
    const body = html`<body>
<main class="card consent">
<p class="brand">${BRAND}</p>
<form method="post" action="${interactionPath(interaction, "consent")}">
<h1>${canAllow ? question(app, choices, offered.length > 0 ? offered : scopes) : REFUSED}</h1>
${
  target
    ? html`<p>You’ll be redirected to <strong>${target.name}</strong>.</p>`
    : html`<p>A device asks for access: <strong><bdi>${device?.program}</bdi></strong> at <strong>${device?.address}</strong>.</p>`
}
${origin(app)}
<p>${
      earlier
        ? html`It already has access to <bdi>${earlier.option.name}</bdi> as ${user}, and asks for ${earlier.added.length > 0 ? "more. It will also be able to:" : "nothing new."}`
        : canAllow
          ? html`Acting as ${user}, it will be able to:`
          : html`<strong><bdi>${app.name}</bdi></strong> is requesting access as ${user}. It wants to:`
    }</p>
${offered.length > 0 && html`<ul class="scopes">${offered.map((scope) => html`<li>${icon("check")}<span>${describe(scope)}</span></li>`)}</ul>`}
${earlier && html`<p class="soft"><a href="${interactionPath(interaction)}?all">${found.options.length > 1 ? "Choose another organization" : "Show all permissions"}</a></p>`}
${canAllow && html`<p class="soft">Access expires in 90 days; you can revoke it at any time.</p>`}
${trustNote(app, target ? target.isLocal && OWN_COMPUTER : OWN_DEVICE, choices)}
${alert(error)}
${hiddenFields(interaction, csrf)}
${canAllow ? organizationChoice(choices, scopes) : alert(refusal && REFUSALS[refusal])}
${excluded.map((one) => html`<p class="alert">${EXCLUSIONS[one.reason](html`<bdi>${one.name}</bdi>`, waysOn(one))}</p>`)}
<div class="buttons">
${canAllow && html`<button type="submit" name="decision" value="allow">Allow</button>`}
<button type="submit" name="decision" value="cancel" class="quiet">Cancel</button>
</div>
</form>
${excluded.filter(mayAccept).map(
  ({
    id,
    name,
    needed,
  }) => html`<form method="post" action="${interactionPath(interaction, "consent")}" class="buttons">
${hiddenFields(interaction, csrf)}${hidden("accept_for", id)}
<button type="submit" name="decision" value="accept" class="quiet">Accept ${KINDS[needed]} in <bdi>${name}</bdi></button>
</form>`,
)}
</main>
</body>`;
    ctx.body = document(canAllow ? "Allow access" : REFUSED, body, { extraHead: DASHBOARD_STYLE });
  }

  /** Does what the settings of an organization do, for one that excludes the app because of its kind. */
  async function acceptApp(ctx: Context, interaction: Interaction, organizationId: unknown): Promise<void> {
    const id = accountIdOf(interaction);
    enforceLimit(await authenticationLimits.change(id));
    const { excluded } = await findOptions(ctx, interaction);
    const organization = excluded.filter(mayAccept).find((one) => one.id === organizationId);
    if (!organization || (await sessions.current(ctx))?.accountId !== id)
      return showPage(ctx, interaction, "You can’t change which apps this organization accepts.");
    const actor = { id, address: ctx.ip };
    await changeSettings({ storage, organization, actor }, { allowedClients: organization.needed });
    seeOther(ctx, interactionPath(interaction));
  }

  return {
    show: (ctx, interaction) => showPage(ctx, interaction),

    async submit(ctx, interaction, body) {
      if (body.decision === "accept") return acceptApp(ctx, interaction, body.accept_for);
      if (body.decision !== "allow") {
        await denyConsent(provider, ctx);
        return seeOther(ctx, interaction.returnTo);
      }
      const { options } = await findOptions(ctx, interaction);
      const option = options.find(({ id }) => id === body.organization_id);
      if (!option) return showPage(ctx, interaction, "Select one of your organizations.");
      try {
        await approveConsent(provider, storage, interaction, { option, address: ctx.ip });
      } catch (error) {
        if (!(error instanceof errors.AccessDenied)) throw error;
        return showPage(ctx, interaction, `You are no longer a member of ${option.name}.`);
      }
      seeOther(ctx, interaction.returnTo);
    },
  };
}

function clientIdOf({ params }: Interaction): string {
  return textFieldOf(params.client_id);
}

function requestedScopes({ params }: Interaction): string[] {
  return textFieldOf(params.scope).split(" ").filter(Boolean);
}

const REFUSED = "You can’t allow access";

const REFUSALS = {
  suspended:
    "Your organization is suspended, so you can’t approve this request. Its owners can contact the operator of this service.",
  plan: "You aren’t a member of an organization on the Growth or Premium plan, so you can’t approve this request.",
  role: "Your role doesn’t allow the access that this app requests. Ask an owner or admin of your organization.",
};

const KINDS: Record<AllowedClients, string> = {
  known: "known AI clients",
  any: "any app",
  none: "no other app",
};

function mayAccept(one: Exclusion): one is Exclusion & { needed: AllowedClients } {
  return one.reason === "kind" && one.needed !== undefined;
}

/** The pages that can change why an organization is excluded, and the one that shows the step again. */
type WaysOn = { isManager: boolean; needed: string; settingsUrl: string; approvalUrl: string; again: string };

const EXCLUSIONS: Record<ExclusionReason, (organization: Html, ways: WaysOn) => Html> = {
  kind: (organization, { isManager, needed, settingsUrl, again }) =>
    isManager
      ? html`${organization} doesn’t allow this app. To allow it, open the <a href="${settingsUrl}" target="_blank" rel="noopener noreferrer">settings</a> and choose “${needed.charAt(0).toUpperCase()}${needed.slice(1)}” under “Accepted apps”. Then <a href="${again}">check again</a>.`
      : html`${organization} doesn’t allow this app. Ask an owner or admin of ${organization} to change the accepted apps. Send them this link: <code class="long">${settingsUrl}</code>`,
  second_factor: (organization) =>
    html`${organization} requires two-factor authentication. Set it up on your account page, sign in with it, then start again from the app.`,
  members: (organization) =>
    html`${organization} doesn’t let its members authorize apps. Ask an owner or admin of ${organization}.`,
  approval: (organization, { approvalUrl }) =>
    html`Ask an owner or admin of ${organization} to approve this app. Send them this link: <code class="long">${approvalUrl}</code>`,
};

const SCOPE_DESCRIPTIONS: Record<string, string> = {
  "links:read": "View links and their clicks",
  "links:write": "Create, edit and delete links",
  "domains:read": "View domains",
  "domains:write": "Add, edit and delete domains",
  "webhooks:read": "View webhooks",
  "webhooks:write": "Create, edit and delete webhooks",
  openid: "View your user ID and username",
  offline_access: "Keep this access while you’re not using the app",
};

const LIST = new Intl.ListFormat("en");

const DASHBOARD_STYLE = html`
<link rel="stylesheet" href="${assetAddress("dashboard.css")}">`;

/** Asks in one sentence for the most that an app would get: “Allow Claude to manage Press’s links?” */
function question({ name }: RequestingApp, options: ConsentOption[], scopes: string[]): Html {
  const [only, ...others] = options;
  const whose = only && others.length === 0 ? html`<bdi>${only.name}</bdi>’s` : html`your organization’s`;
  const writes = scopes.filter((scope) => scope.endsWith(":write"));
  const things = (writes.length > 0 ? writes : scopes.filter(isApiScope)).map((scope) => scope.split(":")[0]);
  const wish = things.length > 0 ? html`${whose} ${LIST.format(things as string[])}` : html`who you are`;
  return html`Allow <bdi>${name}</bdi> to ${writes.length > 0 ? "manage" : "see"} ${wish}?`;
}

/** Says whose an app is, and links its homepage. */
function origin({ name, organization, homepage }: RequestingApp): Html {
  const by = organization && organization.name !== name && html`An app by <bdi>${organization.name}</bdi> `;
  const site =
    homepage &&
    html`<a href="${homepage}" rel="noopener noreferrer" target="_blank">${breakable(new URL(homepage).host)}</a>`;
  return by || site ? html`<p class="soft">${by}${site}</p>` : html``;
}

const OWN_DEVICE = "Continue only if you have just started this on a device of yours.";
const OWN_COMPUTER = "This app runs on your computer. Continue only if you just started it.";

/** Says once what is known about an app, and what the user has to judge. */
function trustNote(
  { name, organization, identity }: RequestingApp,
  /** What the user has to know about an app that no address identifies. */
  own: string | false,
  options: ConsentOption[],
): Html {
  const isOwn = options.some(({ id }) => id === organization?.id);
  if (organization && (isOwn || name === organization.name))
    return own ? html`<p class="alert">${own}</p>` : html``;
  const advice = (trusted: string) => own || `Continue only if you trust ${trusted}.`;
  if (organization)
    return html`<p class="alert"><strong>Not verified</strong>: the organization <strong><bdi>${organization.name}</bdi></strong> chose the name of this app. ${advice("it")}</p>`;
  if (!identity?.publisher)
    return html`<p class="alert"><strong>Unverified app</strong>: anyone can use this name. ${advice("it")}</p>`;
  const published = html`Identity published by <strong>${identity.publisher}</strong>.`;
  if (!identity.isKnown)
    return html`<p class="alert">${published} <strong>Not verified</strong>: this app isn’t on linkgate’s list of known apps. ${advice("this site")}</p>`;
  // Nothing proves which program on a computer has started a request (RFC 8252 §8.6).
  return own
    ? html`<p class="alert">${published} This app is on linkgate’s list of known apps, but other programs can use its name. ${own}</p>`
    : html`<p class="notice">${published} Verified: this app is on linkgate’s list of known apps.</p>`;
}

/** Says it within a sentence: “create, edit and delete links”. */
export function abilities(scopes: readonly string[]): string {
  const texts = scopes.map(describe);
  return texts.map((text) => text.charAt(0).toLowerCase() + text.slice(1)).join("; ");
}

/** Says in plain words what a scope allows. */
export function describe(scope: string): string {
  return SCOPE_DESCRIPTIONS[scope] ?? scope;
}

function organizationChoice(options: ConsentOption[], requested: string[]): Html {
  const [only] = options;
  if (options.length === 1 && only) {
    return html`${roleLimits(only, requested)}
<input type="hidden" name="organization_id" value="${only.id}">`;
  }
  return html`<fieldset><legend>Select an organization</legend>
${options.map(
  (option, index) =>
    html`<label class="option"><input type="radio" name="organization_id" value="${option.id}"${
      index === 0 ? " checked" : ""
    }>${initial(option.name)}<bdi>${option.name}</bdi></label>${roleLimits(option, requested)}`,
)}</fieldset>`;
}

function roleLimits({ name, role, scopes }: ConsentOption, requested: string[]): Html {
  const missing = requested.filter((scope) => !scopes.includes(scope));
  if (missing.length === 0) return html``;
  return html`<p class="hint">Your role in <bdi>${name}</bdi> is ${role}, so the app won’t be able to: ${abilities(missing)}.</p>`;
}
