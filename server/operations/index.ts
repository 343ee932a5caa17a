import * as account from "./account.ts";
import * as accountApps from "./account-apps.ts";
import * as apps from "./apps.ts";
import * as client from "./client.ts";
import * as keys from "./client-keys.ts";
import * as secrets from "./client-secrets.ts";
import * as email from "./email.ts";
import * as invitations from "./invitations.ts";
import * as members from "./members.ts";
import * as notices from "./notices.ts";
import { type Method, methodOf, type Operation, pathOf } from "./operation.ts";
import * as organizations from "./organizations.ts";
import * as redirectUris from "./redirect-uris.ts";
import * as secondFactors from "./second-factors.ts";
import * as sessions from "./sessions.ts";
import * as signIn from "./sign-in.ts";
import * as trustRules from "./trust-rules.ts";

const METHODS: Method[] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/** Every operation of the management API, by subject and path, as the documentation and the command's help list them. */
export const OPERATIONS: readonly Operation[] = [
  organizations,
  members,
  invitations,
  client,
  secrets,
  keys,
  redirectUris,
  trustRules,
  apps,
  account,
  sessions,
  accountApps,
  secondFactors,
  email,
  notices,
  signIn,
].flatMap((subject) => Object.values<unknown>(subject).filter(isOperation).sort(byAddress));

function isOperation(value: unknown): value is Operation {
  return typeof value === "object" && value !== null && "at" in value;
}

/** A module lists its exports by name. */
function byAddress(one: Operation, other: Operation): number {
  const [path, otherPath] = [pathOf(one), pathOf(other)];
  if (path === otherPath) return METHODS.indexOf(methodOf(one)) - METHODS.indexOf(methodOf(other));
  return path < otherPath ? -1 : 1;
}

/** What pages say after a change: the value of `done` in the URL → the sentence. */
export const CONFIRMATIONS: Readonly<Record<string, string>> = Object.assign(
  {},
  ...OPERATIONS.map(({ done }) => done),
);
