/** Where Cursor and Visual Studio Code receive codes when they register themselves. */
export const EDITOR_REDIRECT_URIS = [
  "https://www.cursor.com/agents/mcp/oauth/callback",
  "cursor://anysphere.cursor-mcp/oauth/callback",
  "cursor://anysphere.cursor-retrieval/oauth/callback",
  "https://insiders.vscode.dev/redirect",
];
