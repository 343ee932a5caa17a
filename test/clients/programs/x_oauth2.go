// Client credentials, code with PKCE and refresh with golang.org/x/oauth2.
package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/url"
	"os"
	"strings"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

var (
	issuer   = os.Getenv("ISSUER")
	endpoint = oauth2.Endpoint{AuthURL: issuer + "/oauth/authorize", TokenURL: issuer + "/oauth/token"}
)

type result struct {
	AccessToken  string `json:"accessToken"`
	Organization string `json:"organization"`
}

func used(source oauth2.TokenSource) result {
	token, err := source.Token()
	check(err)
	response, err := oauth2.NewClient(context.Background(), source).Get(issuer + "/v1/organization")
	check(err)
	defer response.Body.Close()
	var organization struct {
		ID string `json:"id"`
	}
	check(json.NewDecoder(response.Body).Decode(&organization))
	return result{token.AccessToken, organization.ID}
}

func refusal(_ *oauth2.Token, err error) string {
	var refused *oauth2.RetrieveError
	if !errors.As(err, &refused) {
		log.Fatal("the code was not refused: ", err)
	}
	var body struct {
		Error string `json:"error"`
	}
	check(json.Unmarshal(refused.Body, &body))
	return body.Error
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func random() string {
	bytes := make([]byte, 32)
	_, err := rand.Read(bytes)
	check(err)
	return base64.RawURLEncoding.EncodeToString(bytes)
}

func main() {
	ctx := context.Background()
	machine := clientcredentials.Config{
		ClientID:     os.Getenv("CLIENT_ID"),
		ClientSecret: os.Getenv("CLIENT_SECRET"),
		TokenURL:     endpoint.TokenURL,
		Scopes:       []string{"links:read"},
	}
	app := oauth2.Config{
		ClientID:     os.Getenv("CLIENT_ID"),
		ClientSecret: os.Getenv("CLIENT_SECRET"),
		Endpoint:     endpoint,
		RedirectURL:  os.Getenv("REDIRECT_URI"),
		Scopes:       strings.Fields(os.Getenv("SCOPE")),
	}
	state, verifier := random(), random()
	challenge := sha256.Sum256([]byte(verifier))
	fmt.Println(app.AuthCodeURL(
		state,
		oauth2.SetAuthURLParam("code_challenge", base64.RawURLEncoding.EncodeToString(challenge[:])),
		oauth2.SetAuthURLParam("code_challenge_method", "S256"),
	))
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	check(err)
	callback, err := url.Parse(strings.TrimSpace(line))
	check(err)
	if callback.Query().Get("state") != state {
		log.Fatal("the state differs")
	}
	token, err := app.Exchange(ctx, callback.Query().Get("code"), oauth2.SetAuthURLParam("code_verifier", verifier))
	check(err)
	expired := &oauth2.Token{RefreshToken: token.RefreshToken}
	check(json.NewEncoder(os.Stdout).Encode(map[string]any{
		"clientCredentials": used(machine.TokenSource(ctx)),
		"code":              used(oauth2.StaticTokenSource(token)),
		"refresh":           used(app.TokenSource(ctx, expired)),
		"error":             refusal(app.Exchange(ctx, "unknown", oauth2.SetAuthURLParam("code_verifier", verifier))),
	}))
}
