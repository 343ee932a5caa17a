import type { Context } from "koa";

/** Logs an error that is answered with a 5xx. */
export type OnError = (error: unknown, ctx?: Pick<Context, "state">) => void;
