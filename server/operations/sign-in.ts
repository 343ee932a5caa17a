import { z } from "zod";
import { checkText } from "../../resources/http/validate.ts";
import { normalizeName, validateName, validateNewUsername } from "../credentials/names.ts";
import { validatePassword } from "../credentials/password-rules.ts";
import { forEveryone, onAccount } from "./operation.ts";

// Other types get the response to an incorrect value, which reveals nothing.
const text = z.preprocess((value) => (typeof value === "string" ? value : ""), z.string());

/** Takes a function that returns what is wrong as a sentence. */
const validatedBy = (rule: (text: string) => string | undefined) =>
  z.string({ error: "This is required." }).check(checkText(rule));

const tokensSchema = z.object({
  access_token: z.string().describe("For `/auth` and `/dashboard`, and nothing else."),
  refresh_token: z.string().describe("Gets the next tokens once."),
  token_type: z.string().describe("`Bearer`"),
  expires_in: z.int().describe("Seconds until the access token expires."),
});
const signedInSchema = tokensSchema
  .extend({ user: z.object({ id: z.string(), username: z.string() }) })
  .meta({ title: "SignIn" });

/** What the error `second_factor_required` has besides the members of every error. */
export const secondFactorMembers = z.object({
  login_token: z.string().describe("For the next step, once."),
  expires_in: z.int().describe("Seconds until the token expires."),
  methods: z.array(z.enum(["totp", "recovery_code"])).describe("What can be sent for the second factor."),
});

/** The name of an organization, empty for the default. Names needn't be unique. */
const organizationName = z
  .string({ error: "The name must be a string." })
  .transform(normalizeName)
  .check(
    checkText((name) => {
      const message = name === "" ? undefined : validateName(name);
      return message && `The name ${message}.`;
    }),
  );

export const register = forEveryone({
  at: "POST /auth/register",
  summary: "Create an account",
  description:
    "With an invitation, the user joins its organization. Without one, the user gets a new organization.",
  input: z.object({
    username: validatedBy(validateNewUsername),
    // The rules about names follow once the invitation is known.
    password: validatedBy((password) => validatePassword(password, { username: "" })),
    organization_name: organizationName
      .optional()
      .describe("The name of the new organization; by default, it is named after the user."),
    invitation: z.string().optional().describe("The end of an invitation's link."),
  }),
  output: signedInSchema.extend({
    organization: z.object({ id: z.string(), name: z.string(), plan: z.string() }),
  }),
  status: 201,
  refuses: ["registration_closed", "invitation_invalid", "username_taken", "too_many_requests", "busy"],
  events: ["organization.created", "member.added"],
});

export const logIn = forEveryone({
  at: "POST /auth/login",
  summary: "Sign in",
  description: "The response to a user with a second factor is 403 `second_factor_required`.",
  input: z.object({ username: text, password: text }),
  output: signedInSchema,
  refuses: [
    "invalid_credentials",
    "second_factor_required",
    "password_reset_required",
    "too_many_requests",
    "busy",
  ],
  events: ["member.signed_in", "member.sign_in_failed", "member.sign_in_throttled"],
});

export const proveSecondFactor = forEveryone({
  at: "POST /auth/login/second-factor",
  summary: "Sign in with a second factor",
  description: "Send either `totp` or `recovery_code`.",
  input: z.object({
    login_token: text.describe("The token from the response to the username and password."),
    totp: text.optional().describe("The current code of the authenticator app."),
    recovery_code: text.optional(),
  }),
  output: signedInSchema,
  refuses: [
    "invalid_second_factor",
    "invalid_login_token",
    "invalid_credentials",
    "password_reset_required",
    "too_many_requests",
  ],
  events: [
    "member.signed_in",
    "member.second_factor_failed",
    "member.sign_in_throttled",
    "member.recovery_code_used",
  ],
});

export const refreshTokens = forEveryone({
  at: "POST /auth/refresh",
  summary: "Refresh the tokens",
  description: "The refresh token can be used once. Using it again later revokes all tokens of this sign-in.",
  input: z.object({ refresh_token: text }),
  output: tokensSchema,
  refuses: ["invalid_grant", "too_many_requests"],
  events: ["token.replay_detected"],
});

export const requestPasswordReset = forEveryone({
  at: "POST /auth/forgot-password",
  summary: "Request a password reset",
  description:
    "Emails a link that works once, within an hour. The response is the same whether or not the user exists and has an email address.",
  input: z.object({ username: text }),
  output: z.object({ message: z.string() }),
  status: 202,
  refuses: ["too_many_requests"],
});

export const logOut = onAccount({
  at: "POST /auth/logout",
  summary: "Sign out",
  description: "Ends the session, or revokes all tokens of this sign-in.",
  events: ["member.logged_out"],
  async run({ storage, user: { id, actor }, signIn }) {
    await signIn.end();
    await storage.memberEvents.record(actor, { userId: id, type: "member.logged_out" });
  },
});
