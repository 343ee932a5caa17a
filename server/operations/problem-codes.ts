import { MAX_APPROVED_APPS } from "../../adapters/organizations/approved-apps.ts";
import { MAX_TRUST_RULES } from "../../adapters/organizations/trust-rules.ts";
import { Problem } from "../../resources/http/problem.ts";
import { describeCodes, type ProblemCode } from "../../resources/http/problem-codes.ts";

/** The passkeys of a user. */
export const PASSKEYS_MAX = 20;

/** The error codes of `/auth` and `/dashboard` that the API doesn't have. */
export const DASHBOARD_PROBLEMS = describeCodes({
  401: {
    sign_in_required: {
      meaning: "You aren't signed in, or your session has expired.",
      next: "Sign in at /auth/login.",
    },
    invalid_credentials: {
      meaning: "The username or password is incorrect.",
      next: "Try again, or ask an owner of your organization for a password reset link.",
    },
    invalid_grant: {
      meaning: "The refresh token is unknown, already used, expired or revoked.",
      next: "Sign in again.",
    },
    invalid_second_factor: {
      meaning: "The code is incorrect, or was already used.",
      next: "Send the current code of the authenticator app, or an unused recovery code.",
    },
    invalid_login_token: {
      meaning: "The login_token is unknown, older than five minutes, or was already used.",
      next: "Send the username and password to /auth/login again.",
    },
  },
  403: {
    second_factor_required: {
      meaning:
        "The password is correct, and the account has a second factor. `methods` lists which can be sent.",
      next: "Send `login_token` with `totp` or `recovery_code` to /auth/login/second-factor within five minutes.",
    },
    second_factor_setup_required: {
      meaning: "The organization requires owners and admins to sign in with a second factor.",
      next: "Add a passkey or an authenticator app to your account, then sign in again.",
    },
    reauthentication_required: {
      meaning: "This action requires a sign-in within the last ten minutes.",
      next: "Sign in again, then repeat the request.",
    },
    role_required: {
      meaning: "Your role in the organization doesn't allow this.",
      next: "Ask an owner or admin.",
    },
    shared_account: {
      meaning: "This user belongs to an organization that you don't own.",
      next: "Ask the operator of this service for a reset link.",
    },
    cross_site_request: {
      meaning: "The request came from another site.",
      next: "Send it from a page of this server.",
    },
    invalid_csrf_token: {
      meaning: "The form has expired or belongs to another session.",
      next: "Reload the page and submit the form again.",
    },
    invitation_invalid: {
      meaning: "The invitation was used or revoked, or has expired.",
      next: "Ask for a new one.",
    },
    registration_closed: {
      meaning: "Registration is disabled or requires an invitation.",
      next: "Ask an owner of your organization for an invitation.",
    },
    self_service_disabled: {
      meaning: "The operator of this service manages plans.",
      next: "Ask the operator to change yours.",
    },
    disabled_by_operator: {
      meaning: "The operator of this service disabled the client.",
      next: "Contact the operator to enable it.",
    },
    password_reset_required: {
      meaning: "Too many incorrect passwords or codes were entered.",
      next: "Sign in from a browser that you have used before, or reset your password.",
    },
  },
  404: {
    no_client: {
      meaning: "This organization has no OAuth client.",
      next: "Upgrade to Growth or Premium to get one.",
    },
    link_invalid: {
      meaning: "This confirmation link was used, has expired, or belongs to another account.",
      next: "Enter the address on your account page again.",
    },
  },
  406: {
    browser_required: { meaning: "Single sign-on requires a browser.", next: "Open the URL in a browser." },
  },
  409: {
    second_factor_missing: {
      meaning: "The account has no second factor, or you didn't sign in with it.",
      next: "Set up a second factor and sign in with it first.",
    },
    totp_already_set_up: {
      meaning: "You already have an authenticator app.",
      next: "Remove it first to set up another one.",
    },
    too_many_passkeys: {
      meaning: `You can have at most ${PASSKEYS_MAX} passkeys.`,
      next: "Remove one first.",
    },
    username_taken: { meaning: "The username is taken.", next: "Choose another username." },
    last_owner: {
      meaning: "The organization would have no owner.",
      next: "Make another member an owner first.",
    },
    newest_secret: { meaning: "You can't revoke the newest secret.", next: "Rotate it first." },
    mail_disabled: { meaning: "This server doesn't send email.", next: "Ask its operator to set SMTP_URL." },
    approved_app_limit: {
      meaning: `An organization can approve at most ${MAX_APPROVED_APPS} apps.`,
      next: "Withdraw an approval to add another app.",
    },
    no_identity_provider: {
      meaning: "This server has no identity provider.",
      next: "Ask its operator to set IDP_ISSUER.",
    },
    duplicate_key: { meaning: "The client already has this key.", next: "You don't need to add it again." },
    key_limit: { meaning: "A client has at most two keys.", next: "Remove one first." },
    fapi_conflict: {
      meaning: "FAPI 2.0 doesn't allow the client's credentials or redirect URIs.",
      next: "Change what the detail names, or turn off FAPI 2.0.",
    },
    trust_rule_limit: {
      meaning: `An organization can have at most ${MAX_TRUST_RULES} trust rules.`,
      next: "Delete one to add another.",
    },
    no_password: { meaning: "This user signs in with SSO.", next: "There is no password to reset." },
    only_way_in: { meaning: "This is your only way to sign in.", next: "Set a password first." },
  },
  422: {
    invalid_key: {
      meaning: "The key is not a usable public key.",
      next: "Send an RSA, EC or Ed25519 public key, as a JWK or in PEM.",
    },
    invalid_current_password: {
      meaning: "The current password is incorrect.",
      next: "Try again, or reset the password.",
    },
  },
  429: {
    too_many_requests: { meaning: "Too many attempts.", next: "Wait a minute, then try again." },
    too_many_emails: {
      meaning: "Too many emails were sent to the address or for the user within a day.",
      next: "Try again tomorrow.",
    },
  },
  503: {
    busy: { meaning: "Too many users are signing in right now.", next: "Try again in a moment." },
    provider_unavailable: {
      meaning: "The identity provider is unavailable.",
      next: "Try again in a minute.",
    },
  },
});

export type ManagementProblemCode = keyof typeof DASHBOARD_PROBLEMS | ProblemCode;

/** Returns the problem of a code. Its detail is what the documentation says about the code. */
export function refusal(code: keyof typeof DASHBOARD_PROBLEMS): Problem {
  const { status, meaning, next } = DASHBOARD_PROBLEMS[code];
  return new Problem(status, code, `${meaning} ${next}`);
}
