import * as account from "./account.ts";
import * as accountApps from "./account-apps.ts";
import * as apps from "./apps.ts";
import * as auditLog from "./audit-log.ts";
import * as client from "./client.ts";
import * as keys from "./client-keys.ts";
import * as secrets from "./client-secrets.ts";
import * as email from "./email.ts";
import * as invitations from "./invitations.ts";
import * as members from "./members.ts";
import * as notices from "./notices.ts";
import { type Method, methodOf, type Operation, type OperatorOperation, pathOf } from "./operation.ts";
import * as operatorLinks from "./operator-links.ts";
import * as operatorOrganizations from "./operator-organizations.ts";
import * as operatorUsers from "./operator-users.ts";
import * as organizations from "./organizations.ts";
import * as redirectUris from "./redirect-uris.ts";
import * as secondFactors from "./second-factors.ts";
import * as sessions from "./sessions.ts";
import * as signIn from "./sign-in.ts";
import * as trustRules from "./trust-rules.ts";

const METHODS: Method[] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/** What the pages of the documentation group operations by, with the files that declare them. */
const SUBJECTS: Record<string, { meaning: string; files: Record<string, unknown>[] }> = {
  Organizations: {
    meaning: "Organizations, their plans and settings.",
    files: [operatorOrganizations, organizations],
  },
  Members: { meaning: "Members of an organization, and invitations.", files: [members, invitations] },
  Client: {
    meaning: "The OAuth client of an organization: its secrets, keys and redirect URIs.",
    files: [client, secrets, keys, redirectUris],
  },
  "Workload identity": { meaning: "Trust rules for CI jobs and clusters.", files: [trustRules] },
  Apps: { meaning: "Apps that members have authorized, and which they may authorize.", files: [apps] },
  Account: {
    meaning: "Your own account.",
    files: [account, sessions, accountApps, secondFactors, email, notices],
  },
  "Sign-in": { meaning: "Sessions and first-party tokens.", files: [signIn] },
  Users: { meaning: "Users of the service.", files: [operatorUsers] },
  Links: { meaning: "Links of any organization.", files: [operatorLinks] },
  "Audit log": { meaning: "What was done in an organization, when and by whom.", files: [auditLog] },
};

type Named = { id: string; tag: string };
export type NamedOperation = Operation & Named;
type Declared = NamedOperation | (OperatorOperation & Named);

/** Everything that is declared, by subject and path. The operationId is the name of the export. */
export const DECLARATIONS: readonly Declared[] = Object.entries(SUBJECTS).flatMap(([tag, { files }]) =>
  files.flatMap((file) =>
    Object.entries(file)
      .flatMap(([id, value]) => (isDeclaration(value) ? [{ ...value, id, tag }] : []))
      .sort(byAddress),
  ),
);

/** Every operation of the management API, as the documentation lists them. */
export const OPERATIONS = DECLARATIONS.filter((declared) => declared.at !== undefined);

/** The meaning of each tag of operations. */
export const TAGS = Object.fromEntries(OPERATIONS.map(({ tag }) => [tag, SUBJECTS[tag]?.meaning ?? ""]));

function isDeclaration(value: unknown): value is Operation | OperatorOperation {
  return typeof value === "object" && value !== null && "summary" in value;
}

/** A module lists its exports by name. */
function byAddress(one: Declared, other: Declared): number {
  if (!one.at || !other.at) return 0;
  const [path, otherPath] = [pathOf(one), pathOf(other)];
  if (path === otherPath) return METHODS.indexOf(methodOf(one)) - METHODS.indexOf(methodOf(other));
  return path < otherPath ? -1 : 1;
}

/** What pages say after a change: the value of `done` in the URL → the sentence. */
export const CONFIRMATIONS: Readonly<Record<string, string>> = Object.assign(
  {},
  ...OPERATIONS.map(({ done }) => done),
);
