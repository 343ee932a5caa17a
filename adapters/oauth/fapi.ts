import type { Actor } from "../../resources/access/actor.ts";
import type { ChangeClient, LockedClient } from "./change-client.ts";

const RULES = {
  key: "A client that follows FAPI 2.0 needs a public key. Add one first.",
  last_key: "A client that follows FAPI 2.0 needs a public key. Add another one first, or turn FAPI 2.0 off.",
  secrets: "A client that follows FAPI 2.0 must not have secrets. Remove them first.",
  new_secret: "A client that follows FAPI 2.0 must not have secrets. Turn FAPI 2.0 off first.",
  redirect_uris: "A client that follows FAPI 2.0 must only have https redirect URIs.",
};

/** A change would leave a client that contradicts the FAPI 2.0 Security Profile. The message names the rule. */
export class FapiConflict extends Error {
  override readonly name = "FapiConflict";
  constructor(rule: keyof typeof RULES) {
    super(RULES[rule]);
  }
}

/** Stores whether a client follows the FAPI 2.0 Security Profile, from the next request on. */
export function createFapiStore(changeClient: ChangeClient) {
  return {
    /** Returns false for an organization without a client. Throws FapiConflict if the client doesn't qualify. */
    setFapi: (organizationId: string, isOn: boolean, actor: Actor): Promise<boolean> =>
      changeClient(organizationId, actor, false, async (client) => {
        const { trx, id, record } = client;
        if ((await isFapi(client)) === isOn) return true;
        if (isOn) await requireQualified(client);
        await trx("clients").where({ id }).update({ fapi: isOn });
        await record("client.fapi_changed", { enabled: isOn });
        return true;
      }),
  };
}

/** Throws FapiConflict if the client follows the profile. */
export async function forbidWithFapi(client: LockedClient, rule: keyof typeof RULES): Promise<void> {
  if (await isFapi(client)) throw new FapiConflict(rule);
}

/** FAPI 2.0 Security Profile §5.3.2.2. */
export function isHttps(uri: string): boolean {
  return uri.startsWith("https://");
}

async function requireQualified({ trx, id }: LockedClient): Promise<void> {
  if (!(await trx("client_keys").where({ client_id: id }).first("id"))) throw new FapiConflict("key");
  const secrets = trx("client_secrets").where({ client_id: id });
  const isUnexpired = (one: typeof secrets) =>
    one.whereNull("expires_at").orWhere("expires_at", ">", Date.now());
  if (await secrets.where(isUnexpired).first("id")) throw new FapiConflict("secrets");
  const client = await trx("clients").where({ id }).first("redirect_uris");
  const redirectUris: string[] = JSON.parse(client?.redirect_uris ?? "[]");
  if (!redirectUris.every(isHttps)) throw new FapiConflict("redirect_uris");
}

async function isFapi({ trx, id }: LockedClient): Promise<boolean> {
  return Boolean((await trx("clients").where({ id }).first("fapi"))?.fapi);
}
