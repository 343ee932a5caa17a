import type { CustomFetch } from "openid-client";
import type { TraceOutgoing } from "../../../resources/outbound/outgoing-trace.ts";

// The largest documents of identity providers, with dozens of keys, stay below this.
const MAX_BYTES = 256 * 1024;

/** Creates a fetch for responses of limited size. It throws a TypeError like `fetch` if one is larger. */
export function createBoundedFetch(trace: TraceOutgoing): CustomFetch {
  return (url, options) =>
    trace({ method: options.method, url }, (traceHeaders) =>
      fetchBounded(url, { ...options, headers: { ...options.headers, ...traceHeaders } }),
    );
}

const fetchBounded: CustomFetch = async (url, options) => {
  const response = await fetch(url, options as RequestInit);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    // Leaving the loop closes the connection.
    if (bytes > MAX_BYTES)
      throw new TypeError("fetch failed", {
        cause: new Error(`the response is larger than ${MAX_BYTES} bytes`),
      });
    chunks.push(chunk);
  }
  const { status, headers } = response;
  return new Response(chunks.length > 0 ? Buffer.concat(chunks) : null, { status, headers });
};
