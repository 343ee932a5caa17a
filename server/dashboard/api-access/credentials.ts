import type { Router } from "@koa/router";
import type { Context } from "koa";
import { z } from "zod";
import type { Storage } from "../../../adapters/index.ts";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import { validate } from "../../../resources/http/validate.ts";
import { requireRecentSignIn } from "../../auth/authenticate.ts";
import { showKey } from "../../clients/client-view.ts";
import { InvalidKey, type PublicKey, parsePublicKey } from "../../credentials/public-keys.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
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
import { keyForm, keyRemovalForm, secretsRemovalForm } from "./credential-forms.ts";

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
