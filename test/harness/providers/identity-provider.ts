import { createPrivateKey, type JsonWebKey, type KeyObject } from "node:crypto";
import { OAuth2Server } from "oauth2-mock-server";
import type { Page, Person } from "./person.ts";
import { startTestService, type TestService } from "./service.ts";

/** What a token holds before it is signed. */
export type Token = { header: Record<string, unknown>; payload: Record<string, unknown> };
/** What an id_token says of the person, or what is wrong with it. */
export type Change = (token: Token) => unknown;

/** An identity provider, and what whoever stands between it and the service could do. */
export type TestProvider = {
  issuer: string;
  /** Goes where the person was sent to; resolves to where the provider sends the browser back to. */
  answer(page: Page): Promise<string>;
  /** Changes the next answer of the token endpoint. */
  tamper(change: (body: Record<string, unknown>) => unknown): void;
  /** What it signs with. */
  privateKey: KeyObject;
  publicKey: JsonWebKey;
  stop(): Promise<void>;
};

/** An identity provider that says what a test wants it to say. */
export type MockProvider = Awaited<ReturnType<typeof startMockProvider>>;

/** The settings of a service that signs people in there. */
export function providerSettings(issuer: string): Record<string, string> {
  return {
    IDP_ISSUER: issuer,
    IDP_CLIENT_ID: "linkgate-at-idp",
    IDP_CLIENT_SECRET: "a secret of the identity provider",
    IDP_NAME: "Example ID",
  };
}

/** Starts one; the caller stops it. */
export async function startMockProvider(port = 0) {
  const server = new OAuth2Server();
  await server.issuer.keys.generate("RS256");
  await server.start(port, "localhost");
  const { service } = server;
  const issuer = server.issuer.url as string;
  const [privateKey] = server.issuer.keys.toJSON(true);
  const [publicKey] = server.issuer.keys.toJSON();

  async function answer(page: Page): Promise<string> {
    const response = await fetch(page.url, { redirect: "manual" });
    return response.headers.get("location") as string;
  }

  return {
    server,
    service,
    issuer,
    answer,
    privateKey: createPrivateKey({ key: privateKey as JsonWebKey, format: "jwk" }),
    publicKey: publicKey as JsonWebKey,
    tamper(change: (body: Record<string, unknown>) => unknown) {
      service.once("beforeResponse", ({ body }) => void change(body as Record<string, unknown>));
    },
    /** Changes the next id_token. The access token that is made beside it has no audience. */
    say(change: Change) {
      const onToken = (token: Token) => {
        if (token.payload.aud === undefined) return;
        service.off("beforeTokenSigning", onToken);
        change(token);
      };
      service.on("beforeTokenSigning", onToken);
    },
    stop: () => server.stop(),
  };
}

/** From the sign-in page over the provider and back. */
export async function signInExternally(
  service: Pick<TestService, "url">,
  provider: Pick<TestProvider, "answer">,
  person: Person,
  query = "",
): Promise<Page> {
  const away = await person.open(`${service.url}/auth/sso${query}`);
  return person.open(await provider.answer(away));
}

/** A service with an identity provider of its own. */
export async function startWithProvider(settings: Record<string, string> = {}) {
  const provider = await startMockProvider();
  const service = await startTestService({ ...providerSettings(provider.issuer), ...settings });
  return {
    provider,
    service,
    async close() {
      await service.close();
      await provider.stop();
    },
  };
}
