import type { Router } from "@koa/router";
import { z } from "zod";
import type { Disabled } from "../../../adapters/oauth/clients.ts";
import type { Membership } from "../../../adapters/organizations/store.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import { hasAtMost, isLine } from "../../../resources/http/text.ts";
import { validate } from "../../../resources/http/validate.ts";
import { requireRecentSignIn } from "../../auth/authenticate.ts";
import { showDisabled } from "../../clients/client-view.ts";
import { field, formButton, linkButton, panelForm, time } from "../../ui/controls.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { actorOf, membershipOf, pathTo } from "../access.ts";
import { formFieldsOf, isForm, respondToChange, splitFieldErrors } from "../responses.ts";
import { addForm, type RouteOptions } from "../route.ts";
import { CLIENT, clientOf } from "./client.ts";

const REASON_MAX = 255;
const RULE = `must be 1 to ${REASON_MAX} characters without control characters`;
const disabling = z.strictObject({
  reason: z
    .string({ error: RULE })
    .trim()
    .refine((text) => text !== "" && hasAtMost(REASON_MAX, text) && isLine(text), { error: RULE })
    .nullable()
    .default(null),
});

export function addSwitchRoutes(router: Router, { storage: { clients }, allow }: RouteOptions): void {
  addForm(router, {
    path: `${CLIENT}/disable`,
    access: allow("owner"),
    section: "client",
    isSensitive: true,
    async render(ctx, problem) {
      await clientOf(ctx, clients);
      const { errors, ...error } = splitFieldErrors(problem);
      return { title: "Disable client", ...error, body: disableForm(pathTo(ctx, "client"), errors.reason) };
    },
    async change(ctx) {
      const { reason: given, ...fields } = await formFieldsOf(ctx);
      // A form sends an empty text.
      const hasReason = given !== undefined && !(isForm(ctx) && given === "");
      const { reason } = validate(disabling, hasReason ? { ...fields, reason: given } : fields);
      const disabled = await clients.disable(membershipOf(ctx).id, reason, actorOf(ctx).actor);
      if (!disabled) throw notFound("client");
      const body = { disabled: showDisabled(disabled) };
      respondToChange(ctx, { to: `${pathTo(ctx, "client")}/security`, done: "client-disabled", body });
    },
  });

  router.post(`${CLIENT}/enable`, allow("owner"), async (ctx) => {
    const to = `${pathTo(ctx, "client")}/security`;
    requireRecentSignIn(ctx, to);
    const refusal = await clients.enable(membershipOf(ctx).id, actorOf(ctx).actor);
    if (refusal === "missing") throw notFound("client");
    if (refusal === "operator") {
      const detail = "The operator of this service disabled the client. Contact the operator to enable it.";
      throw new Problem(403, "disabled_by_operator", detail);
    }
    respondToChange(ctx, { to, done: "client-enabled" });
  });
}

export function disabledAlert(disabled: Disabled | null): Html {
  if (!disabled) return html``;
  const { at, by, reason } = disabled;
  const who = by === OPERATOR.id ? "The operator of this service" : "An owner";
  return html`<p class="alert bad">${who} disabled this client on ${time(at)}. Its requests and tokens are rejected.${reason && html` Reason: ${reason}`}</p>`;
}

export function switchPanel({ id, role }: Membership, disabled: Disabled | null): Html {
  const path = sectionPath(id, "client");
  if (role !== "owner") return html``;
  if (!disabled) {
    return html`<section class="panel danger"><h2>Disable client</h2>
<p class="soft">Stops the client and all apps that use it, until you enable it again.</p>
${linkButton(`${path}/disable`, "Disable client", "danger")}</section>`;
  }
  return html`<section class="panel"><h2>Enable client</h2>
${
  disabled.by === OPERATOR.id
    ? html`<p class="soft">Only the operator of this service can enable this client.</p>`
    : html`<p class="soft">The client and its unexpired tokens work again. If a secret leaked, rotate it first.</p>
${formButton({ action: `${path}/enable`, text: "Enable client" })}`
}</section>`;
}

function disableForm(path: string, error: string | undefined): Html {
  return panelForm(
    { action: `${path}/disable`, submit: "Disable client", cancel: `${path}/security`, danger: "panel" },
    html`<p>While the client is disabled:</p>
<ul>
<li>it gets no tokens, and its tokens are rejected by the API and MCP</li>
<li>apps that use it lose access, for members of any organization</li>
</ul>
<p>Nothing is revoked: the tokens work again if you enable the client before they expire. To revoke them, rotate the secret as compromised.</p>
${field({ name: "reason", label: "Reason (optional)", hint: "For the audit log.", error, attributes: html`maxlength="255" autocomplete="off"` })}`,
  );
}
