import type { Check } from "../check.ts";
import { clientChecks } from "./clients.ts";
import { codeChecks } from "./codes.ts";
import { dpopChecks } from "./dpop.ts";
import { introspectionChecks, refreshChecks, revocationChecks } from "./grants.ts";
import { mcpChecks } from "./mcp.ts";
import { metadataChecks } from "./metadata.ts";
import { pushedRequestChecks } from "./pushed-requests.ts";
import { redirectChecks } from "./redirects.ts";
import { corsChecks, resourceChecks } from "./resources.ts";
import { tokenChecks } from "./tokens.ts";
import { transportChecks } from "./transport.ts";

/** All checks, in the order in which they run. Most that need a user come last. */
export const CHECKS: Check[] = [
  ...metadataChecks,
  ...transportChecks,
  ...clientChecks,
  ...tokenChecks,
  ...introspectionChecks,
  ...revocationChecks,
  ...resourceChecks,
  ...corsChecks,
  ...dpopChecks,
  ...mcpChecks,
  ...redirectChecks,
  ...pushedRequestChecks,
  ...codeChecks,
  ...refreshChecks,
];
