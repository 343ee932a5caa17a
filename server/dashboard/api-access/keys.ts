import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { KeyView } from "../../../adapters/oauth/client-keys.ts";
import type { ClientView } from "../../../adapters/oauth/clients.ts";
import { notFound } from "../../../resources/http/problem.ts";
import { addClientKey, listClientKeys, removeClientKey } from "../../operations/client-keys.ts";
import { day, linkButton, panelForm, textArea } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { type Columns, emptyState, table } from "../../ui/table.ts";
import { splitFieldErrors } from "../forms.ts";
import { addOperationPage } from "../operation-routes.ts";
import type { RouteOptions } from "../route.ts";
import { reasonField } from "./secrets.ts";
import { addTab, CLIENT, clientOf, tabPath } from "./tabs.ts";

export function addKeyRoutes(router: Router, options: RouteOptions): void {
  const { clients } = options.storage;
  const to = (ctx: Context) => tabPath(ctx, "client/keys");

  addTab(router, options, "client/keys", listClientKeys, (ctx, client) => keysSection(client, to(ctx)));

  addOperationPage(router, options, addClientKey, {
    path: `${CLIENT}/keys/new`,
    section: "client",
    to,
    async render(ctx, problem) {
      await clientOf(ctx, clients);
      const { errors, ...error } = splitFieldErrors(problem);
      return { title: "Add public key", ...error, body: keyForm(to(ctx), errors.key) };
    },
  });

  addOperationPage(router, options, removeClientKey, {
    path: `${CLIENT}/keys/:key_id/remove`,
    section: "client",
    toInput: ({ kind, ...fields }) => ({ ...fields, compromised: kind === "compromised" }),
    to,
    async render(ctx) {
      const { keys } = await clientOf(ctx, clients);
      const key = keys.find((one) => one.id === ctx.params.key_id);
      if (!key) throw notFound("key");
      return { title: "Remove public key", body: removalForm(to(ctx), key) };
    },
  });
}

function keysSection({ keys }: ClientView, path: string): Html {
  const columns: Columns<KeyView> = {
    Thumbprint: ({ thumbprint }) => html`<code class="long">${thumbprint}</code>`,
    Created: ({ createdAt }) => day(createdAt),
    "Last used": ({ lastUsedAt }) => day(lastUsedAt),
  };
  const removeButton = ({ id, thumbprint }: KeyView) =>
    linkButton(`${path}/${id}/remove`, "Remove", "danger", `key ${thumbprint}`);
  const add =
    keys.length < 2 && linkButton(`${path}/new`, "Add public key", keys.length > 0 ? "quiet" : "primary");
  const list =
    keys.length > 0
      ? table("Public keys", columns, keys, removeButton)
      : emptyState("No public keys yet", "Keep the private key to yourself, and add its public key here.");
  return html`<section class="group"><div class="title"><div><h2>Public keys</h2>
<p class="intro">Sign requests with a private key instead of sending a secret (<code>private_key_jwt</code>). Up to two keys.</p></div>
${add}</div>
${list}</section>`;
}

// A rejected key is not shown again, because it may be private.
function keyForm(path: string, error: string | undefined): Html {
  return panelForm(
    { action: path, submit: "Add key", cancel: path },
    textArea({
      name: "key",
      label: "Public key",
      hint: "A JWK, or PEM that starts with -----BEGIN PUBLIC KEY-----: RSA with at least 2048 bits, EC on P-256 or P-384, or Ed25519. Keep the private key to yourself.",
      error,
      attributes: html`rows="10" required`,
    }),
  );
}

function removalForm(path: string, { id, thumbprint }: KeyView): Html {
  return panelForm(
    { action: `${path}/${id}/delete`, submit: "Remove key", cancel: path, danger: "button" },
    html`<p>Key <code class="long">${thumbprint}</code></p>
${reasonField(
  "No longer used: tokens that were issued with it stay valid until they expire",
  "Compromised private key: also revoke all tokens and app authorizations of this client now",
)}`,
  );
}
