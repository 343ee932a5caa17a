import { execFileSync } from "node:child_process";
import test, { type ExecutionContext } from "ava";
import type { Membership } from "../../adapters/organizations/store.ts";
import { validateRedirectUris } from "../../server/clients/redirect-uris.ts";
import type { Conditions, Guide } from "../../server/dashboard/connect/guides.ts";
import { acceptanceOf, guideOf, HOSTS } from "../../server/dashboard/connect/guides.ts";
import { readSettings } from "../../server/settings/config.ts";

const MCP_URL = "https://mcp.example.com/tools/mcp";
const CLIENT_ID = "lgc_example";

/** Returns the guides of an organization that allows any client, at a server that accepts any. */
function guidesOf({ role = "owner", ...changes }: Partial<Conditions & Pick<Membership, "role">> = {}) {
  const { CIMD, DYNAMIC_REGISTRATION } = readSettings({ CIMD: "any", DYNAMIC_REGISTRATION: "stateless" });
  const open = { plan: "growth", allowed: "any", requiresDpop: false, isLocal: false } as const;
  const conditions: Conditions = { CIMD, DYNAMIC_REGISTRATION, ...open, ...changes };
  const membership = { id: "org_1", name: "Acme", plan: conditions.plan, role } as Membership;
  const options = { membership, conditions, mcpUrl: MCP_URL, clientId: CLIENT_ID };
  const guides = HOSTS.map((host) => guideOf(host, options));
  return { conditions, guides, of: (id: string) => guides.find((one) => one.id === id) as Guide };
}

/** A host that can't connect says why, and has nothing to paste. */
function hasReason(t: ExecutionContext, guide: Guide, reason: string | null): void {
  const { id, available, steps, detail } = guide;
  t.is(guide.reason, reason as Guide["reason"], id);
  t.deepEqual([available, steps.length > 0, detail === null], Array(3).fill(reason === null), id);
}

type Case = [
  server: "off" | "known" | "any",
  allowed: Conditions["allowed"],
  /** Why a known host is refused for its document, and one that registers itself, if the server lets it. */
  known: string | null,
  registering: string | null,
  /** Why an unknown client is refused without and with registration. */
  other: string | null,
  otherRegistering: string | null,
];
const OFF = "documents_disabled";
const UNKNOWN = "unknown_client";
const REFUSED = "not_allowed";

const CASES: Case[] = [
  ["off", "known", OFF, null, UNKNOWN, null],
  ["off", "any", OFF, null, UNKNOWN, null],
  ["off", "none", OFF, REFUSED, UNKNOWN, REFUSED],
  ["known", "known", null, null, UNKNOWN, null],
  ["known", "any", null, null, UNKNOWN, null],
  ["known", "none", REFUSED, REFUSED, UNKNOWN, REFUSED],
  ["any", "known", null, null, REFUSED, null],
  ["any", "any", null, null, null, null],
  ["any", "none", REFUSED, REFUSED, REFUSED, REFUSED],
];

for (const [server, allowed, known, registering, other, otherRegistering] of CASES)
  test(`with CIMD=${server}, an organization that allows ${allowed} sees which hosts are accepted`, (t) => {
    for (const registration of ["off", "stateless"]) {
      const settings = readSettings({ CIMD: server, DYNAMIC_REGISTRATION: registration });
      const { CIMD, DYNAMIC_REGISTRATION } = settings;
      const { conditions, guides } = guidesOf({ CIMD, DYNAMIC_REGISTRATION, allowed });
      const mayRegister = registration === "stateless";
      const accepted = acceptanceOf(conditions);
      t.is(accepted.knownDocument === undefined, known === null);
      t.is(accepted.otherDocument === undefined, server === "any" && allowed === "any");
      t.is(accepted.registration === undefined, mayRegister && registering === null);
      const reasons: Record<string, string | null> = {
        cursor: mayRegister ? registering : "registration_disabled",
        gemini: mayRegister ? registering : "registration_disabled",
        vscode: mayRegister ? registering : known, // registers itself if it can
        other: mayRegister ? otherRegistering : other,
      };
      for (const guide of guides)
        hasReason(t, guide, guide.id in reasons ? (reasons[guide.id] ?? null) : known);
    }
  });

test("hosts that connect from their vendor’s servers don’t reach a server on localhost", (t) => {
  const { of } = guidesOf({ isLocal: true });
  for (const id of ["claude", "chatgpt"]) {
    hasReason(t, of(id), "local_server");
    t.is(of(id).own_client, null, "a client ID and secret would not help");
  }
  hasReason(t, of("claude-code"), null);
});

test("a required DPoP proof, or the Free plan, leaves hosts without steps", (t) => {
  const [bound, free] = [guidesOf({ requiresDpop: true }).guides, guidesOf({ plan: "free" }).guides];
  for (const guide of bound) hasReason(t, guide, guide.id === "other" ? null : "dpop_required");
  for (const guide of free) hasReason(t, guide, "plan_required");
  for (const { own_client } of [...bound, ...free]) t.is(own_client, null, "a client would not help");
});

const { guides, of } = guidesOf();
const codeOf = (id: string, pattern = /./) =>
  of(id).steps.find(({ code }) => code && pattern.test(code))?.code ?? "";
const linkOf = (id: string) => new URL(of(id).steps.find(({ link }) => link)?.link?.href ?? "");

test("every host has something to paste or open, which names the MCP server’s URL", (t) => {
  t.is(guides.length, 12);
  for (const { name, steps } of guides) {
    const pasted = steps.flatMap(({ code = "", link }) => [code, link?.href ?? ""]).join("\n");
    t.true(pasted.includes(MCP_URL), name);
    t.notRegex(pasted, /localhost|client-id/, name);
  }
});

test("a host gets the URL, or the command that adds the MCP server", (t) => {
  for (const id of ["claude", "chatgpt", "other"]) t.is(codeOf(id, /^https:/), MCP_URL);
  const printed = codeOf("vscode", /^code /).replace(/^code /, "printf '%s\\n' ");
  const [option, json = ""] = execFileSync("sh", ["-c", printed], { encoding: "utf8" }).trim().split("\n");
  t.is(option, "--add-mcp");
  t.deepEqual(JSON.parse(json), { name: "linkgate", type: "http", url: MCP_URL });
});

test("the links that install the server, and the configuration files, have its URL", (t) => {
  const vscode = linkOf("vscode");
  t.is(vscode.protocol + vscode.pathname, "vscode:mcp/install");
  const installed = { name: "linkgate", type: "http", url: MCP_URL };
  t.deepEqual(JSON.parse(decodeURIComponent(vscode.search.slice(1))), installed);
  const cursor = linkOf("cursor");
  t.true(cursor.href.startsWith("cursor://anysphere.cursor-deeplink/mcp/install?name=linkgate&"));
  const config = Buffer.from(cursor.searchParams.get("config") ?? "", "base64").toString();
  t.deepEqual(JSON.parse(config), { url: MCP_URL });
  t.like(Object.fromEntries(linkOf("goose").searchParams), { url: MCP_URL, type: "streamable_http" });
  t.deepEqual(JSON.parse(codeOf("cursor")), { mcpServers: { linkgate: { url: MCP_URL } } });
  t.deepEqual(JSON.parse(codeOf("zed")), { context_servers: { linkgate: { url: MCP_URL } } });
  const { type, url } = installed;
  t.deepEqual(JSON.parse(codeOf("other", /^\{/)), { mcpServers: { linkgate: { type, url } } });
});

test("hosts that take a client ID and secret can use the organization’s client, but members don't see it", (t) => {
  const CIMD = readSettings({ CIMD: "off" }).CIMD;
  const closed = { CIMD, DYNAMIC_REGISTRATION: "off" as const };
  const { guides, of } = guidesOf(closed);
  const withClient = guides.filter(({ own_client }) => own_client);
  t.is(withClient.map(({ id }) => id).join(), "claude,claude-code,cursor,vscode,gemini");
  for (const { own_client, id } of withClient) {
    t.true(JSON.stringify(own_client).includes(CLIENT_ID), id);
    t.deepEqual(validateRedirectUris([own_client?.redirect_uri ?? ""]), [], id);
  }
  const fileOf = (id: string) =>
    JSON.parse(of(id).own_client?.steps.find(({ code }) => code?.startsWith("{"))?.code ?? "").mcpServers
      .linkgate;
  const auth = { CLIENT_ID, CLIENT_SECRET: `\${env:LINKGATE_CLIENT_SECRET}` };
  t.like(fileOf("cursor"), { url: MCP_URL, auth });
  const oauth = { clientId: CLIENT_ID, clientSecret: "$LINKGATE_CLIENT_SECRET" };
  t.like(fileOf("gemini"), { httpUrl: MCP_URL, oauth });
  for (const { own_client } of guidesOf({ ...closed, role: "member" }).guides) t.is(own_client, null);
});
