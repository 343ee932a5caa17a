import type { Router } from "@koa/router";
import { z } from "zod";
import type { KeyView } from "../../../adapters/oauth/client-keys.ts";
import type { ClientView } from "../../../adapters/oauth/clients.ts";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import { validate } from "../../../resources/http/validate.ts";
import { showKey } from "../../clients/client-view.ts";
import { InvalidKey, type PublicKey, parsePublicKey } from "../../credentials/public-keys.ts";
import { linkButton, panelForm, textArea, time } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { type Columns, emptyState, table } from "../../ui/table.ts";
import { actorOf, MANAGERS, membershipOf } from "../access.ts";
import { formFieldsOf, isForm, respondToChange, splitFieldErrors } from "../responses.ts";
import { addForm, type RouteOptions } from "../route.ts";
import { CLIENT, clientOf, refuseConflict } from "./client.ts";
import { reasonField } from "./secrets.ts";
import { addTab, tabPath } from "./tabs.ts";

const KEY = `${CLIENT}/keys/:key_id`;

const newKey = z.strictObject({
  key: z.union([z.string(), z.record(z.string(), z.unknown())], { error: "must be a JWK or PEM text" }),
});
const removal = z.strictObject({ compromised: z.boolean({ error: "must be true or false" }).default(false) });

const DUPLICATE = "The client already has this key.";
const LIMIT = "A client has at most two keys. Remove one first.";

export function addKeyRoutes(router: Router, options: RouteOptions): void {
  const { clients } = options.storage;
  const { allow } = options;
  const common = { access: allow(...MANAGERS), section: "client", isSensitive: true } as const;

  addTab(router, options, "client/keys", {
    body: (ctx, client) => keysSection(client, tabPath(ctx, "client/keys")),
    data: (_, { keys }) => ({ data: keys.map(showKey) }),
  });

  addForm(router, {
    ...common,
    path: `${CLIENT}/keys/new`,
    action: `${CLIENT}/keys`,
    async render(ctx, problem) {
      await clientOf(ctx, clients);
      const { errors, ...error } = splitFieldErrors(problem);
      return { title: "Add public key", ...error, body: keyForm(tabPath(ctx, "client/keys"), errors.key) };
    },
    async change(ctx) {
      const { key } = validate(newKey, await formFieldsOf(ctx));
      await clientOf(ctx, clients);
      const parsed = await readKey(typeof key === "string" ? key : JSON.stringify(key));
      const added = await clients.addKey(membershipOf(ctx).id, parsed, actorOf(ctx).actor);
      if (added === "missing") throw notFound("client");
      if (added === "duplicate") throw new Problem(409, "duplicate_key", DUPLICATE);
      if (added === "limit") throw new Problem(409, "key_limit", LIMIT);
      const body = showKey(added);
      respondToChange(ctx, { to: tabPath(ctx, "client/keys"), done: "key-added", status: 201, body });
    },
  });

  addForm(router, {
    ...common,
    path: `${KEY}/remove`,
    action: `${KEY}/delete`,
    program: ["delete", KEY],
    async render(ctx) {
      const { keys } = await clientOf(ctx, clients);
      const key = keys.find((one) => one.id === ctx.params.key_id);
      if (!key) throw notFound("key");
      return { title: "Remove public key", body: removalForm(tabPath(ctx, "client/keys"), key) };
    },
    async change(ctx) {
      const fields = await formFieldsOf(ctx);
      const input = isForm(ctx) ? { compromised: fields.kind === "compromised" } : fields;
      const reason = validate(removal, input);
      const { organizationId, actor } = actorOf(ctx);
      const isRemoved = await clients
        .removeKey(organizationId, ctx.params.key_id, reason, actor)
        .catch(refuseConflict);
      if (!isRemoved) throw notFound("key");
      respondToChange(ctx, { to: tabPath(ctx, "client/keys"), done: "key-removed" });
    },
  });
}

/** Throws Problem 422 that names the rule. */
async function readKey(text: string): Promise<PublicKey> {
  try {
    return await parsePublicKey(text);
  } catch (error) {
    if (!(error instanceof InvalidKey)) throw error;
    const { message } = error;
    throw new Problem(422, "invalid_key", `The key ${message}.`, { errors: [{ field: "key", message }] });
  }
}

function keysSection({ keys }: ClientView, path: string): Html {
  const columns: Columns<KeyView> = {
    Thumbprint: ({ thumbprint }) => html`<code class="long">${thumbprint}</code>`,
    Created: ({ createdAt }) => time(createdAt),
    "Last used": ({ lastUsedAt }) => time(lastUsedAt),
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
