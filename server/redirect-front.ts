import { randomUUID } from "node:crypto";
import type { RequestListener, ServerResponse } from "node:http";
import { PAGE_HEADERS, type Redirect, type Redirects, redirectHeaders } from "../resources/links/redirect.ts";
import { securityHeaders } from "./http/security-headers.ts";
import type { Observability } from "./observability/index.ts";
import { SLUG_ROUTE } from "./observability/route-label.ts";

type FrontOptions = {
  redirects: Pick<Redirects, "followPlain">;
  /** Whether the service is on https. */
  secure: boolean;
  observability: Pick<Observability, "record" | "keepStart">;
};

/**
 * Returns a listener that responds to ordinary requests for short links, which are most of the requests, and passes all
 * others to the application. Its responses are those of the application.
 */
export function redirectInFront(
  application: RequestListener,
  { redirects, secure, observability }: FrontOptions,
): RequestListener {
  const common = securityHeaders(secure).filter(([name]) => !PAGE_HEADERS.has(name));

  function respond(response: ServerResponse, { status, location }: Redirect, started: number) {
    const requestId = randomUUID();
    const headers = [["X-Request-Id", requestId], ...common, ...redirectHeaders(location), EMPTY];
    response.writeHead(status, headers.flat()).end();
    observability.record({ requestId, method: "GET", route: SLUG_ROUTE, status, started });
  }

  return function listen(request, response) {
    const started = performance.now();
    const following = redirects.followPlain(request);
    if (!following) return application(request, response);
    following.then(
      (redirect) => respond(response, redirect, started),
      () => {
        observability.keepStart(request, started);
        application(request, response);
      },
    );
  };
}

const EMPTY = ["Content-Length", "0"];
