import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { RunOnce } from "../../resources/idempotency/run-once.ts";
import type { Services } from "../../resources/services.ts";
import type { Dependencies } from "../dependencies.ts";
import type { CurrentSignIn, Environment } from "../operations/operation.ts";
import type { Access } from "./access.ts";
import type { CreateOneTimeView } from "./one-time-view.ts";

export type DashboardOptions = Pick<
  Dependencies,
  "settings" | "urls" | "storage" | "appPolicyCheck" | "keys" | "log"
> & { services: Services };

export type RouteOptions = DashboardOptions &
  Environment & {
    allow: Access;
    oneTimeView: CreateOneTimeView;
    runOnce: RunOnce;
    currentSignIn(ctx: Context): CurrentSignIn;
  };

export type RouteModule = (router: Router, options: RouteOptions) => void;

export const ORGANIZATION = "/dashboard/organizations/:id";
