const JSON_TYPE = "application/json";
const STREAM_TYPE = "text/event-stream";

/** The types of a response, by the names that the SDK looks for. */
export const RESPONSE_TYPES = [JSON_TYPE, STREAM_TYPE];

/**
 * Converts a successful response to the only type that a client accepts. The specification asks clients to accept both,
 * but some hosts send one. Without a session, a stream has nothing but the responses to its request.
 */
export async function convertTo(type: string, isBatch: boolean, response: Response): Promise<Response> {
  const actual = response.headers.get("content-type") ?? "";
  if (!response.ok || !response.body || actual.startsWith(type)) return response;
  const headers = new Headers(response.headers);
  headers.delete("content-length");
  headers.set("content-type", type);
  const text = await response.text();
  return new Response(type === JSON_TYPE ? toJson(text, isBatch) : toStream(text), { status: 200, headers });
}

function toJson(stream: string, isBatch: boolean): string {
  const responses = stream
    .split("\n")
    .filter((line) => /^data: *\S/.test(line))
    .map((line) => line.slice("data:".length))
    .filter((line) => !("method" in JSON.parse(line)));
  return isBatch ? `[${responses.join(",")}]` : (responses[0] ?? "");
}

function toStream(json: string): string {
  return `event: message\ndata: ${json}\n\n`;
}
