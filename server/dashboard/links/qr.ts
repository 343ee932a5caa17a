import { renderSVG } from "uqr";
import { actorOf } from "./access.ts";
import { ORGANIZATION, type Subject } from "./subject.ts";

// ISO/IEC 18004: readers want four modules of white around the code; level M survives a scratch of 15 %.
const RENDERING = { border: 4, ecc: "M" } as const;

/** The QR code of a link: a picture of its short address, to show or to keep. */
export const qr: Subject = (router, { cores, addresses, allow }) => {
  router.get(`${ORGANIZATION}/links/:link_id/qr.svg`, allow(), async (ctx) => {
    const { slug } = await cores.links.get(actorOf(ctx), ctx.params.link_id as string);
    if (ctx.query.download !== undefined) ctx.attachment(`${slug}.svg`);
    ctx.type = "image/svg+xml";
    ctx.body = renderSVG(`${addresses.short}/${slug}`, RENDERING);
  });
};
