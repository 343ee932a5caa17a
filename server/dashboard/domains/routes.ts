import type { Context } from "koa";
import { MANAGERS } from "../../../resources/access/scopes.ts";
import { domainTag, toView } from "../../../resources/domains/schema.ts";
import type { Domain } from "../../../resources/domains/types.ts";
import { preconditionOf } from "../../../resources/http/etag.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { pathWith } from "../../ui/table.ts";
import { actorOf, membershipOf, pathTo } from "../access.ts";
import type { Done } from "../confirmation.ts";
import * as forms from "../forms.ts";
import { respondToChange, sendJson, showPage } from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";
import { requirePlan } from "../webhooks/context.ts";
import { deletionForm, domainPage, domainsPage, formFieldOf, isProved, newForm, toInput } from "./pages.ts";

const DOMAINS = `${ORGANIZATION}/domains`;
const DOMAIN = `${DOMAINS}/:domain_id`;

const EDIT_CONFLICT =
  "This domain was changed while you were editing it. If you save again, your values replace the current ones.";

/** Adds the list of domains, the page of a domain, and the forms that add, verify, change and delete it. */
export const domains: RouteModule = (router, { services: { domains, links }, urls, allow }) => {
  const access = [allow(...MANAGERS)];
  const shortHost = new URL(urls.short).host;
  const find = (ctx: Context) => domains.get(actorOf(ctx), idOf(ctx));

  router.get(DOMAINS, ...access, async (ctx) => {
    const all = await domains.list(actorOf(ctx));
    if (!prefersHtml(ctx)) return sendJson(ctx, { data: all.map(toView), next_cursor: null });
    const { plan } = membershipOf(ctx);
    const intro = "Use your own domains in short links.";
    const page = domainsPage(all, plan, pathOf(ctx), pathTo(ctx, "plan"));
    showPage(ctx, { title: "Domains", intro, section: "domains", ...page });
  });

  forms.addForm(router, {
    access: [...access, requirePlan],
    section: "domains",
    path: `${DOMAINS}/new`,
    action: DOMAINS,
    async render(ctx, problem) {
      const { errors, ...error } = forms.splitFieldErrors(problem);
      const fields = problem ? await forms.formFieldsOf(ctx) : {};
      return { title: "Add domain", ...error, body: newForm(pathOf(ctx), fields, errors) };
    },
    async change(ctx) {
      const input = await forms.inputOf(ctx, (fields) => ({
        ...fields,
        case_sensitive: fields.case_sensitive !== "false",
      }));
      const domain = await domains.create(actorOf(ctx), input);
      respondWithDomain(ctx, domain, domain.verified ? "domain-verified" : "domain-added", 201);
    },
  });

  const show: forms.Show = async (ctx, _error, problem) => {
    const domain = await find(ctx);
    if (!prefersHtml(ctx)) return respondWithDomain(ctx, domain);
    const { errors, ...error } = forms.splitFieldErrors(problem, formFieldOf);
    const sent = problem ? await forms.formFieldsOf(ctx) : {};
    // The button that verifies it sends none.
    const isForm = sent.version !== undefined;
    const showsError = !isForm && !isProved(domain);
    const page = domainPage({
      domain,
      path: pathOf(ctx, domain),
      links: pathWith(pathTo(ctx, "links"), { domain: domain.host }),
      shortHost,
      sent: isForm ? sent : undefined,
      errors,
      error: showsError ? error.error : undefined,
    });
    const conflict = problem?.code === "precondition_failed" && { error: EDIT_CONFLICT };
    showPage(ctx, { section: "domains", showsError, ...page, ...error, ...conflict });
  };
  router.get(DOMAIN, ...access, (ctx) => show(ctx));

  forms.addChange(router, {
    access,
    show,
    action: DOMAIN,
    program: ["patch", DOMAIN],
    async change(ctx) {
      const tagsOf = (version: number) =>
        [true, false].map((isDefault) => domainTag({ version, default: isDefault }));
      const { input, precondition } = await forms.changesOf(ctx, toInput, tagsOf);
      const domain = await domains.update(actorOf(ctx), idOf(ctx), input, precondition);
      respondWithDomain(ctx, domain, "domain-saved");
    },
  });

  forms.addChange(router, {
    access,
    show,
    action: `${DOMAIN}/verify`,
    async change(ctx) {
      respondWithDomain(ctx, await domains.verify(actorOf(ctx), idOf(ctx)), "domain-verified");
    },
  });

  forms.addForm(router, {
    access,
    section: "domains",
    path: `${DOMAIN}/delete`,
    program: ["delete", DOMAIN],
    async render(ctx) {
      const domain = await find(ctx);
      const count = await links.matches.count(actorOf(ctx), { domain: domain.host });
      return { title: `Delete ${domain.host}?`, body: deletionForm(pathOf(ctx, domain), count, shortHost) };
    },
    async change(ctx) {
      const query = ctx.method === "DELETE" ? ctx.query : forms.withoutEmpty(await forms.formFieldsOf(ctx));
      await domains.remove(actorOf(ctx), idOf(ctx), query, preconditionOf(ctx));
      respondToChange(ctx, { to: pathOf(ctx), done: "domain-deleted" });
    },
  });
};

function idOf(ctx: Context): string {
  return ctx.params.domain_id as string;
}

function pathOf(ctx: Context, domain?: Domain): string {
  const path = pathTo(ctx, "domains");
  return domain ? `${path}/${domain.id}` : path;
}

function respondWithDomain(ctx: Context, domain: Domain, done?: Done, status = 200): void {
  if (!prefersHtml(ctx)) ctx.set("ETag", domainTag(domain));
  respondToChange(ctx, { to: pathOf(ctx, domain), done, status, body: toView(domain) });
}
