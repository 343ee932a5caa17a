import type { Notice, NoticeKind } from "../../adapters/accounts/notices.ts";

/** What a notice says: what happened, and what to do if it wasn't the user. */
export type NoticeText = {
  title: string;
  advice: string;
  /** Whether it is something that no user did. */
  isFact?: boolean;
};

type Describe = (notice: Pick<Notice, "data">) => NoticeText;

const SECURE_ACCOUNT =
  "Change your password and sign out everywhere else on your account page. This signs out anyone else who is using your account.";
const REVIEW_IDENTITIES =
  "Unlink identities that aren’t yours on your account page, then change your password.";
const REVIEW_FACTORS = "Review your sign-in methods on your account page, then change your password.";

function nameOf(by: string | null | undefined): string {
  if (by === "operator") return "The operator of this service";
  return by ?? "A former user";
}

const KINDS: Record<NoticeKind, Describe> = {
  new_device: ({ data }) => ({
    title: `New sign-in${data.browser ? ` from ${data.browser}` : ""}`,
    advice: SECURE_ACCOUNT,
  }),
  password_changed: () => ({
    title: "Your password was changed",
    advice: "Change your password again, or reset it if you can’t sign in.",
  }),
  reset_link_created: ({ data }) => ({
    title: `${nameOf(data.by)} created a password reset link for your account`,
    advice: "Ask them why. Changing your password revokes the link, which otherwise expires after an hour.",
  }),
  reset_link_used: ({ data }) => ({
    title: `Your password was reset with a link${data.by ? ` that ${nameOf(data.by).replace(/^The/, "the")} created` : ""}`,
    advice: SECURE_ACCOUNT,
  }),
  identity_linked: ({ data }) => ({
    title: `An identity${data.name ? ` of ${data.name}` : ""} was linked to your account`,
    advice: REVIEW_IDENTITIES,
  }),
  identity_unlinked: ({ data }) => ({
    title: `An identity${data.name ? ` of ${data.name}` : ""} was unlinked from your account`,
    advice: SECURE_ACCOUNT,
  }),
  second_factor_added: ({ data }) => ({
    title: `A second factor was added${data.name ? `: ${data.name}` : ""}`,
    advice: REVIEW_FACTORS,
  }),
  second_factor_removed: ({ data }) => ({
    title: `A second factor was removed${data.name ? `: ${data.name}` : ""}`,
    advice: REVIEW_FACTORS,
  }),
  recovery_code_used: () => ({ title: "A recovery code was used to sign in", advice: REVIEW_FACTORS }),
  recovery_codes_created: () => ({ title: "New recovery codes were created", advice: REVIEW_FACTORS }),
  email_changed: ({ data }) => ({
    title: data.name ? `Your email address was changed to ${data.name}` : "Your email address was removed",
    advice: "Change the address back on your account page, then change your password.",
  }),
  credential_leaked: ({ data }) => ({
    title: `Leaked and revoked: ${data.name}`,
    advice:
      "It was found in a public place. The audit log says where. If an application needs it, give it a new credential and keep that out of source code.",
  }),
  domain_record_lost: ({ data }) => ({
    title: `The DNS record for ${data.name} is missing`,
    advice:
      "Create it again: the Domains page shows it. The domain keeps working, but after 7 days without the record, another organization can claim it by verifying it.",
    isFact: true,
  }),
  domain_taken_over: ({ data }) => ({
    title: `${data.name} now belongs to another organization`,
    advice:
      "Its DNS record was missing for 7 days, and the other organization has verified the domain. Your links on it no longer work there: move them to another domain.",
    isFact: true,
  }),
  account_locked: () => ({
    title: "Too many incorrect passwords were entered for your account",
    advice: "Reset your password. Someone may be guessing it.",
  }),
  second_factor_locked: () => ({
    title: "Too many incorrect authenticator codes were entered for your account",
    advice: "Reset your password. Someone who knows it may be guessing the codes.",
  }),
};

export function describeNotice(notice: Pick<Notice, "kind" | "data">): NoticeText {
  return KINDS[notice.kind](notice);
}
