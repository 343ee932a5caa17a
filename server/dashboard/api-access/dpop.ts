import type { Router } from "@koa/router";
import type { Context } from "koa";
import { z } from "zod";
import { notFound } from "../../../resources/http/problem.ts";
import { validate } from "../../../resources/http/validate.ts";
import { requireRecentSignIn } from "../../auth/authenticate.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { membershipOf, signedInUserOf } from "../access.ts";
import { respondToChange, switchFieldsOf } from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";

const setting = z.strictObject({ require_dpop: z.boolean({ error: "must be true or false" }) });

/** Adds the routes that let owners require DPoP. */
export function addDpopRoutes(router: Router, { storage, allow }: Parameters<RouteModule>[1]): void {
  const path = `${ORGANIZATION}/client/require-dpop`;
  const change = async (ctx: Context) => {
    const { id } = membershipOf(ctx);
    const to = sectionPath(id, "client");
    requireRecentSignIn(ctx, to);
    const { require_dpop } = validate(setting, await switchFieldsOf(ctx, "require_dpop"));
    const { actor } = signedInUserOf(ctx);
    if (!(await storage.dpopRequirement.set(id, require_dpop, actor))) throw notFound("organization");
    respondToChange(ctx, {
      to,
      done: require_dpop ? "dpop-required" : "dpop-optional",
      body: { require_dpop },
    });
  };
  router.put(path, allow("owner"), change);
  router.post(path, allow("owner"), change);
}
