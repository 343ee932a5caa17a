import type { Router } from "@koa/router";
import type { Context, Middleware } from "koa";
import type { Problem } from "../../resources/http/problem.ts";
import type { RunOnce } from "../../resources/idempotency/run-once.ts";
import type { Services } from "../../resources/services.ts";
import { requireRecentSignIn } from "../auth/authenticate.ts";
import type { Dependencies } from "../dependencies.ts";
import type { CurrentSignIn, Environment } from "../operations/operation.ts";
import type { Section } from "../ui/dashboard-layout.ts";
import type { Access } from "./access.ts";
import type { CreateOneTimeView } from "./one-time-view.ts";
import { type PageContent, redisplayForm, type Show, showPage } from "./responses.ts";

export type DashboardOptions = Pick<
  Dependencies,
  "settings" | "urls" | "storage" | "appPolicyCheck" | "keys" | "log"
> & {
  services: Services;
};

export type RouteOptions = DashboardOptions &
  Environment & {
    allow: Access;
    oneTimeView: CreateOneTimeView;
    runOnce: RunOnce;
    currentSignIn(ctx: Context): CurrentSignIn;
  };

export type RouteModule = (router: Router, options: RouteOptions) => void;

export const ORGANIZATION = "/dashboard/organizations/:id";

type Method = "put" | "patch" | "delete";
type Checks = Middleware | readonly Middleware[];

type FormPage = {
  path: string;
  /** Where the form is sent; by default the page's own path. */
  action?: string;
  /** The method and path by which programs request the change, if they have their own. */
  program?: readonly [Method, string];
  access?: Checks;
  section?: Section;
  /** Opening the page and sending the form require a recent sign-in. */
  isSensitive?: boolean;
  /** The message of `problem` is the page's error unless the result has another. */
  render(ctx: Context, problem?: Problem): PageContent | Promise<PageContent>;
  change(ctx: Context): Promise<void>;
};

/** Adds a page with a form, and the change that the form and programs request. */
export function addForm(router: Router, form: FormPage): void {
  const { path, action = path, program, section, isSensitive, render } = form;
  const access = [form.access ?? []].flat();
  const show: Show = async (ctx, error, problem) => {
    if (isSensitive) requireRecentSignIn(ctx);
    showPage(ctx, { section, error, ...(await render(ctx, problem)) });
  };
  const change = async (ctx: Context) => {
    const page = path.replaceAll(/:(\w+)/g, (_, name) => ctx.params[name]);
    if (isSensitive) requireRecentSignIn(ctx, page);
    await form.change(ctx);
  };
  router.get(path, ...access, (ctx) => show(ctx));
  if (program) router[program[0]](program[1], ...access, change);
  router.post(action, ...access, redisplayForm(show), change);
}
