import { Router } from "@koa/router";
import type { Middleware } from "koa";
import { createAccess } from "./access.ts";
import { analytics } from "./analytics.ts";
import { apps } from "./apps.ts";
import { audit } from "./audit.ts";
import { client } from "./client.ts";
import { deliveries } from "./deliveries.ts";
import { invitations } from "./invitations.ts";
import { links } from "./links.ts";
import { members } from "./members.ts";
import { createOneTimeViews } from "./one-time-view.ts";
import { organizations } from "./organizations.ts";
import { plan } from "./plan.ts";
import { qr } from "./qr.ts";
import { quickStart } from "./quick-start.ts";
import type { DashboardOptions, Subject } from "./subject.ts";
import { webhooks } from "./webhooks.ts";

const SUBJECTS: Subject[] = [
  organizations,
  links,
  analytics,
  qr,
  webhooks,
  deliveries,
  members,
  invitations,
  plan,
  client,
  quickStart,
  apps,
  audit,
];

/** The dashboard, for whoever is signed in: pages and JSON at the same addresses. */
export function dashboard(options: DashboardOptions): Middleware[] {
  const router = new Router({ sensitive: true, strict: true });
  const allow = createAccess(options.storage.organizations);
  const oneTimeView = createOneTimeViews(options.keys.signing, options.addresses.base);
  for (const add of SUBJECTS) add(router, { ...options, allow, oneTimeView });
  return [router.routes() as unknown as Middleware];
}
