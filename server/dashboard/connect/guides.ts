import type { Membership } from "../../../adapters/organizations/store.ts";
import { isManager } from "../../ui/dashboard-layout.ts";
import { type Conditions, explain, type Obstacle, obstacleOf } from "./acceptance.ts";
import { HOSTS, type Host } from "./hosts.ts";
import { type Step, toSteps } from "./steps.ts";

/** How to connect a host to an organization; without steps, the host can't connect by a user's sign-in. */
export type Guide = Pick<Host, "id" | "name"> & {
  obstacle: { code: Obstacle; detail: string } | null;
  steps: Step[];
  /** How to connect with the organization's client ID and secret instead; for managers only. */
  ownClient: { redirectUri: string; steps: Step[] } | null;
};

type Options = {
  membership: Membership;
  conditions: Conditions;
  mcpUrl: string;
  /** The organization's client, if it has a secret. */
  clientId: string | undefined;
};

/** Returns a guide for each host. */
export function guidesOf(options: Options): Guide[] {
  return HOSTS.map((host) => guideOf(host, options));
}

function guideOf(host: Host, { membership, conditions, mcpUrl, clientId }: Options): Guide {
  const { id, name, ownClient } = host;
  const code = obstacleOf(host, conditions);
  if (!code) return { id, name, obstacle: null, steps: toSteps(host.steps, mcpUrl), ownClient: null };
  const detail = explain(code, membership.name);
  const mayUseOwnClient = CLIENT_HELPS.has(code) && isManager(membership);
  return {
    id,
    name,
    obstacle: { code, detail },
    steps: [],
    ownClient:
      ownClient && clientId && mayUseOwnClient
        ? { redirectUri: ownClient.redirectUri, steps: toSteps(ownClient.steps, mcpUrl, clientId) }
        : null,
  };
}

/** The obstacles that a client ID and secret avoid. */
const CLIENT_HELPS: ReadonlySet<Obstacle> = new Set([
  "documents_disabled",
  "not_allowed",
  "registration_disabled",
]);
