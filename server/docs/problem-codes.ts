import type { Explanation } from "../resources/problems.ts";

/** The codes of problems that `/auth` and `/dashboard` have beyond those of the API. */
export const PEOPLE_PROBLEMS: Record<string, Explanation> = {
  sign_in_required: {
    status: 401,
    meaning: "Nobody is signed in, or the sign-in has ended.",
    next: "Sign in at /auth/login.",
  },
  invalid_credentials: {
    status: 401,
    meaning: "The user name or the password is wrong.",
    next: "Try again, or ask an owner of the organization for a link that sets a new password.",
  },
  invalid_grant: {
    status: 401,
    meaning: "The refresh token is unknown, used up, expired or revoked.",
    next: "Sign in again.",
  },
  reauthentication_required: {
    status: 403,
    meaning: "The sign-in is too long ago for something this sensitive.",
    next: "Sign in again, then repeat it within ten minutes.",
  },
  role_required: {
    status: 403,
    meaning: "The role of the person in the organization does not include this.",
    next: "Ask an owner or an admin.",
  },
  not_yours_alone: {
    status: 403,
    meaning: "The person belongs to another organization as well, which the caller does not own.",
    next: "Ask whoever runs the service.",
  },
  cross_site_request: {
    status: 403,
    meaning: "A page of another site began the request.",
    next: "Begin at a page of this service.",
  },
  invalid_csrf_token: {
    status: 403,
    meaning: "The form is too old, or belongs to another sign-in.",
    next: "Open the page again and send it once more.",
  },
  invitation_over: {
    status: 403,
    meaning: "The invitation was used, taken back, or is too old.",
    next: "Ask for a new one.",
  },
  registration_closed: {
    status: 403,
    meaning: "The service takes no registrations, or only invited ones.",
    next: "Ask an owner of the organization for an invitation.",
  },
  plans_managed_elsewhere: {
    status: 403,
    meaning: "Plans are changed by whoever runs the service.",
    next: "Ask them.",
  },
  no_client: {
    status: 404,
    meaning: "The organization has never been on a paid plan, so it has no client.",
    next: "Move it to a paid plan.",
  },
  browser_required: {
    status: 406,
    meaning: "This leads through a sign-in elsewhere, which takes a browser.",
    next: "Open the address in a browser.",
  },
  username_taken: {
    status: 409,
    meaning: "Somebody has this user name.",
    next: "Choose another one.",
  },
  last_owner: {
    status: 409,
    meaning: "The organization would be left without an owner.",
    next: "Make somebody else an owner first.",
  },
  newest_secret: {
    status: 409,
    meaning: "The newest secret of a client is not ended while it is the newest.",
    next: "Make a new one first.",
  },
  no_password: {
    status: 409,
    meaning: "The person signs in elsewhere and has no password here.",
    next: "Nothing: there is no password to reset.",
  },
  only_way_in: {
    status: 409,
    meaning: "It is the only way in which the person can sign in.",
    next: "Set a password first.",
  },
  too_many_requests: {
    status: 429,
    meaning: "Too many attempts.",
    next: "Wait a minute.",
  },
  busy: {
    status: 503,
    meaning: "Too many people are signing in at this moment.",
    next: "Try again in a moment.",
  },
  provider_unavailable: {
    status: 503,
    meaning: "The external identity provider cannot be reached.",
    next: "Try again in a minute.",
  },
};

/** The fields of `/auth` and `/dashboard` whose refusal is `invalid_<field>`. */
export const PEOPLE_FIELDS = [
  "username",
  "password",
  "new_password",
  "current_password",
  "organization_name",
  "name",
  "plan",
  "role",
  "redirect_uris",
  "overlap_hours",
];
