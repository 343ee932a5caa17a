import { type Html, html } from "./html.ts";

/** An invitation, as pages name it. */
export type ShownInvitation = {
  organizationName: string;
  role: string;
  /** The username of the member who created it. Null for the operator. */
  inviter: string | null;
};

/** Renders who invited the visitor, to which organization, and as what. */
export function invitationSentence({ organizationName, role, inviter }: ShownInvitation): Html {
  const organization = html`<strong><bdi>${organizationName}</bdi></strong> as ${role === "member" ? "a" : "an"} <strong>${role}</strong>`;
  if (inviter === null) return html`You’re invited to join ${organization}.`;
  return html`<strong><bdi>${inviter}</bdi></strong> invited you to join ${organization}.`;
}
