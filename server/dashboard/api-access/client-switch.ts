import type { Router } from "@koa/router";
import type { Context } from "koa";
import { z } from "zod";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import { hasAtMost, isLine } from "../../../resources/http/text.ts";
import { validate } from "../../../resources/http/validate.ts";
import { requireRecentSignIn } from "../../auth/authenticate.ts";
import { showDisabled } from "../../clients/client-view.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { membershipOf, signedInUserOf } from "../access.ts";
import {
  formFieldsOf,
  isForm,
  redisplayForm,
  respondToChange,
  type Show,
  showPage,
  splitFieldErrors,
} from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";
import { clientOf } from "./client.ts";
import { disableForm } from "./client-switch-panel.ts";

const PATH = `${ORGANIZATION}/client`;
const REASON_MAX = 255;
const RULE = `must be 1 to ${REASON_MAX} characters without control characters`;
const disabling = z.strictObject({
  reason: z
    .string({ error: RULE })
    .trim()
    .refine((text) => text !== "" && hasAtMost(REASON_MAX, text) && isLine(text), { error: RULE })
    .nullable()
    .default(null),
});

/** Adds the routes with which an owner disables and enables the client. */
export function addSwitchRoutes(router: Router, { storage, allow }: Parameters<RouteModule>[1]): void {
  const { clients } = storage;
  const owners = allow("owner");

  const showForm: Show = async (ctx, _message, problem) => {
    requireRecentSignIn(ctx, `${sectionPath(membershipOf(ctx).id, "client")}/disable`);
    const { id } = membershipOf(ctx);
    await clientOf(clients, id);
    const { error, errors } = splitFieldErrors(problem);
    const body = disableForm(id, { csrf: signedInUserOf(ctx).csrf, error: errors.reason });
    showPage(ctx, { title: "Disable client", section: "client", error }, body);
  };
  router.get(`${PATH}/disable`, owners, (ctx) => showForm(ctx));

  router.post(`${PATH}/disable`, owners, redisplayForm(showForm), async (ctx) => {
    const { id } = membershipOf(ctx);
    const to = sectionPath(id, "client");
    requireRecentSignIn(ctx, `${to}/disable`);
    const { reason } = validate(disabling, await reasonIn(ctx));
    const disabled = await clients.disable(id, reason, signedInUserOf(ctx).actor);
    if (!disabled) throw notFound("client");
    respondToChange(ctx, { to, done: "client-disabled", body: { disabled: showDisabled(disabled) } });
  });

  router.post(`${PATH}/enable`, owners, async (ctx) => {
    const { id } = membershipOf(ctx);
    const to = sectionPath(id, "client");
    requireRecentSignIn(ctx, to);
    const refusal = await clients.enable(id, signedInUserOf(ctx).actor);
    if (refusal === "missing") throw notFound("client");
    if (refusal === "operator") {
      const detail = "The operator of this service disabled the client. Contact the operator to enable it.";
      throw new Problem(403, "disabled_by_operator", detail);
    }
    respondToChange(ctx, { to, done: "client-enabled" });
  });
}

/** Returns the submitted fields; the reason in a form may be empty. */
async function reasonIn(ctx: Context) {
  const { reason, ...fields } = await formFieldsOf(ctx);
  const isEmpty = reason === undefined || (isForm(ctx) && reason === "");
  return isEmpty ? fields : { ...fields, reason };
}
