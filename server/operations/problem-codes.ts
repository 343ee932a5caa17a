import { MAX_APPROVED_APPS } from "../../adapters/organizations/approved-apps.ts";
import { MAX_TRUST_RULES } from "../../adapters/organizations/trust-rules.ts";
import { Problem } from "../../resources/http/problem.ts";
import { describeCodes, type ProblemCode } from "../../resources/http/problem-codes.ts";

/** The passkeys of a user. */
export const PASSKEYS_MAX = 20;

/** The error codes of `/auth` and `/dashboard` that the API doesn't have. */
export const DASHBOARD_PROBLEMS = describeCodes({
  401: {
    sign_in_required: ["You aren't signed in, or your session has expired.", "Sign in at /auth/login."],
    invalid_credentials: [
      "The username or password is incorrect.",
      "Try again, or ask an owner of your organization for a password reset link.",
    ],
    invalid_grant: ["The refresh token is unknown, already used, expired or revoked.", "Sign in again."],
    invalid_second_factor: [
      "The code is incorrect, or was already used.",
      "Send the current code of the authenticator app, or an unused recovery code.",
    ],
    invalid_login_token: [
      "The login_token is unknown, older than five minutes, or was already used.",
      "Send the username and password to /auth/login again.",
    ],
  },
  403: {
    second_factor_required: [
      "The password is correct, and the account has a second factor. `methods` lists which can be sent.",
      "Send `login_token` with `totp` or `recovery_code` to /auth/login/second-factor within five minutes.",
    ],
    second_factor_setup_required: [
      "The organization requires owners and admins to sign in with a second factor.",
      "Add a passkey or an authenticator app to your account, then sign in again.",
    ],
    reauthentication_required: [
      "This action requires a sign-in within the last ten minutes.",
      "Sign in again, then repeat the request.",
    ],
    role_required: ["Your role in the organization doesn't allow this.", "Ask an owner or admin."],
    shared_account: [
      "This user belongs to an organization that you don't own.",
      "Ask the operator of this service for a reset link.",
    ],
    cross_site_request: ["The request came from another site.", "Send it from a page of this server."],
    invalid_csrf_token: [
      "The form has expired or belongs to another session.",
      "Reload the page and submit the form again.",
    ],
    invitation_invalid: ["The invitation was used or revoked, or has expired.", "Ask for a new one."],
    registration_closed: [
      "Registration is disabled or requires an invitation.",
      "Ask an owner of your organization for an invitation.",
    ],
    self_service_disabled: [
      "The operator of this service manages plans.",
      "Ask the operator to change yours.",
    ],
    disabled_by_operator: [
      "The operator of this service disabled the client.",
      "Contact the operator to enable it.",
    ],
    password_reset_required: [
      "Too many incorrect passwords or codes were entered.",
      "Sign in from a browser that you have used before, or reset your password.",
    ],
  },
  404: {
    no_client: ["This organization has no OAuth client.", "Upgrade to Growth or Premium to get one."],
    link_invalid: [
      "This confirmation link was used, has expired, or belongs to another account.",
      "Enter the address on your account page again.",
    ],
  },
  406: { browser_required: ["Single sign-on requires a browser.", "Open the URL in a browser."] },
  409: {
    second_factor_missing: [
      "The account has no second factor, or you didn't sign in with it.",
      "Set up a second factor and sign in with it first.",
    ],
    totp_already_set_up: ["You already have an authenticator app.", "Remove it first to set up another one."],
    too_many_passkeys: [`You can have at most ${PASSKEYS_MAX} passkeys.`, "Remove one first."],
    username_taken: ["The username is taken.", "Choose another username."],
    last_owner: ["The organization would have no owner.", "Make another member an owner first."],
    newest_secret: ["You can't revoke the newest secret.", "Rotate it first."],
    mail_disabled: ["This server doesn't send email.", "Ask its operator to set SMTP_URL."],
    approved_app_limit: [
      `An organization can approve at most ${MAX_APPROVED_APPS} apps.`,
      "Withdraw an approval to add another app.",
    ],
    no_identity_provider: ["This server has no identity provider.", "Ask its operator to set IDP_ISSUER."],
    duplicate_key: ["The client already has this key.", "You don't need to add it again."],
    key_limit: ["A client has at most two keys.", "Remove one first."],
    fapi_conflict: [
      "FAPI 2.0 doesn't allow the client's credentials or redirect URIs.",
      "Change what the detail names, or turn off FAPI 2.0.",
    ],
    trust_rule_limit: [
      `An organization can have at most ${MAX_TRUST_RULES} trust rules.`,
      "Delete one to add another.",
    ],
    no_password: ["This user signs in with SSO.", "There is no password to reset."],
    only_way_in: ["This is your only way to sign in.", "Set a password first."],
  },
  422: {
    invalid_key: [
      "The key is not a usable public key.",
      "Send an RSA, EC or Ed25519 public key, as a JWK or in PEM.",
    ],
    invalid_current_password: ["The current password is incorrect.", "Try again, or reset the password."],
  },
  429: {
    too_many_requests: ["Too many attempts.", "Wait a minute, then try again."],
    too_many_emails: [
      "Too many emails were sent to the address or for the user within a day.",
      "Try again tomorrow.",
    ],
  },
  503: {
    busy: ["Too many users are signing in right now.", "Try again in a moment."],
    provider_unavailable: ["The identity provider is unavailable.", "Try again in a minute."],
  },
});

export type ManagementProblemCode = keyof typeof DASHBOARD_PROBLEMS | ProblemCode;

/** Returns the problem of a code. Its detail is what the documentation says about the code. */
export function refusal(code: keyof typeof DASHBOARD_PROBLEMS): Problem {
  const { status, meaning, next } = DASHBOARD_PROBLEMS[code];
  return new Problem(status, code, `${meaning} ${next}`);
}
