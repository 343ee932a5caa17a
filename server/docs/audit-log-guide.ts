import { readFileSync } from "node:fs";
import { PLANS } from "../../resources/plans.ts";
import { retentionOf } from "../settings/retention.ts";
import { type Html, html } from "../ui/html.ts";
import { listing } from "./prose.ts";

const SCRIPT = readFileSync(new URL("../../docs/verify-audit-log.mjs", import.meta.url), "utf8");

/** Returns the chapter on how to prove that an export of the audit log is complete and unchanged. */
export function auditLogGuide(): Html {
  const kept = PLANS.map((plan) => `${retentionOf(plan)} on ${plan.charAt(0).toUpperCase()}${plan.slice(1)}`);
  return html`<p>The dashboard shows the audit log of your organization and exports it as CSV. Entries are kept for ${kept.join(", ")}.
A change of plan applies to new entries only. Entries are deleted oldest first.</p>
<p>Every entry has a sequence number, <code>seq</code>, and a <code>hash</code>: the SHA-256 of <code>previous_hash</code> (the hash of the entry before),
a line feed, and the <code>record</code> of the entry. Changing, deleting, inserting or reordering entries breaks this chain.</p>
<p>To verify an export, export the log without a filter and run this script with Node.js. It needs no network access and no packages. Someone who
can change the database could recompute all later hashes. To detect that, keep the hash that the audit log page shows, and pass it to the
script with a later export: <code>node verify-audit-log.mjs audit.csv &lt;hash&gt;</code>. The names and the summary are not part of the proof.</p>
${listing("verify-audit-log.mjs", SCRIPT)}`;
}
