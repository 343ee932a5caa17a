import { z } from "zod";
import type { ActiveSession } from "../../adapters/accounts/sessions.ts";
import type { Storage } from "../../adapters/index.ts";
import type { Membership } from "../../adapters/organizations/store.ts";
import { Problem } from "../../resources/http/problem.ts";
import { toJson, toTimestamp } from "../../resources/http/to-json.ts";
import { invalidField } from "../../resources/http/validate.ts";
import { describeAuthorizedApp } from "../clients/client-view.ts";
import { validatePassword } from "../credentials/password-rules.ts";
import type { SignedInUser } from "../http/state.ts";
import { onAccount } from "./operation.ts";
import { membershipSchema, membershipToJson } from "./organizations.ts";
import { refusal } from "./problem-codes.ts";
import { appToJson, authorizedAppSchema, timestamp } from "./schemas.ts";

export const ACCOUNT = "/dashboard/account";

export const sessionSchema = z.object({
  id: z.string(),
  means: z.enum(["session", "token"]).describe("Whether a browser or a program signed in."),
  methods: z
    .array(z.string())
    .describe(
      "How: with `password`, `totp`, `recovery_code`, `passkey` or `sso`. Empty if it wasn't recorded.",
    ),
  address: z.string().nullable().describe("The IP address."),
  user_agent: z.string().nullable(),
  created_at: timestamp,
  last_seen_at: timestamp.nullable(),
  current: z.boolean().describe("Whether it is the session that sent the request."),
});

export function sessionToJson(session: ActiveSession, { sessionId }: Pick<SignedInUser, "sessionId">) {
  return toJson(sessionSchema, { ...session, current: session.id === sessionId });
}

const factorSchema = z.object({ created_at: timestamp, last_used_at: timestamp.nullable() });
const passkeySchema = z.object({ id: z.string(), name: z.string(), ...factorSchema.shape });
const identitySchema = z.object({
  issuer: z.string(),
  subject: z.string(),
  label: z.string().nullable(),
  created_at: timestamp,
});
const accountSchema = z.object({
  user: z.object({
    id: z.string(),
    username: z.string(),
    has_password: z.boolean(),
    email: z.string().nullable().describe("The confirmed email address."),
  }),
  organizations: z.array(membershipSchema),
  identities: z
    .array(identitySchema)
    .describe("The identities of the identity provider with which the user may sign in."),
  second_factors: z.object({
    totp: factorSchema.nullable().describe("The authenticator app."),
    passkeys: z.array(passkeySchema),
    recovery_codes_left: z.int(),
  }),
  sessions: z.array(sessionSchema),
});

export type ShownAccount = z.output<typeof accountSchema>;

/** Links and other resources belong to organizations, so they aren't part of an account. */
export async function accountToJson(
  { accounts, identities, secondFactors, sessions }: Storage,
  user: SignedInUser,
  memberships: Membership[],
): Promise<ShownAccount> {
  const { id, username } = user;
  const [account, linked, factors, active] = await Promise.all([
    accounts.find(id),
    identities.listByUser(id),
    secondFactors.find(id),
    sessions.listByUser(id),
  ]);
  return {
    user: {
      id,
      username,
      has_password: account !== undefined && account.passwordHash !== null,
      email: account?.email ?? null,
    },
    organizations: memberships.map(membershipToJson),
    identities: linked.map((identity) => toJson(identitySchema, identity)),
    second_factors: {
      totp: factors.totp ? toJson(factorSchema, factors.totp) : null,
      passkeys: factors.passkeys.map((passkey) => toJson(passkeySchema, passkey)),
      recovery_codes_left: factors.recoveryCodes,
    },
    sessions: active.map((session) => sessionToJson(session, user)),
  };
}

export const getMe = onAccount({
  at: "GET /dashboard/me",
  summary: "Retrieve the user and their organizations",
  output: z.object({
    user: z.object({ id: z.string(), username: z.string() }),
    organizations: z.array(membershipSchema),
  }),
  async run({ storage, user: { id, username } }) {
    const memberships = await storage.organizations.listByUser(id);
    return { user: { id, username }, organizations: memberships.map(membershipToJson) };
  },
});

export const getAccount = onAccount({
  at: `GET ${ACCOUNT}`,
  summary: "Retrieve the account",
  description: "Returns the ways to sign in, the sessions and the organizations of the user.",
  output: accountSchema,
  async run({ storage, user }) {
    return accountToJson(storage, user, await storage.organizations.listByUser(user.id));
  },
});

export const exportAccount = onAccount({
  at: `GET ${ACCOUNT}/export`,
  summary: "Export the data of the account",
  description: "Returns everything that is stored about the user, without the data of organizations.",
  needsRecentSignIn: true,
  file: "linkgate-account.json",
  output: accountSchema.extend({
    exported_at: timestamp,
    apps: z.array(authorizedAppSchema.extend({ organization_id: z.string() })),
  }),
  events: ["member.data_exported"],
  async run({ storage, user }) {
    const { id, actor } = user;
    await storage.memberEvents.record(actor, { userId: id, type: "member.data_exported" });
    const memberships = await storage.organizations.listByUser(id);
    const [account, apps] = await Promise.all([
      accountToJson(storage, user, memberships),
      storage.grants.listByUser(id),
    ]);
    return {
      exported_at: toTimestamp(Date.now()),
      ...account,
      apps: apps.map((app) => ({
        ...appToJson(describeAuthorizedApp(app)),
        organization_id: app.organizationId,
      })),
    };
  },
});

export const changePassword = onAccount({
  at: `POST ${ACCOUNT}/password`,
  summary: "Change the password",
  description:
    "Ends all other sessions, and revokes the apps that the user authorized. Requires a recent sign-in of a user who has a second factor, or no password yet.",
  input: z.strictObject({
    current_password: z.string().optional().describe("Ignored if the user has no password yet."),
    new_password: z.string(),
  }),
  refuses: ["reauthentication_required", "password_reset_required", "busy"],
  events: ["member.password_changed"],
  done: { "password-changed": "Password changed." },
  async run({ storage, user, signIn, input }) {
    const { username, secondFactor, sessionId, actor } = user;
    const currentHash = (await storage.accounts.find(user.id))?.passwordHash ?? null;
    if (currentHash === null || secondFactor !== "none") signIn.requireRecent();
    if (currentHash !== null && !(await signIn.isPassword(input.current_password ?? "")))
      throw wrongPassword("current_password", "Your password was not changed.");
    const organizations = (await storage.organizations.listByUser(user.id)).map(({ name }) => name);
    const error = validatePassword(input.new_password, { username, organizations });
    if (error) throw invalidField("new_password", error);
    const newHash = await signIn.hashPassword(input.new_password);
    // A concurrent password change wins: it may have been made to lock this session out.
    if (!(await storage.accounts.changePassword({ currentHash, newHash }, sessionId, actor)))
      throw wrongPassword("current_password", "Your password was not changed.");
    await signIn.renew();
    await signIn.rememberDevice();
  },
});

export const deleteAccount = onAccount({
  at: `DELETE ${ACCOUNT}`,
  summary: "Delete the account",
  description:
    "Also deletes organizations that have no other member; their short links stop working. Requires a recent sign-in, or the password of a user without a second factor.",
  input: z.strictObject({ password: z.string().optional() }),
  refuses: [
    "reauthentication_required",
    "invalid_current_password",
    "password_reset_required",
    "busy",
    "last_owner",
  ],
  events: ["member.removed", "organization.deleted"],
  async run({ storage, user, signIn, input }) {
    const { id, actor, secondFactor } = user;
    if (!input.password || secondFactor !== "none") signIn.requireRecent();
    if (input.password && !(await signIn.isPassword(input.password)))
      throw wrongPassword("password", "Your account was not deleted.");
    const deletion = await storage.accountDeletions.deleteAccount(id, actor);
    if ("blockedBy" in deletion) throw lastOwner(deletion.blockedBy);
    await signIn.end();
  },
});

function wrongPassword(field: string, effect: string): Problem {
  const message = `That password is wrong. ${effect}`;
  return new Problem(422, "invalid_current_password", message, { errors: [{ field, message }] });
}

function lastOwner(organizations: { name: string }[]): Problem {
  const names = organizations.map(({ name }) => name).join(", ");
  const detail = `You are the only owner of ${names}. Make another member an owner or delete the organization first.`;
  return new Problem(409, "last_owner", detail);
}

export const unlinkIdentity = onAccount({
  at: `DELETE ${ACCOUNT}/identities`,
  summary: "Unlink an identity of the identity provider",
  description: "Ends the sessions that began with it.",
  needsRecentSignIn: true,
  input: z.strictObject({ issuer: z.string(), subject: z.string() }),
  refuses: ["only_way_in"],
  events: ["member.identity_unlinked"],
  done: { "identity-unlinked": "Identity unlinked." },
  async run({ storage, user: { id, actor }, input }) {
    if (!(await storage.identities.unlink(id, input, actor))) throw refusal("only_way_in");
  },
});
