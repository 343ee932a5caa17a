import type { Context } from "koa";
import type { Storage } from "../../../adapters/index.ts";
import { clientOf as clientOfRequest } from "../../operations/client-common.ts";
import { membershipOf } from "../access.ts";
import { ORGANIZATION } from "../route.ts";

export const CLIENT = `${ORGANIZATION}/client`;

/** Throws Problem if the organization has never been on a paid plan. */
export function clientOf(ctx: Context, clients: Storage["clients"]) {
  return clientOfRequest({ storage: { clients }, organization: membershipOf(ctx) });
}
