import type { Adapter } from "oidc-provider";
import type { Database } from "../../database/index.ts";
import type { Outbox } from "../../events/outbox.ts";
import type { ClientPolicy } from "../client-policy.ts";
import type { ClientStore } from "../clients.ts";
import type { GrantUsage } from "../grant-usage.ts";
import { clientAdapter } from "./clients.ts";
import { grantAdapter } from "./grants.ts";
import { interactionAdapter } from "./interactions.ts";
import type { ModelAdapter } from "./model.ts";
import { sessionAdapter } from "./sessions.ts";
import { type TokenStatements, tokenAdapter, tokenStatements } from "./tokens.ts";

/**
 * Implements oidc-provider's storage contract: returns the adapter of a model by name. The library reads before it
 * writes; the adapters settle the resulting races with a single conditional UPDATE and throw for the loser.
 */
export function createOidcAdapter(
  database: Database,
  clients: ClientStore,
  outbox: Outbox,
  usage: GrantUsage,
  clientPolicy: ClientPolicy,
): (model: string) => Adapter {
  const tokens = tokenStatements(database);
  const dependencies = { database, clients, tokens, outbox, usage, clientPolicy };
  return (model) => ({
    ...unsupported(model),
    ...adapterOf(model, dependencies),
  });
}

type Dependencies = {
  database: Database;
  clients: ClientStore;
  tokens: TokenStatements;
  outbox: Outbox;
  usage: GrantUsage;
  clientPolicy: ClientPolicy;
};

function adapterOf(model: string, dependencies: Dependencies): ModelAdapter {
  const { database, clients, tokens, outbox } = dependencies;
  switch (model) {
    case "Client":
      return clientAdapter(clients);
    case "Grant":
      return grantAdapter(database, outbox);
    case "Session":
      return sessionAdapter(database);
    case "Interaction":
      return interactionAdapter(database);
    default:
      return tokenAdapter(tokens, dependencies, model);
  }
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
    // A revoked grant invalidates its tokens, and the library also revokes the grant itself: nothing is left to do.
    revokeByGrantId: async () => {},
  };
}
