import type { Page } from "playwright-core";

/** Adds a virtual platform authenticator to a page, with a PIN or a biometric that the user always passes. */
export async function addAuthenticator(page: Page) {
  const session = await page.context().newCDPSession(page);
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
    /** Sets the signature counter of the only credential, as a copy of the authenticator would have it. */
    async setCounter(signCount: number) {
      const [credential] = await read();
      if (!credential) throw new Error("the authenticator has no credential");
      const { credentialId } = credential;
      await session.send("WebAuthn.removeCredential", { authenticatorId, credentialId });
      await session.send("WebAuthn.addCredential", {
        authenticatorId,
        credential: { ...credential, signCount },
      });
    },
    setUserVerified: (isUserVerified: boolean) =>
      session.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified }),
  };
}
