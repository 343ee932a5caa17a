import { MAX_APPROVED_APPS } from "../../adapters/organizations/approved-apps.ts";
import { MAX_TRUST_RULES } from "../../adapters/organizations/trust-rules.ts";
import { Problem } from "../../resources/http/problem.ts";
import type { ProblemCode, ProblemCodeDescription } from "../../resources/http/problem-codes.ts";

/** The passkeys of a user. */
export const PASSKEYS_MAX = 20;

/** The error codes of `/auth` and `/dashboard` that the API doesn't have. */
export const DASHBOARD_PROBLEMS = {
  sign_in_required: {
    status: 401,
    meaning: "You aren't signed in, or your session has expired.",
    next: "Sign in at /auth/login.",
  },
  invalid_credentials: {
    status: 401,
    meaning: "The username or password is incorrect.",
    next: "Try again, or ask an owner of your organization for a password reset link.",
  },
  invalid_grant: {
    status: 401,
    meaning: "The refresh token is unknown, already used, expired or revoked.",
    next: "Sign in again.",
  },
  second_factor_required: {
    status: 403,
    meaning:
      "The password is correct, and the account has a second factor. `methods` lists which can be sent.",
    next: "Send `login_token` with `totp` or `recovery_code` to /auth/login/second-factor within five minutes.",
  },
  invalid_second_factor: {
    status: 401,
    meaning: "The code is incorrect, or was already used.",
    next: "Send the current code of the authenticator app, or an unused recovery code.",
  },
  invalid_login_token: {
    status: 401,
    meaning: "The login_token is unknown, older than five minutes, or was already used.",
    next: "Send the username and password to /auth/login again.",
  },
  second_factor_setup_required: {
    status: 403,
    meaning: "The organization requires owners and admins to sign in with a second factor.",
    next: "Add a passkey or an authenticator app to your account, then sign in again.",
  },
  second_factor_missing: {
    status: 409,
    meaning: "The account has no second factor, or you didn't sign in with it.",
    next: "Set up a second factor and sign in with it first.",
  },
  totp_already_set_up: {
    status: 409,
    meaning: "You already have an authenticator app.",
    next: "Remove it first to set up another one.",
  },
  too_many_passkeys: {
    status: 409,
    meaning: `You can have at most ${PASSKEYS_MAX} passkeys.`,
    next: "Remove one first.",
  },
  reauthentication_required: {
    status: 403,
    meaning: "This action requires a sign-in within the last ten minutes.",
    next: "Sign in again, then repeat the request.",
  },
  role_required: {
    status: 403,
    meaning: "Your role in the organization doesn't allow this.",
    next: "Ask an owner or admin.",
  },
  shared_account: {
    status: 403,
    meaning: "This user belongs to an organization that you don't own.",
    next: "Ask the operator of this service for a reset link.",
  },
  cross_site_request: {
    status: 403,
    meaning: "The request came from another site.",
    next: "Send it from a page of this server.",
  },
  invalid_csrf_token: {
    status: 403,
    meaning: "The form has expired or belongs to another session.",
    next: "Reload the page and submit the form again.",
  },
  invitation_invalid: {
    status: 403,
    meaning: "The invitation was used or revoked, or has expired.",
    next: "Ask for a new one.",
  },
  registration_closed: {
    status: 403,
    meaning: "Registration is disabled or requires an invitation.",
    next: "Ask an owner of your organization for an invitation.",
  },
  self_service_disabled: {
    status: 403,
    meaning: "The operator of this service manages plans.",
    next: "Ask the operator to change yours.",
  },
  disabled_by_operator: {
    status: 403,
    meaning: "The operator of this service disabled the client.",
    next: "Contact the operator to enable it.",
  },
  no_client: {
    status: 404,
    meaning: "This organization has no OAuth client.",
    next: "Upgrade to Growth or Premium to get one.",
  },
  link_invalid: {
    status: 404,
    meaning: "This confirmation link was used, has expired, or belongs to another account.",
    next: "Enter the address on your account page again.",
  },
  browser_required: {
    status: 406,
    meaning: "Single sign-on requires a browser.",
    next: "Open the URL in a browser.",
  },
  username_taken: {
    status: 409,
    meaning: "The username is taken.",
    next: "Choose another username.",
  },
  last_owner: {
    status: 409,
    meaning: "The organization would have no owner.",
    next: "Make another member an owner first.",
  },
  newest_secret: {
    status: 409,
    meaning: "You can't revoke the newest secret.",
    next: "Rotate it first.",
  },
  mail_disabled: {
    status: 409,
    meaning: "This server doesn't send email.",
    next: "Ask its operator to set SMTP_URL.",
  },
  approved_app_limit: {
    status: 409,
    meaning: `An organization can approve at most ${MAX_APPROVED_APPS} apps.`,
    next: "Withdraw an approval to add another app.",
  },
  no_identity_provider: {
    status: 409,
    meaning: "This server has no identity provider.",
    next: "Ask its operator to set IDP_ISSUER.",
  },
  duplicate_key: {
    status: 409,
    meaning: "The client already has this key.",
    next: "You don't need to add it again.",
  },
  key_limit: {
    status: 409,
    meaning: "A client has at most two keys.",
    next: "Remove one first.",
  },
  fapi_conflict: {
    status: 409,
    meaning: "FAPI 2.0 doesn't allow the client's credentials or redirect URIs.",
    next: "Change what the detail names, or turn off FAPI 2.0.",
  },
  trust_rule_limit: {
    status: 409,
    meaning: `An organization can have at most ${MAX_TRUST_RULES} trust rules.`,
    next: "Delete one to add another.",
  },
  no_password: {
    status: 409,
    meaning: "This user signs in with SSO.",
    next: "There is no password to reset.",
  },
  only_way_in: {
    status: 409,
    meaning: "This is your only way to sign in.",
    next: "Set a password first.",
  },
  invalid_key: {
    status: 422,
    meaning: "The key is not a usable public key.",
    next: "Send an RSA, EC or Ed25519 public key, as a JWK or in PEM.",
  },
  password_reset_required: {
    status: 403,
    meaning: "Too many incorrect passwords or codes were entered.",
    next: "Sign in from a browser that you have used before, or reset your password.",
  },
  invalid_current_password: {
    status: 422,
    meaning: "The current password is incorrect.",
    next: "Try again, or reset the password.",
  },
  too_many_requests: {
    status: 429,
    meaning: "Too many attempts.",
    next: "Wait a minute, then try again.",
  },
  too_many_emails: {
    status: 429,
    meaning: "Too many emails were sent to the address or for the user within a day.",
    next: "Try again tomorrow.",
  },
  busy: {
    status: 503,
    meaning: "Too many users are signing in right now.",
    next: "Try again in a moment.",
  },
  provider_unavailable: {
    status: 503,
    meaning: "The identity provider is unavailable.",
    next: "Try again in a minute.",
  },
} as const satisfies Record<string, ProblemCodeDescription>;

export type ManagementProblemCode = keyof typeof DASHBOARD_PROBLEMS | ProblemCode;

/** Returns the problem of a code. Its detail is what the documentation says about the code. */
export function refusal(code: keyof typeof DASHBOARD_PROBLEMS): Problem {
  const { status, meaning, next } = DASHBOARD_PROBLEMS[code];
  return new Problem(status, code, `${meaning} ${next}`);
}
