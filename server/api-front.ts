import { randomUUID } from "node:crypto";
import type { RequestListener } from "node:http";
import { SAME_ORIGIN_HEADERS } from "../resources/http/cors.ts";
import type { PlainResponse } from "../resources/http/plain-context.ts";
import type { Resources } from "../resources/index.ts";
import { clientAddress } from "./http/client-ip.ts";
import type { OnError } from "./http/on-error.ts";
import { securityHeaders } from "./http/security-headers.ts";
import type { Observability } from "./observability/index.ts";

type FrontOptions = {
  findPlainOperation: Resources["findPlainOperation"];
  /** Whether the service is on https. */
  secure: boolean;
  /** The number of proxies in front. */
  trustProxy: number;
  observability: Pick<Observability, "record" | "countApiAnswer">;
  onError: OnError;
};

/**
 * Returns a listener that serves the ordinary requests that create something through the API, and passes all others to the
 * application. Its responses are those of the application, whose operations it runs.
 */
export function apiInFront(application: RequestListener, options: FrontOptions): RequestListener {
  const { findPlainOperation, secure, trustProxy, observability, onError } = options;
  const common = [...securityHeaders(secure), ...SAME_ORIGIN_HEADERS].flat();

  return function listen(request, response) {
    const operation = findPlainOperation(request);
    if (!operation) return application(request, response);
    const started = performance.now();
    const { path: route, serve } = operation;
    const { method = "" } = request;
    const requestId = randomUUID();

    function respond({ status, headers, body }: PlainResponse) {
      response.writeHead(status, ["X-Request-Id", requestId, ...common, ...headers]).end(body);
      observability.record({ requestId, method, route, status, started });
      observability.countApiAnswer(route, status, body);
    }

    serve(request, { requestId, ip: clientAddress(request, trustProxy) })
      .then(respond)
      .catch((error) => {
        onError(error);
        response.destroy();
      });
  };
}
