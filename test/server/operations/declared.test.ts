import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import test from "ava";
import { EVENT_DATA_SCHEMAS } from "../../../resources/events/schemas.ts";
import { commands } from "../../../server/cli/commands/index.ts";
import { managementDocument } from "../../../server/operations/document.ts";
import { OPERATIONS } from "../../../server/operations/index.ts";
import { DASHBOARD_PROBLEMS } from "../../../server/operations/problem-codes.ts";
import { readSettings } from "../../../server/settings/config.ts";
import { publicUrlsOf } from "../../../server/settings/public-urls.ts";
import { ROOT } from "../../harness/program.ts";

const settings = readSettings({});
const document = managementDocument({ settings, urls: publicUrlsOf(settings, 3000) });

/** The files with routes of their own, and why these aren't operations. */
const ROUTES: Record<string, string> = {
  "auth/index.ts": "signing out, which is declared",
  "auth/login.ts": "the sign-in page",
  "auth/password-reset.ts": "pages of a reset link",
  "auth/program-login.ts": "signing in, which is declared",
  "auth/register.ts": "the registration page",
  "auth/second-factors/routes.ts": "the page of a second factor",
  "auth/sso/routes.ts": "redirects to the identity provider",
  "dashboard/account/identities.ts": "a redirect to the identity provider",
  "dashboard/account/second-factors.ts": "pages, one of them shown once, and its download",
  "dashboard/api-access/quick-start.ts": "a page",
  "dashboard/api-access/secrets.ts": "a page shown once",
  "dashboard/connect/routes.ts": "a page",
  "dashboard/forms.ts": "adds the routes of forms",
  "dashboard/links/analytics.ts": "links, as the API has them",
  "dashboard/links/export.ts": "downloads",
  "dashboard/links/list.ts": "links, as the API has them",
  "dashboard/links/routes.ts": "links, as the API has them",
  "dashboard/links/selection.ts": "links, as the API has them",
  "dashboard/operation-routes.ts": "adds the routes of operations",
  "dashboard/organization/app-policy.ts": "a page that asks for an approval",
  "dashboard/organization/audit.ts": "the audit log, with filters and as CSV",
  "dashboard/organization/invitations.ts": "a page shown once",
  "dashboard/organization/member-actions.ts": "a page shown once",
  "dashboard/organization/overview.ts": "what a browser no longer shows",
  "dashboard/organization/plan.ts": "a page that says what a downgrade stops",
  "dashboard/webhooks/deliveries.ts": "webhooks, as the API has them",
  "dashboard/webhooks/routes.ts": "webhooks, as the API has them",
  "dashboard/webhooks/secrets.ts": "webhooks, as the API has them",
};

test("no route of the dashboard is outside of the declarations", (t) => {
  const found = ["auth", "dashboard"].flatMap((folder) =>
    readdirSync(path.join(ROOT, "server", folder), { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts"))
      .map((file) => `${folder}/${file}`)
      .filter((file) => /\brouter\.(get|post|put|patch|delete)\(/.test(source(file))),
  );
  t.deepEqual(found.sort(), Object.keys(ROUTES).sort());
});

function source(file: string): string {
  return readFileSync(path.join(ROOT, "server", file), "utf8");
}

/** Commands that manage the process or the database, or that only the operator has. */
const OTHER_COMMANDS =
  /^(start|init|dev|migrate|upgrade|sweep|backup|copy|doctor|import|listen|conformance|keys \w+|audit \w+|mcp server-json|user [\w-]+|link \w+|grant revoke|org (create|list|show|suspend|resume|delete))$/;

test("no command changes what members change without their declaration", (t) => {
  const declared = new Set(OPERATIONS.flatMap(({ command }) => command?.name ?? []));
  const others = commands.map(({ name }) => name).filter((name) => !declared.has(name));
  t.deepEqual(
    others.filter((name) => !OTHER_COMMANDS.test(name)),
    [],
  );
  t.true(declared.size >= 15);
  for (const name of declared) t.true(commands.some((command) => command.name === name));
});

/** What isn't recorded by operations: signing in, the authorization server, links, webhooks and the operator. */
const OTHER_EVENTS =
  /^(link|links|webhook|token|operator)\.|^member\.(signed_in|sign_in_|second_factor_failed|second_factors_reset|reauthenticated|logged_out|disabled|enabled|identity_linked|password_changed|recovery_code_used|added)|^authorization\.granted|^client\.secret_leaked|^organization\.(suspended|resumed)|^audit_log\.exported/;

test("every entry of the audit log is declared by an operation, or isn't one", (t) => {
  const declared = new Set(OPERATIONS.flatMap(({ events = [] }) => events as string[]));
  const missing = Object.keys(EVENT_DATA_SCHEMAS).filter(
    (type) => !declared.has(type) && !OTHER_EVENTS.test(type),
  );
  t.deepEqual(missing, []);
});

/** The codes that only pages answer with. */
const OF_PAGES = ["browser_required", "provider_unavailable"];

test("every error code of the dashboard is in the document", (t) => {
  const text = JSON.stringify(document);
  const missing = Object.keys(DASHBOARD_PROBLEMS).filter((code) => !text.includes(`"${code}"`));
  t.deepEqual(missing.sort(), OF_PAGES);
});

test("no two operations have the same confirmation under different names", (t) => {
  const keys = new Map<string, string>();
  for (const { done = {} } of OPERATIONS)
    for (const [key, sentence] of Object.entries(done)) {
      t.true(!keys.has(key) || keys.get(key) === sentence, key);
      keys.set(key, sentence);
    }
});
