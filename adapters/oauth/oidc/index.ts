import type { Adapter } from "oidc-provider";
import type { Database } from "../../database/index.ts";
import type { Outbox } from "../../events/outbox.ts";
import type { AppPolicyCheck } from "../app-policy.ts";
import type { ClientStore } from "../clients.ts";
import type { GrantUseRecorder } from "../grant-use-recorder.ts";
import { clientAdapter } from "./clients.ts";
import { deviceCodeAdapter } from "./device-codes.ts";
import { grantAdapter } from "./grants.ts";
import { interactionAdapter } from "./interactions.ts";
import { sessionAdapter } from "./sessions.ts";
import { tokenAdapters } from "./tokens.ts";

/** oidc-provider reads before it writes; a conditional UPDATE settles each race and throws for the loser. */
export function createOidcAdapter(
  database: Database,
  clients: ClientStore,
  outbox: Outbox,
  grantUse: GrantUseRecorder,
  appPolicyCheck: AppPolicyCheck,
): (model: string) => Adapter {
  const tokenAdapter = tokenAdapters(database, grantUse, appPolicyCheck);
  const adapters: Record<string, () => Partial<Adapter>> = {
    Client: () => clientAdapter(clients),
    Grant: () => grantAdapter(database, outbox),
    Session: () => sessionAdapter(database),
    Interaction: () => interactionAdapter(database),
    DeviceCode: () => deviceCodeAdapter(database, tokenAdapter("DeviceCode") as Adapter),
  };
  // A revoked grant invalidates its tokens, and oidc-provider also revokes the grant itself: nothing is left to do.
  const revokeByGrantId = async () => {};
  // It calls no method of a model that the adapter of the model lacks.
  return (model) => ({ revokeByGrantId, ...(adapters[model]?.() ?? tokenAdapter(model)) }) as Adapter;
}
