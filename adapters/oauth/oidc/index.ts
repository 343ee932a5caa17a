import type { Adapter } from "oidc-provider";
import type { Database } from "../../database/index.ts";
import type { Outbox } from "../../events/outbox.ts";
import type { AppPolicyCheck } from "../app-policy.ts";
import type { ClientStore } from "../clients.ts";
import type { GrantUseRecorder } from "../grant-use-recorder.ts";
import { clientAdapter } from "./clients.ts";
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
  };
  return (model) => ({
    ...unsupported(model),
    ...(adapters[model]?.() ?? tokenAdapter(model)),
  });
}

function unsupported(model: string): Adapter {
  const reject = () => Promise.reject(new TypeError(`this operation is not supported for ${model}`));
  return {
    upsert: reject,
    find: reject,
    findByUid: reject,
    findByUserCode: reject,
    consume: reject,
    destroy: reject,
    // A revoked grant invalidates its tokens, and oidc-provider also revokes the grant itself: nothing is left to do.
    revokeByGrantId: async () => {},
  };
}
