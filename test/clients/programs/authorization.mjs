import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";

/** Returns what the documentation of the MCP SDK calls a provider: it keeps everything in memory, and opens a browser. */
export async function createProvider() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const redirectUrl = `http://127.0.0.1:${server.address().port}/callback`;
  const kept = {};
  const keep = (name) => (value) => {
    kept[name] = value;
  };
  return {
    redirectUrl,
    clientMetadata: {
      client_name: "A program",
      redirect_uris: [redirectUrl],
      token_endpoint_auth_method: "none",
    },
    clientInformation: () => kept.client,
    saveClientInformation: keep("client"),
    tokens: () => kept.tokens,
    saveTokens: keep("tokens"),
    codeVerifier: () => kept.verifier,
    saveCodeVerifier: keep("verifier"),
    authorizationServerInformation: () => kept.server,
    saveAuthorizationServerInformation: keep("server"),
    state: () => crypto.randomUUID(),
    saveState: keep("state"),
    storedState: () => kept.state,
    redirectToAuthorization: (url) => openInBrowser(url),
    async callback() {
      const [request, response] = await once(server, "request");
      response.setHeader("connection", "close").end("Back in the program");
      server.close();
      return new URL(request.url, redirectUrl).searchParams;
    },
  };
}

export function openInBrowser(url) {
  spawn("xdg-open", [url.href]);
}
