import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import test from "ava";
import { AUDIT_EVENTS, WEBHOOK_EVENTS } from "../../resources/events/delivered-events.ts";
import { EVENT_DATA_SCHEMAS } from "../../resources/events/schemas.ts";
import type { EventType } from "../../resources/events/types.ts";
import { PROBLEM_CODES } from "../../resources/http/problem-codes.ts";
import { commands } from "../../server/cli/commands/index.ts";
import { summaryOf } from "../../server/operations/audit-sentences.ts";
import { managementDocument } from "../../server/operations/document.ts";
import { DECLARATIONS, OPERATIONS } from "../../server/operations/index.ts";
import { DASHBOARD_PROBLEMS } from "../../server/operations/problem-codes.ts";
import { readSettings } from "../../server/settings/config.ts";
import { publicUrlsOf } from "../../server/settings/public-urls.ts";
import { ROOT } from "../harness/program.ts";
import { words } from "../harness/words.ts";

const settings = readSettings({});
const document = JSON.stringify(managementDocument({ settings, urls: publicUrlsOf(settings, 3000) }));

/** The sources of what members use: path → text. */
const SOURCES = Object.fromEntries(
  ["auth", "dashboard", "operations"].flatMap((folder) =>
    readdirSync(path.join(ROOT, "server", folder), { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts"))
      .map((file) => [`${folder}/${file}`, readFileSync(path.join(ROOT, "server", folder, file), "utf8")]),
  ),
);
const filesWith = (pattern: RegExp) =>
  Object.entries(SOURCES)
    .flatMap(([file, text]) => (pattern.test(text) ? file.slice(0, -3) : []))
    .sort();

/** The files with routes of their own, by the reason why these aren't operations. */
const ROUTES: Record<string, string[]> = {
  "signing in and out, with its pages": words(`
    auth/index auth/login auth/password-reset auth/program-login auth/register auth/second-factors/routes`),
  "redirects to the identity provider": ["auth/sso/routes", "dashboard/account/account"],
  "the routes of forms and operations": ["dashboard/forms", "dashboard/operation-routes"],
  "links, domains and webhooks, as the API has them": words(`
    dashboard/domains/routes dashboard/links/analytics dashboard/links/list dashboard/links/routes dashboard/links/selection
    dashboard/webhooks/deliveries dashboard/webhooks/routes dashboard/webhooks/secrets`),
  "what is shown once": words(`
    dashboard/account/second-factors dashboard/api-access/secrets dashboard/index
    dashboard/organization/invitations dashboard/organization/members`),
  "other pages and downloads": words(`
    dashboard/api-access/quick-start dashboard/connect/routes dashboard/links/export
    dashboard/organization/app-policy dashboard/organization/overview dashboard/organization/plan`),
};

test("no route of the dashboard is outside of the declarations", (t) => {
  const found = filesWith(/\brouter\.(get|post|put|patch|delete|all|register)\(/);
  t.deepEqual(found, Object.values(ROUTES).flat().sort());
});

test("each declared operation of a member is served", (t) => {
  const served = Object.values(SOURCES).join("\n");
  // Signing out is served with the pages of sign-in.
  for (const { id, run } of OPERATIONS)
    if (run && id !== "logOut")
      t.true(new RegExp(`add(Operation|OperationPage|Reading|Tab)\\([^)]*\\b${id}\\b`).test(served), id);
});

/** The files with forms that aren't of an operation: links, domains and webhooks have those of the API. */
const FORMS = words(`
  dashboard/domains/routes dashboard/forms dashboard/links/import dashboard/links/routes dashboard/operation-routes
  dashboard/webhooks/deliveries dashboard/webhooks/form dashboard/webhooks/secrets`);

test("no form of the dashboard is outside of the declarations", (t) => {
  t.deepEqual(filesWith(/\badd(Form|Change)\(/), FORMS);
});

/** The commands that aren't declared, by what they are about. */
const BY_HAND: Record<string, string[]> = {
  "the process": ["start", "dev", "doctor"],
  "the database as a whole": ["migrate", "sweep", "backup", "copy", "upgrade", "audit verify", "audit head"],
  "the keys and addresses of the service": ["keys list", "keys rotate", "keys prune", "mcp server-json"],
  "files: of settings, and of links with progress": ["init", "import"],
  "the commands themselves": ["audit operator"],
  "a client of a running server": words(`listen conformance login logout whoami`),
  "the API of a running server": words(`get list create update delete`).map((verb) => `links ${verb}`),
};

test("no command is outside of the declarations, except those about the process and the database", (t) => {
  const declared = new Set(DECLARATIONS.flatMap(({ command }) => command?.name ?? []));
  const others = commands.map(({ name }) => name).filter((name) => !declared.has(name));
  t.deepEqual(others.sort(), Object.values(BY_HAND).flat().sort());
  for (const name of declared) t.true(commands.some((command) => command.name === name));
});

/** What records the events that no operation declares. */
const OTHER_EVENTS: Record<string, RegExp> = {
  "links, domains and webhooks, as the API has them":
    /^(link\.(created|updated|deleted|clicked)|links|domain|webhook)\b/,
  "signing in": /^member\.(reauthenticated|identity_linked|signed_in|sign_in_\w+|second_factor_failed)$/,
  "the authorization server": /^(authorization\.granted|client\.secret_leaked|token\.leaked)$/,
  "every command that changes something": /^operator\./,
};

test("every entry of the audit log is declared by an operation or recorded elsewhere, and has a sentence", (t) => {
  const declared = new Set(DECLARATIONS.flatMap(({ events = [] }) => events as string[]));
  const types = Object.keys(EVENT_DATA_SCHEMAS) as EventType[];
  const patterns = Object.values(OTHER_EVENTS);
  for (const type of types) t.true(declared.has(type) || patterns.some((one) => one.test(type)), type);
  for (const pattern of patterns) t.true(types.some((type) => pattern.test(type)));
  const entry = { data: { scopes: [] }, actor: "usr_1", names: new Map() };
  for (const type of [...AUDIT_EVENTS, ...WEBHOOK_EVENTS])
    if (type !== "link.clicked" && type !== "webhook.test")
      t.not(summaryOf({ ...entry, type } as never), type);
});

/** The codes that only pages answer with. */
const OF_PAGES = ["browser_required", "provider_unavailable"];

test("every error code of the dashboard is in the document", (t) => {
  const missing = Object.keys(DASHBOARD_PROBLEMS).filter((code) => !document.includes(`"${code}"`));
  t.deepEqual(missing.sort(), OF_PAGES);
});

test("every error code that is thrown is declared, or names a field", (t) => {
  const known = { ...PROBLEM_CODES, ...DASHBOARD_PROBLEMS };
  const refused = new Set(DECLARATIONS.flatMap(({ refuses = [] }) => refuses as string[]));
  for (const [file, text] of Object.entries(SOURCES))
    for (const [, code = ""] of text.matchAll(/(?:Problem\(|retryLater\(|refusal\()(?:\d+,\s*)?"(\w+)"/g)) {
      t.true(code in known || /^invalid_/.test(code), `${file}: ${code}`);
      if (file.startsWith("operations/") && code in DASHBOARD_PROBLEMS)
        t.true(refused.has(code) || code === "role_required", `no operation refuses with ${code}`);
    }
});

test("no two operations have the same confirmation under different names", (t) => {
  const keys = new Map<string, string>();
  for (const { done = {} } of OPERATIONS)
    for (const [key, sentence] of Object.entries(done)) {
      t.true(!keys.has(key) || keys.get(key) === sentence, key);
      keys.set(key, sentence);
    }
});
