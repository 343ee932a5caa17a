import type { Context, Next } from "koa";
import { SignInRequired } from "../auth/error-handler.ts";
import { type Input, prefersHtml } from "../http/request-body.ts";
import { breakable, hidden, panelForm } from "../ui/controls.ts";
import { html } from "../ui/html.ts";
import { capitalized } from "../ui/text.ts";
import { formFieldsOf, isForm } from "./forms.ts";
import type { CreateOneTimeView } from "./one-time-view.ts";
import { withDone } from "./responses.ts";

const PATH = "/dashboard/continue";
// What fits into a cookie, encrypted.
const MAX_LENGTH = 2500;
// No cookie has these, not even an encrypted one.
const SECRET = /password|passkey|code|secret/;

type Kept = { summary: string; where: string; action: string; fields: [string, string][]; page: string };

/** Keeps a form whose user has to sign in again, and then asks whether to send it. */
export function createStepUp(oneTimeView: CreateOneTimeView) {
  const view = oneTimeView<Kept>();

  function keep(ctx: Context, input: Input, page: string): string | undefined {
    // The parser of forms turns more than 20 values into an object.
    const valuesOf = (value: unknown) => (value instanceof Object ? Object.values(value) : [value]);
    const fields = Object.entries(input).flatMap(([name, value]) =>
      valuesOf(value).map((one): [string, string] => [name, String(one)]),
    );
    const { summary = "Continue where you left off", membership } = ctx.state;
    const kept: Kept = { summary, where: membership?.name ?? "", action: ctx.url, fields, page };
    const isKept = !SECRET.test(Object.keys(input).join()) && JSON.stringify(kept).length <= MAX_LENGTH;
    return isKept ? view.keep(ctx, PATH, kept) : undefined;
  }

  return {
    path: `${PATH}/:view`,

    async keepForm(ctx: Context, next: Next) {
      try {
        await next();
      } catch (error) {
        if (!(error instanceof SignInRequired && isForm(ctx) && prefersHtml(ctx))) throw error;
        const { returnTo, again } = error;
        const to = keep(ctx, await formFieldsOf(ctx), returnTo) ?? withDone(returnTo, "signed-in-again");
        throw new SignInRequired(to, { again });
      }
    },

    show: (ctx: Context) =>
      view.show(ctx, {
        kind: "form",
        explanation: "For your security, it’s shown once. Start again from the page that you came from.",
        back: { href: "/dashboard", text: "Go to the dashboard" },
        page: ({ summary, where, action, fields, page }) => ({
          title: `${summary}?`,
          body: panelForm(
            { action, submit: summary, cancel: page },
            html`<p>You signed in again. Nothing has been changed yet${where && html` in <strong><bdi>${where}</bdi></strong>`}.</p>
${fields.some(([, value]) => value) && html`<dl class="facts">${fields.map(([name, value]) => value && html`<dt>${labelOf(name)}</dt><dd>${breakable(value)}</dd>`)}</dl>`}
${fields.map(([name, value]) => hidden(name, value))}`,
          ),
        }),
      }),
  };
}

/** `redirect_uri` → `Redirect URI` */
function labelOf(name: string): string {
  return capitalized(name.replaceAll("_", " ")).replace(/\b(id|uri|url)\b/i, (word) => word.toUpperCase());
}
