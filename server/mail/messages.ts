import type { NoticeKind } from "../../adapters/accounts/notices.ts";
import type { Mail } from "../../adapters/mail/queue.ts";
import { resetUrl } from "../credentials/reset-links.ts";
import { type Html, html } from "../ui/html.ts";
import { formatTime } from "../ui/text.ts";
import { describeNotice } from "./notices.ts";

export type Message = { subject: string; text: string; html: string };

type Draft = { subject: string; paragraphs: string[]; link?: { text: string; url: string }; last?: string };

/** All links start with `base`. */
export function composeMessage(mail: Mail, base: string): Message {
  const draft = draftOf(mail, base);
  const { link, last } = draft;
  const subject = singleLine(draft.subject);
  const paragraphs = draft.paragraphs.map(singleLine);
  const footer = `This email was sent by ${base}.`;
  const linked = link ? [`${link.text}:\n${link.url}`] : [];
  const text = [...paragraphs, ...linked, ...(last ? [last] : []), footer].join("\n\n");
  const paragraph = (line: string): Html => html`<p>${line}</p>\n`;
  return {
    subject,
    text: `${text}\n`,
    html: html`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>${subject}</title></head>
<body>
${paragraphs.map(paragraph)}${link && html`<p><a href="${link.url}">${link.text}</a></p>\n`}${last && paragraph(last)}${paragraph(footer)}</body>
</html>
`.toString(),
  };
}

function draftOf(mail: Mail, base: string): Draft {
  const { kind, data, token = "" } = mail;
  const username = String(data.username ?? "");
  switch (kind) {
    case "password_reset":
      return {
        subject: "Reset your linkgate password",
        paragraphs: [
          `Someone requested a password reset for your account ${username}.`,
          "The link works once and expires in an hour.",
        ],
        link: { text: "Choose a new password", url: resetUrl(base, token) },
        last: "If it wasn’t you, ignore this email. Your password won’t change.",
      };
    case "email_confirmation":
      return {
        subject: "Confirm your email address for linkgate",
        paragraphs: [
          `Someone entered this email address for security notices and password resets of the account ${username}.`,
          "To confirm it, sign in to that account. The link works once and expires in 24 hours.",
        ],
        link: { text: "Confirm the email address", url: `${base}/dashboard/account/email/${token}` },
        last: "If this isn’t your account, ignore this email.",
      };
    case "invitation":
      return {
        subject: `${data.inviter} invited you to ${data.organization}`,
        paragraphs: [
          `${data.inviter} invited you to join the organization “${data.organization}” on linkgate as ${data.role === "member" ? "a member" : `an ${data.role}`}.`,
          "The link works once and expires in 7 days.",
        ],
        link: { text: "Accept the invitation", url: `${base}/dashboard/invitations/${token}` },
        last: "If you weren’t expecting this invitation, ignore this email.",
      };
    default:
      return noticeDraft(kind, mail, base);
  }
}

function noticeDraft(kind: NoticeKind, { data, createdAt }: Mail, base: string): Draft {
  const { title, advice, isFact } = describeNotice({ kind, data });
  const address = typeof data.address === "string" ? ` IP address: ${data.address}.` : "";
  return {
    subject: title,
    paragraphs: [
      `${title}.`,
      `Account: ${data.username}. Time: ${formatTime(createdAt)}.${address}`,
      isFact ? advice : `If this was you, you don’t need to do anything. If it wasn’t: ${advice}`,
    ],
    link: { text: "Review your security notices", url: `${base}/dashboard/notices` },
  };
}

/** Removes line breaks and invisible characters, which names may contain. */
function singleLine(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, " ").toWellFormed();
}
