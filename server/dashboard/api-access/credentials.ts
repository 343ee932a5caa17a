import type { Router } from "@koa/router";
import type { Context } from "koa";
import { z } from "zod";
import type { Storage } from "../../../adapters/index.ts";
import type { KeyView } from "../../../adapters/oauth/client-keys.ts";
import type { ClientView } from "../../../adapters/oauth/clients.ts";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import { validate } from "../../../resources/http/validate.ts";
import { requireRecentSignIn } from "../../auth/authenticate.ts";
import { showKey } from "../../clients/client-view.ts";
import { InvalidKey, type PublicKey, parsePublicKey } from "../../credentials/public-keys.ts";
import { csrfField, linkButton, textArea } from "../../ui/controls.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { MANAGERS, membershipOf, signedInUserOf } from "../access.ts";
import {
  formFieldsOf,
  isForm,
  redisplayForm,
  respondToChange,
  type Show,
  showPage,
  splitFieldErrors,
} from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";
import { clientOf } from "./client.ts";

const PATH = `${ORGANIZATION}/client`;
const KEY = `${PATH}/keys/:key_id`;

const newKey = z.strictObject({
  key: z.union([z.string(), z.record(z.string(), z.unknown())], { error: "must be a JWK or PEM text" }),
});
const removal = z.strictObject({ compromised: z.boolean({ error: "must be true or false" }).default(false) });

const LIMIT = "A client has at most two keys. Remove one first.";
const DUPLICATE = "The client already has this key.";

type Clients = Storage["clients"];
type Options = Parameters<RouteModule>[1];

/** Adds the routes that add and remove public keys, and that remove all secrets. */
export function addCredentialRoutes(router: Router, { storage, allow }: Options): void {
  const { clients } = storage;
  const managers = allow(...MANAGERS);

  const showKeyForm: Show = async (ctx, _message, problem) => {
    requireRecentSignIn(ctx);
    const { id } = membershipOf(ctx);
    await clientOf(clients, id);
    const { error, errors } = splitFieldErrors(problem);
    const body = keyForm(id, signedInUserOf(ctx).csrf, errors.key);
    showPage(ctx, { title: "Add public key", section: "client", error }, body);
  };
  router.get(`${PATH}/keys/new`, managers, (ctx) => showKeyForm(ctx));
  router.post(`${PATH}/keys`, managers, redisplayForm(showKeyForm), (ctx) => addKey(ctx, clients));

  router.get(`${KEY}/remove`, managers, async (ctx) => {
    requireRecentSignIn(ctx);
    const { id } = membershipOf(ctx);
    const { keys } = await clientOf(clients, id);
    const key = keys.find((one) => one.id === ctx.params.key_id);
    if (!key) throw notFound("key");
    showPage(
      ctx,
      { title: "Remove public key", section: "client" },
      keyRemovalForm(id, key, signedInUserOf(ctx).csrf),
    );
  });
  router.delete(KEY, managers, (ctx) => removeKey(ctx, clients));
  router.post(`${KEY}/delete`, managers, (ctx) => removeKey(ctx, clients));

  router.get(`${PATH}/secrets/remove`, managers, async (ctx) => {
    requireRecentSignIn(ctx);
    const { id } = membershipOf(ctx);
    const client = await clientOf(clients, id);
    const body = secretsRemovalForm(id, client, signedInUserOf(ctx).csrf);
    showPage(ctx, { title: "Remove all secrets", section: "client" }, body);
  });
  router.delete(`${PATH}/secrets`, managers, (ctx) => removeSecrets(ctx, clients));
  router.post(`${PATH}/secrets/delete`, managers, (ctx) => removeSecrets(ctx, clients));
}

async function addKey(ctx: Context, clients: Clients): Promise<void> {
  const { id } = membershipOf(ctx);
  const path = sectionPath(id, "client");
  requireRecentSignIn(ctx, `${path}/keys/new`);
  const { key } = validate(newKey, await formFieldsOf(ctx));
  await clientOf(clients, id);
  const parsed = await readKey(typeof key === "string" ? key : JSON.stringify(key));
  const added = await clients.addKey(id, parsed, signedInUserOf(ctx).actor);
  if (added === "missing") throw notFound("client");
  if (added === "duplicate") throw new Problem(409, "duplicate_key", DUPLICATE);
  if (added === "limit") throw new Problem(409, "key_limit", LIMIT);
  respondToChange(ctx, { to: path, done: "key-added", status: 201, body: showKey(added) });
}

/** @throws Problem 422 that names the rule */
async function readKey(text: string): Promise<PublicKey> {
  try {
    return await parsePublicKey(text);
  } catch (error) {
    if (!(error instanceof InvalidKey)) throw error;
    const { message } = error;
    throw new Problem(422, "invalid_key", `The key ${message}.`, { errors: [{ field: "key", message }] });
  }
}

async function removeKey(ctx: Context, clients: Clients): Promise<void> {
  const { id } = membershipOf(ctx);
  const path = sectionPath(id, "client");
  const keyId = ctx.params.key_id as string;
  requireRecentSignIn(ctx, `${path}/keys/${keyId}/remove`);
  const fields = await formFieldsOf(ctx);
  const { compromised } = validate(
    removal,
    isForm(ctx) ? { compromised: fields.kind === "compromised" } : fields,
  );
  const isRemoved = await clients.removeKey(id, keyId, { compromised }, signedInUserOf(ctx).actor);
  if (!isRemoved) throw notFound("key");
  respondToChange(ctx, { to: path, done: "key-removed" });
}

async function removeSecrets(ctx: Context, clients: Clients): Promise<void> {
  const { id } = membershipOf(ctx);
  const path = sectionPath(id, "client");
  requireRecentSignIn(ctx, `${path}/secrets/remove`);
  await clientOf(clients, id);
  await clients.removeSecrets(id, signedInUserOf(ctx).actor);
  respondToChange(ctx, { to: path, done: "secrets-removed" });
}

/**
 * Renders the form that adds a public key. A rejected key is not shown again, because it may be private.
 * @param error why the key was rejected
 */
function keyForm(organizationId: string, csrf: string | undefined, error: string | undefined): Html {
  const path = sectionPath(organizationId, "client");
  return html`<form method="post" action="${path}/keys" class="panel stack">${csrfField(csrf)}
${textArea({
  name: "key",
  label: "Public key",
  hint: "A JWK, or PEM that starts with -----BEGIN PUBLIC KEY-----: RSA with at least 2048 bits, EC on P-256 or P-384, or Ed25519. Keep the private key to yourself.",
  error,
  attributes: html`rows="10" required`,
})}
<div class="actions"><button type="submit">Add key</button>${linkButton(path, "Cancel", "quiet")}</div>
</form>`;
}

/** Renders the form that asks why a key is removed. */
function keyRemovalForm(organizationId: string, { id, thumbprint }: KeyView, csrf: string | undefined): Html {
  const path = sectionPath(organizationId, "client");
  return html`<form method="post" action="${path}/keys/${id}/delete" class="panel stack">${csrfField(csrf)}
<p>Key <code class="long">${thumbprint}</code></p>
<fieldset><legend>Reason</legend>
<label class="option"><input type="radio" name="kind" value="planned" checked> No longer used: tokens that were issued with it stay valid until they expire</label>
<label class="option"><input type="radio" name="kind" value="compromised"> Compromised private key: also revoke all tokens and app authorizations of this client now</label>
</fieldset>
<div class="actions"><button type="submit" class="danger">Remove key</button>${linkButton(path, "Cancel", "quiet")}</div>
</form>`;
}

/** Renders the confirmation that the client will have no secret. */
function secretsRemovalForm(
  organizationId: string,
  { keys }: Pick<ClientView, "keys">,
  csrf: string | undefined,
): Html {
  const path = sectionPath(organizationId, "client");
  const warning =
    keys.length === 0
      ? html`<p class="alert">This client has no public key. Without secrets, it can get tokens only through trust rules for workloads.</p>`
      : html``;
  return html`<form method="post" action="${path}/secrets/delete" class="panel stack">${csrfField(csrf)}
${warning}
<p>All secrets stop working now, including those that are still in their overlap. Tokens stay valid until they expire. You can create a new secret at any time.</p>
<div class="actions"><button type="submit" class="danger">Remove all secrets</button>${linkButton(path, "Cancel", "quiet")}</div>
</form>`;
}
