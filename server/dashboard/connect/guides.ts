import type { Tokens } from "marked";
import type { AllowedClients } from "../../../adapters/oauth/app-policy.ts";
import type { Membership } from "../../../adapters/organizations/store.ts";
import { isPaid, type Plan } from "../../../resources/plans.ts";
import { pageReader } from "../../docs/guides.ts";
import type { Settings } from "../../settings/config.ts";
import { isManager } from "../../ui/dashboard-layout.ts";

/** An AI client that connects to the MCP server. `docs/mcp.md` has the steps of its user and its redirect URI, under its name. */
type Host = {
  /** The value of `host` in the URL of its tab. */
  id: string;
  name: string;
  /** `registration or document` registers if the server offers that. */
  identity: "document" | "registration" | "registration or document" | "any";
  /** It connects from its vendor's servers instead of the user's computer. */
  isHosted?: true;
  installLink?: (mcpUrl: string) => string;
};

export const HOSTS: readonly Host[] = [
  { id: "claude", name: "Claude", identity: "document", isHosted: true },
  { id: "claude-code", name: "Claude Code", identity: "document" },
  { id: "chatgpt", name: "ChatGPT", identity: "document", isHosted: true },
  { id: "cursor", name: "Cursor", identity: "registration", installLink: cursorLink },
  { id: "vscode", name: "VS Code", identity: "registration or document", installLink: vscodeLink },
  { id: "codex", name: "Codex", identity: "document" },
  { id: "copilot", name: "GitHub Copilot CLI", identity: "document" },
  { id: "gemini", name: "Gemini CLI", identity: "registration" },
  { id: "zed", name: "Zed", identity: "document" },
  { id: "opencode", name: "OpenCode", identity: "document" },
  { id: "goose", name: "Goose", identity: "document", installLink: gooseLink },
  { id: "other", name: "Other clients", identity: "any" },
];

/** https://cursor.com/docs/mcp/install-links */
function cursorLink(url: string): string {
  const config = Buffer.from(JSON.stringify({ url })).toString("base64");
  return `cursor://anysphere.cursor-deeplink/mcp/install?${new URLSearchParams({ name: "linkgate", config })}`;
}

/** https://code.visualstudio.com/api/extension-guides/ai/mcp */
function vscodeLink(url: string): string {
  return `vscode:mcp/install?${encodeURIComponent(JSON.stringify({ name: "linkgate", type: "http", url }))}`;
}

function gooseLink(url: string): string {
  return `goose://extension?url=${encodeURIComponent(url)}&type=streamable_http&id=linkgate&name=linkgate&description=Short%20links%20and%20their%20clicks`;
}

export type Conditions = Pick<Settings, "CIMD" | "DYNAMIC_REGISTRATION"> & {
  plan: Plan;
  allowed: AllowedClients;
  requiresDpop: boolean;
  isLocal: boolean;
};

/** Why the server or the organization doesn't accept a kind of app. */
export type Refusal = "documents_disabled" | "registration_disabled" | "not_allowed";

type Obstacle = Refusal | "plan_required" | "local_server" | "dpop_required" | "unknown_client";

/** Each kind of app, and why it isn't accepted; undefined if it is. */
export type Acceptance = Record<"knownDocument" | "otherDocument" | "registration", Refusal | undefined>;

export function acceptanceOf({ CIMD, DYNAMIC_REGISTRATION, allowed }: Conditions): Acceptance {
  const allowsKnown = allowed === "none" ? "not_allowed" : undefined;
  const allowsAny = allowed === "any" ? undefined : "not_allowed";
  return {
    knownDocument: CIMD.accepted === "off" ? "documents_disabled" : allowsKnown,
    otherDocument: CIMD.accepted === "any" ? allowsAny : "documents_disabled",
    // Those of the hosts and other apps on the user's computer count as known.
    registration: DYNAMIC_REGISTRATION === "off" ? "registration_disabled" : allowsKnown,
  };
}

function obstacleOf({ identity, isHosted }: Host, conditions: Conditions): Obstacle | undefined {
  if (!isPaid(conditions.plan)) return "plan_required";
  if (isHosted && conditions.isLocal) return "local_server";
  // None of the hosts in the list sends proofs; another client may.
  if (identity !== "any" && conditions.requiresDpop) return "dpop_required";
  const { knownDocument, otherDocument, registration } = acceptanceOf(conditions);
  switch (identity) {
    case "document":
      return knownDocument;
    case "registration":
      return registration;
    case "registration or document":
      return registration === "registration_disabled" ? knownDocument : registration;
    case "any":
      if (!registration || !otherDocument) return undefined;
      return [registration, otherDocument].includes("not_allowed") ? "not_allowed" : "unknown_client";
  }
}

/** Why a host can't connect: in a few words that follow its name, and with what would change it; backticks mark code. */
export const REASONS: Record<Obstacle, [short: string, detail: string]> = {
  plan_required: ["a paid plan is required", "Connecting AI clients requires the Growth or Premium plan."],
  local_server: [
    "this server has no public https address",
    "This client connects from its vendor’s servers, which can’t reach a server on localhost. The server’s operator can set `BASE_URL` to a public https URL.",
  ],
  dpop_required: [
    "{organization} requires DPoP",
    "{organization} requires DPoP, which this client isn’t known to support. An owner can change that under API access.",
  ],
  documents_disabled: [
    "not accepted by this server",
    "This client identifies itself by a metadata document, which this server doesn’t accept. The server’s operator can change that with the setting `CIMD`.",
  ],
  not_allowed: [
    "not allowed by {organization}",
    "{organization} doesn’t allow this client. An owner or admin can change that in the settings.",
  ],
  registration_disabled: [
    "not accepted by this server",
    "This client registers itself with the server, and registration is off. The server’s operator can turn it on with the setting `DYNAMIC_REGISTRATION=stateless`.",
  ],
  unknown_client: [
    "not accepted by this server",
    "This server accepts known AI clients only. The server’s operator can add the metadata document of another one to the setting `CIMD`, or let clients register themselves with `DYNAMIC_REGISTRATION=stateless`.",
  ],
};

/** The obstacles that the organization's own client avoids. */
const CLIENT_HELPS = new Set<Obstacle>(["documents_disabled", "not_allowed", "registration_disabled"]);

/** How to connect a host to an organization, as programs get it. Without steps, no sign-in of a user connects the host. */
export type Guide = Pick<Host, "id" | "name"> & {
  available: boolean;
  reason: Obstacle | null;
  detail: string | null;
  steps: Step[];
  /** How to connect with the organization's client ID and secret instead; for managers only. */
  own_client: { redirect_uri: string; steps: Step[] } | null;
};

type Options = {
  membership: Membership;
  conditions: Conditions;
  mcpUrl: string;
  /** The organization's client, if it has a secret. */
  clientId: string | undefined;
};

export function guideOf(host: Host, { membership, conditions, mcpUrl, clientId }: Options): Guide {
  const { id, name } = host;
  const reason = obstacleOf(host, conditions) ?? null;
  if (!reason) {
    const steps = stepsOf(host, mcpUrl);
    return { id, name, available: true, reason, detail: null, steps, own_client: null };
  }
  const detail = REASONS[reason][1].replace("{organization}", () => membership.name);
  const redirect_uri = CLIENT_HELPS.has(reason) && isManager(membership) && redirectUriOf(host);
  const own_client =
    redirect_uri && clientId ? { redirect_uri, steps: stepsOf(host, mcpUrl, clientId) } : null;
  return { id, name, available: false, reason, detail, steps: [], own_client };
}

/** One step of a guide: an instruction, in which backticks mark code, with text to copy or a link to open. */
export type Step = { text: string; code?: string; link?: { text: string; href: string } };

const readDocument = pageReader("mcp.md");

/** Reads the steps of a host, or those with the organization's own client, from the documentation. */
export function stepsOf({ name, installLink }: Host, mcpUrl: string, clientId?: string): Step[] {
  const section = readDocument(clientId === undefined ? name : `${name} with a client ID`);
  const list = section.find((token) => token.type === "list") as Tokens.List;
  return list.items.map(({ tokens }) => {
    const [instruction, detail] = tokens.filter(({ type }) => type !== "space");
    // The dashboard has typographic apostrophes, and nothing in bold.
    const text = String(instruction?.raw).trim().replaceAll("**", "").replaceAll("'", "’");
    if (detail?.type === "code")
      return { text, code: fill((detail as Tokens.Code).text, mcpUrl, clientId ?? "") };
    const [label] = (detail as Tokens.Paragraph | undefined)?.tokens ?? [];
    if (!label) return { text };
    const href = label.type === "link" ? label.href : installLink?.(mcpUrl);
    return { text, link: { text: (label as Tokens.Link | Tokens.Strong).text, href } };
  });
}

/** Returns the redirect URI of a host that accepts a client ID and secret. */
function redirectUriOf({ name }: Host): string | undefined {
  const table = readDocument("The organization's own client").find(({ type }) => type === "table");
  const row = (table as Tokens.Table).rows.find(([client]) => client?.text === name);
  return row?.[1]?.text.replaceAll("`", "");
}

/** Replaces the address and the client ID of the documentation. */
function fill(code: string, mcpUrl: string, clientId: string): string {
  return code.replaceAll("http://localhost:3000/mcp", () => mcpUrl).replaceAll("<client-id>", () => clientId);
}
