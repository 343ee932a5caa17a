import type { CDPSession, Page } from "playwright-core";

/** A virtual authenticator of a browser page, with a PIN or a biometric that the user always passes. */
export type Authenticator = {
  /** Returns the stored credentials. */
  credentials(): Promise<{ credentialId: string; signCount: number }[]>;
  /** Sets the signature counter of the only credential, as a copy of the authenticator would have it. */
  setCounter(signCount: number): Promise<void>;
  /** Lets the authenticator verify the user, or fail to. */
  setUserVerified(isUserVerified: boolean): Promise<void>;
};

/** Adds a platform authenticator to a page. */
export async function addAuthenticator(page: Page): Promise<Authenticator> {
  const session: CDPSession = await page.context().newCDPSession(page);
  await session.send("WebAuthn.enable");
  const { authenticatorId } = await session.send("WebAuthn.addVirtualAuthenticator", {
    options: {
      protocol: "ctap2",
      transport: "internal",
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
  const read = async () => (await session.send("WebAuthn.getCredentials", { authenticatorId })).credentials;
  return {
    credentials: read,
    async setCounter(signCount) {
      const [credential] = await read();
      if (!credential) throw new Error("the authenticator has no credential");
      await session.send("WebAuthn.removeCredential", {
        authenticatorId,
        credentialId: credential.credentialId,
      });
      await session.send("WebAuthn.addCredential", {
        authenticatorId,
        credential: { ...credential, signCount },
      });
    },
    async setUserVerified(isUserVerified) {
      await session.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified });
    },
  };
}
