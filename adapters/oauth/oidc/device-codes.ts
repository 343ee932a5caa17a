import { type Adapter, errors } from "oidc-provider";
import type { Database } from "../../database/index.ts";
import { tokenKey, toStored } from "../token-row.ts";

// The page where a user enters a code knows the device code by its hash, which can't be redeemed.
const HASHED = "hashed:";

export function deviceCodeKey(id: string): string {
  return id.startsWith(HASHED) ? id.slice(HASHED.length) : tokenKey(id);
}

/** Stores device codes with their user codes. Each is answered once and redeemed once, also with concurrent requests. */
export function deviceCodeAdapter(
  { knex, transaction }: Database,
  tokens: Pick<Adapter, "upsert" | "find">,
): Partial<Adapter> {
  return {
    ...tokens,

    // Not `inFlight`: a user who closed the page may enter the code again.
    async upsert(id, { userCode, inFlight: _, ...payload }, expiresIn) {
      if (id.startsWith(HASHED)) {
        return transaction(async (trx) => {
          const row = () => trx("tokens").where({ id_hash: deviceCodeKey(id), kind: "DeviceCode" });
          const stored = await row().forUpdate().first("payload");
          const { error, accountId } = JSON.parse(stored?.payload ?? '{"error":"expired_token"}');
          if (error || accountId) throw new errors.InvalidRequest("the code has already been used");
          await row().update({ payload: toStored(payload), grant_id: payload.grantId ?? null });
        });
      }
      await tokens.upsert(id, payload, expiresIn);
      await knex("tokens").insert({
        id_hash: userCodeKey(userCode as string),
        kind: "UserCode",
        client_id: payload.clientId ?? null,
        payload: JSON.stringify({ deviceCode: deviceCodeKey(id) }),
        expires_at: (payload.exp as number) * 1000,
      });
    },

    async findByUserCode(userCode) {
      const row = await knex("tokens")
        .where({ id_hash: userCodeKey(userCode), kind: "UserCode" })
        .where("expires_at", ">", Date.now())
        .first("payload");
      const payload = row && (await tokens.find(HASHED + JSON.parse(row.payload).deviceCode));
      return payload && { ...payload, userCode };
    },
  };
}

function userCodeKey(userCode: string): string {
  return tokenKey(`user code ${userCode}`);
}
