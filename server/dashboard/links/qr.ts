import { renderSVG } from "uqr";
import { actorOf } from "../access.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";

// ISO/IEC 18004 requires a quiet zone of four modules. Error correction level M tolerates 15% of damage.
const RENDERING = { border: 4, ecc: "M" } as const;

/** Registers the QR code of a link, as an image or a download. */
export const qr: RouteModule = (router, { services, urls, allow }) => {
  router.get(`${ORGANIZATION}/links/:link_id/qr.svg`, allow(), async (ctx) => {
    const { slug } = await services.links.get(actorOf(ctx), ctx.params.link_id as string);
    if (ctx.query.download !== undefined) ctx.attachment(`${slug}.svg`);
    ctx.type = "image/svg+xml";
    ctx.body = renderSVG(`${urls.short}/${slug}`, RENDERING);
  });
};
