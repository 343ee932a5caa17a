import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { ClientView } from "../../../adapters/oauth/clients.ts";
import { USE_INTERVAL_MS } from "../../clients/use-recorder.ts";
import { type Input, textFieldOf } from "../../http/request-body.ts";
import { removeSecrets, revokeSecret, rotateSecret } from "../../operations/client-secrets.ts";
import type { Result } from "../../operations/operation.ts";
import { copyable, day, field, formButton, linkButton, panelForm, time } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { type Columns, table } from "../../ui/table.ts";
import { pathTo, rolesOf } from "../access.ts";
import type { Show } from "../forms.ts";
import { type OneTimeView, shownOnce } from "../one-time-view.ts";
import { addOperation, addOperationPage } from "../operation-routes.ts";
import type { RouteOptions } from "../route.ts";
import { CLIENT, clientOf } from "./tabs.ts";

type Secret = ClientView["secrets"][number];
/** What an operation returned that created a secret. Without `previous_expires_at`, it created the client, too. */
export type NewSecret = Pick<Result<typeof rotateSecret>, "client_id" | "client_secret"> & {
  previous_expires_at?: string | null;
  compromised?: boolean;
};

/** `show` is the page with all secrets. */
export function addSecretRoutes(router: Router, options: RouteOptions, show: Show): void {
  const { clients } = options.storage;
  const newSecrets = options.oneTimeView<NewSecret>();
  const to = (ctx: Context) => pathTo(ctx, "client");

  addOperationPage(router, options, rotateSecret, {
    path: `${CLIENT}/rotate`,
    section: "client",
    toInput: rotationOf,
    to,
    async render(ctx) {
      const path = pathTo(ctx, "client");
      const { secrets } = await clientOf(ctx, clients);
      if (secrets.length > 0) return { title: "Rotate secret", body: rotationForm(path) };
      return { title: "Create secret", body: creationForm(path) };
    },
    respond: (ctx, rotated, { compromised }) =>
      redirectToSecret(ctx, newSecrets, { ...rotated, compromised: compromised === true }),
  });

  router.get(`${CLIENT}/new-secret/:view`, options.allow(...rolesOf(rotateSecret)), (ctx) => {
    const path = pathTo(ctx, "client");
    newSecrets.show(ctx, {
      section: "client",
      page: (secret) => ({
        title: secret.previous_expires_at === undefined ? "Your OAuth client is ready" : "New client secret",
        body: newSecretPage(path, secret, pathTo(ctx, "links")),
      }),
      kind: "secret",
      explanation: shownOnce("A client secret", "If you didn’t save it, rotate the secret to get a new one."),
      back: { href: path, text: "Back to API access" },
      renew: { href: `${path}/rotate`, text: "Rotate secret" },
    });
  });

  addOperationPage(router, options, removeSecrets, {
    path: `${CLIENT}/secrets/remove`,
    section: "client",
    to,
    async render(ctx) {
      const { keys } = await clientOf(ctx, clients);
      return { title: "Remove all secrets", body: removalForm(pathTo(ctx, "client"), keys.length > 0) };
    },
  });
  addOperation(router, options, revokeSecret, { show, to });
}

export function redirectToSecret(ctx: Context, view: OneTimeView<NewSecret>, secret: NewSecret): void {
  view.redirect(ctx, `${pathTo(ctx, "client")}/new-secret`, secret);
}

/** The form sends the overlap even if the secret is compromised, when it has no effect. */
function rotationOf({ kind, overlap_hours, ...fields }: Input): Input {
  if (kind === "compromised") return { ...fields, compromised: true };
  // An empty field is not zero.
  const hours = textFieldOf(overlap_hours).trim() === "" ? Number.NaN : Number(overlap_hours);
  return { ...fields, overlap_hours: hours };
}

export function secretsSection(client: ClientView, path: string): Html {
  if (client.secrets.length === 0) {
    return html`<section class="group"><div class="title"><div><h2>Secrets</h2>
<p class="intro">This client has no secret.</p></div>
${!client.fapi && linkButton(`${path}/rotate`, "Create secret", "quiet")}</div></section>`;
  }
  return html`<section class="group"><div class="title"><div><h2>Secrets</h2>
<p class="intro">Each secret’s last four characters and recent callers. Issued tokens keep working until they expire.</p></div>
<div class="actions">${linkButton(`${path}/rotate`, "Rotate secret", "quiet")}${linkButton(`${path}/secrets/remove`, "Remove all", "quiet")}</div></div>
${overlapNotice(client)}${secretsTable(client, path)}</section>`;
}

function overlapNotice({ secrets: [newest, previous] }: ClientView): Html {
  if (!newest || !previous || newest.expiresAt !== null) return html``;
  const [latest] = previous.callers;
  const lastUsedAt = previous.lastUsedAt ?? 0;
  const isUsed = lastUsedAt > newest.createdAt;
  if (!isUsed && newest.lastUsedAt === null)
    return html`<p class="alert">The new secret hasn’t been used yet. Update your apps before you revoke the previous one, ending in <code>${previous.last4}</code>.</p>`;
  if (!isUsed && lastUsedAt > newest.createdAt - USE_INTERVAL_MS)
    return html`<p class="alert">The previous secret, ending in <code>${previous.last4}</code>, was used less than a minute before the rotation. Uses are recorded once a minute, so it may have been used since.</p>`;
  if (!isUsed)
    return html`<p class="notice">The previous secret, ending in <code>${previous.last4}</code>, hasn’t been used since the rotation. You can revoke it.</p>`;
  const caller = latest ? html`, by ${latest.program} from ${latest.network}` : html``;
  return html`<p class="alert">The previous secret, ending in <code>${previous.last4}</code>, is still in use (${time(previous.lastUsedAt)}${caller}). Update its callers to the new secret before it expires.</p>`;
}

function secretsTable({ secrets }: ClientView, path: string): Html {
  const columns: Columns<Secret> = {
    Secret: ({ last4 }) => html`<code class="inline">…${last4}</code>`,
    Created: ({ createdAt }) => day(createdAt),
    "Last used": ({ lastUsedAt }) => day(lastUsedAt),
    "Used by": callersOf,
    Expires: ({ expiresAt }) => day(expiresAt),
  };
  return table("Secrets", columns, secrets, ({ id, last4, expiresAt }) => {
    const about = `secret ending in ${last4}`;
    const action = `${path}/secrets/${id}/delete`;
    return expiresAt === null ? "" : formButton({ action, text: "Revoke", about, look: "danger" });
  });
}

function callersOf({ callers: [first, ...others] }: Secret): Html {
  if (!first) return html`<span class="soft">–</span>`;
  const line = ({ program, network }: Secret["callers"][number]) =>
    html`${program} <span class="soft">${network}</span>`;
  if (others.length === 0) return line(first);
  return html`<details><summary>${line(first)} and ${others.length} more</summary>
<ul>${others.map((caller) => html`<li>${line(caller)}, ${time(caller.lastUsedAt)}</li>`)}</ul></details>`;
}

function newSecretPage(path: string, secret: NewSecret, links: string): Html {
  const { client_id, client_secret, previous_expires_at, compromised } = secret;
  const isFirst = previous_expires_at === undefined;
  return html`<div class="panel" data-once>
${isFirst && html`<p>Programs use this ID and secret to call the API. If you don’t need the API yet, you can continue to your links and create another secret later.</p>`}
<p class="alert">Copy the secret now and store it safely. You won’t be able to see it again.</p>
<dl class="facts">
<dt>Client ID</dt><dd>${copyable(client_id, "client ID")}</dd>
<dt>Client secret</dt><dd>${copyable(client_secret, "client secret")}</dd>
</dl>
${compromised && html`<p>All older secrets and all tokens of this client have been revoked.</p>`}
${!compromised && previous_expires_at && html`<p>The previous secret stays valid until ${time(Date.parse(previous_expires_at))}.</p>`}
<div class="actions">${isFirst ? linkButton(links, "Go to your links") : linkButton(path, "Done")}${linkButton(`${path}/quick-start`, "Open quick start", "quiet")}</div>
</div>`;
}

function rotationForm(path: string): Html {
  return panelForm(
    { action: `${path}/rotate`, submit: "Rotate secret", cancel: path },
    html`${reasonField(
      "Scheduled rotation: the old secret stays valid for a while",
      "Compromised secret: revoke all older secrets, tokens and app authorizations of this client now",
    )}
${field({
  name: "overlap_hours",
  label: "Keep the old secret valid for (hours)",
  type: "number",
  value: 24,
  hint: "0 to 168. Ignored if the secret is compromised. Only two secrets can be active: a third one revokes the oldest.",
  attributes: html`min="0" max="168" step="any"`,
})}`,
  );
}

/** Renders the choice between a planned change of credentials and one because they leaked. */
export function reasonField(planned: string, compromised: string): Html {
  return html`<fieldset><legend>Reason</legend>
<label class="option"><input type="radio" name="kind" value="planned" checked> ${planned}</label>
<label class="option"><input type="radio" name="kind" value="compromised"> ${compromised}</label>
</fieldset>`;
}

function creationForm(path: string): Html {
  return panelForm(
    { action: `${path}/rotate`, submit: "Create secret", cancel: path },
    html`<input type="hidden" name="kind" value="planned"><input type="hidden" name="overlap_hours" value="0">
<p>The secret is shown once. Public keys stay valid.</p>`,
  );
}

function removalForm(path: string, hasKeys: boolean): Html {
  return panelForm(
    { action: `${path}/secrets/delete`, submit: "Remove all secrets", cancel: path, danger: "button" },
    html`${!hasKeys && html`<p class="alert">This client has no public key. Without secrets, it can get tokens only through trust rules for workloads.</p>`}
<p>All secrets stop working now, including those that are still in their overlap. Tokens stay valid until they expire. You can create a new secret at any time.</p>`,
  );
}
