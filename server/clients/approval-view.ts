import type { ApprovedApp } from "../../adapters/organizations/approved-apps.ts";
import { type AppIdentity, describeApp } from "./app-identity.ts";

/** An approved app with what identifies it to users. */
export type ShownApproval = ApprovedApp & AppIdentity;

/** Adds to an approved app what identifies it to users. */
export function describeApproval(approved: ApprovedApp): ShownApproval {
  return { ...approved, ...describeApp(approved) };
}

/** Returns an approved app as JSON. */
export function showApproval({ id, clientId, name, publisher, approvedBy, approvedAt }: ShownApproval) {
  return {
    id,
    client_id: clientId,
    app: name,
    published_by: publisher,
    approved_by: approvedBy,
    approved_at: new Date(approvedAt).toISOString(),
  };
}
