package snowflake

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	sf "github.com/snowflakedb/gosnowflake/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/egress"
)

// Tokens that live shorter than a run are fetched for the log-ins that need one: those of workload identity federation
// from the machine that Loadstone runs on, those of OAuth client credentials from their authorization server.
const (
	// tokenMargin is how long before its end a token is no longer used.
	tokenMargin = 30 * time.Second
	// tokenTimeout bounds the request for one.
	tokenTimeout = 10 * time.Second
	// maxToken bounds a token and the answer that holds it.
	maxToken = 64 << 10
	// identityVariable says which identities of its machine connections of this process may sign in with.
	identityVariable = "LOADSTONE_SNOWFLAKE_IDENTITY"
	// audience is for whom Snowflake wants identity tokens to be made.
	audience = "snowflakecomputing.com"
)

const identityHint = "Whoever runs Loadstone allows it with " + identityVariable + ": file:PATH (a token that " +
	"Kubernetes keeps fresh), env:NAME, github, aws, azure, gcp, or several with commas between. Each server, node and " +
	"command line that connects needs it."

// tokenSource gives the token of a log-in. It is safe for concurrent use.
type tokenSource struct {
	fetch func(ctx context.Context) (token string, expires time.Time, err error)

	mu      sync.Mutex
	token   string
	expires time.Time
	asked   *tokenAnswer // the fetch under way
	now     func() time.Time
}

// tokenAnswer is one fetch, for all log-ins that wait for it; token and err are there when done is closed.
type tokenAnswer struct {
	done  chan struct{}
	token string
	err   error
}

func newTokenSource(fetch func(ctx context.Context) (string, time.Time, error)) *tokenSource {
	return &tokenSource{fetch: fetch, now: time.Now}
}

// get returns a token that is good for a while yet. Many log-ins at a time wait for one fetch, each no longer than its
// own context; the end of one of them does not end the fetch of the others.
func (t *tokenSource) get(ctx context.Context) (string, error) {
	t.mu.Lock()
	if t.token != "" && t.now().Before(t.expires) {
		defer t.mu.Unlock()
		return t.token, nil
	}
	answer := t.asked
	if answer == nil {
		answer = &tokenAnswer{done: make(chan struct{})}
		t.asked = answer
		go t.ask(context.WithoutCancel(ctx), answer)
	}
	t.mu.Unlock()
	select {
	case <-answer.done:
		return answer.token, answer.err
	case <-ctx.Done():
		return "", refusedToken(ctx.Err(), "Whatever gives the token, an authorization server or an identity provider, has "+
			"not answered yet.", "The log-in ended before its token was there.")
	}
}

// ask fetches a token and tells it to all that wait.
func (t *tokenSource) ask(ctx context.Context, answer *tokenAnswer) {
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	token, expires, err := t.fetch(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	if answer.err = err; err == nil {
		answer.token = token
		now := t.now()
		// A token that lives shorter than the margin is good for half of its life.
		t.token, t.expires = token, expires.Add(-min(tokenMargin, expires.Sub(now)/2))
	}
	t.asked = nil
	close(answer.done)
}

// forget has the next log-in get a new token: the account did not take this one.
func (t *tokenSource) forget(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token == token {
		t.token = ""
	}
}

// tokens returns the source of a connection's tokens, nil where it has none.
func (s *accountSettings) tokens(p *egress.Policy) *tokenSource {
	switch {
	case s.ClientID != "":
		return newTokenSource(func(ctx context.Context) (string, time.Time, error) {
			return s.clientCredentials(ctx, p)
		})
	case s.Authenticator == sf.AuthTypeWorkloadIdentityFederation && s.IdentityProvider == providerOIDC:
		return newTokenSource(func(ctx context.Context) (string, time.Time, error) {
			return identityToken(ctx, os.Getenv)
		})
	}
	return nil
}

// refusedToken is what an authorization server or an identity provider says.
func refusedToken(cause error, hint, format string, args ...any) error {
	return &engine.Error{Code: engine.CodeTarget, Message: fmt.Sprintf(format, args...), Hint: hint, Cause: cause}
}

// clientCredentials asks the authorization server of the connection for an access token (RFC 6749, 4.4).
func (s *accountSettings) clientCredentials(ctx context.Context, p *egress.Policy) (string, time.Time, error) {
	form := url.Values{"grant_type": {"client_credentials"}}
	scope := s.Scope
	if scope == "" && s.Role != "" {
		scope = "session:role:" + s.Role
	}
	if scope != "" {
		form.Set("scope", scope)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.TokenURL, strings.NewReader(form.Encode()))
	if err != nil {
		return "", time.Time{}, fmt.Errorf("asking for an access token: %w", err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	r.SetBasicAuth(url.QueryEscape(s.ClientID), url.QueryEscape(s.ClientSecret))
	var answer struct {
		AccessToken string  `json:"access_token"`
		ExpiresIn   float64 `json:"expires_in"`
		Error       string  `json:"error"`
		Description string  `json:"error_description"`
	}
	const hint = "Check oauth_client_id, oauth_client_secret, oauth_scope and oauth_token_request_url of the connection."
	status, err := askJSON(r, p, &answer)
	where := r.URL.Host
	switch {
	case err != nil:
		return "", time.Time{}, refusedToken(err, hint, "The authorization server %s gave no access token: %s.", where,
			networkWords(err))
	case status != http.StatusOK || answer.AccessToken == "":
		said := cmp.Or(answer.Description, answer.Error, fmt.Sprintf("HTTP %d", status))
		return "", time.Time{}, refusedToken(nil, hint, "The authorization server %s gave no access token: %s.", where,
			strings.TrimSuffix(shortStatement(said), "."))
	}
	if answer.ExpiresIn <= 0 {
		answer.ExpiresIn = 60 // RFC 6749 leaves it to the server
	}
	return answer.AccessToken, time.Now().Add(time.Duration(answer.ExpiresIn * float64(time.Second))), nil
}

// askJSON makes a request, which follows no redirect: it would take the secret along.
func askJSON(r *http.Request, p *egress.Policy, into any) (status int, err error) {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: dialTimeout}
	if p != nil {
		transport.DialContext = p.Dial
	}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }() // it has been read
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxToken))
	if err != nil {
		return 0, err
	}
	if err := json.Unmarshal(body, into); err != nil && resp.StatusCode == http.StatusOK {
		return 0, errors.New("its answer is not JSON")
	}
	return resp.StatusCode, nil
}

// The providers of workload identity federation, as gosnowflake names them.
const (
	providerOIDC  = "OIDC"
	providerAWS   = "AWS"
	providerAzure = "AZURE"
	providerGCP   = "GCP"
)

// metadataTransport reaches the services of a cloud that tell a machine who it is. They are this machine's own, so that
// no policy of addresses judges them and no proxy stands between.
var metadataTransport = &http.Transport{ResponseHeaderTimeout: tokenTimeout, DisableKeepAlives: true}

// asksMachine reports a request of gosnowflake for the machine's identity, in a sign-in that is by it.
func asksMachine(provider string, r *http.Request, env func(string) string) bool {
	if r.Method != http.MethodGet || r.URL.Scheme != "http" || identityAllowed(provider, env) != nil {
		return false
	}
	switch provider {
	case providerGCP:
		return r.URL.Host == "metadata.google.internal" &&
			strings.HasPrefix(r.URL.Path, "/computeMetadata/v1/instance/service-accounts/")
	case providerAzure:
		if endpoint, err := url.Parse(env("IDENTITY_ENDPOINT")); err == nil && endpoint.Host != "" {
			return r.URL.Host == endpoint.Host && r.URL.Path == endpoint.Path
		}
		return r.URL.Host == "169.254.169.254" && r.URL.Path == "/metadata/identity/oauth2/token"
	}
	return false
}

// standInMayAsk is an error unless the process may show its identities to a stand-in of this machine: any program may
// listen on one of its ports.
func standInMayAsk(env func(string) string) error {
	for one := range strings.SplitSeq(env(identityVariable), ",") {
		if strings.EqualFold(strings.TrimSpace(one), "stand-in") {
			return nil
		}
	}
	return refuse("protocol", "Leave protocol=http out. To try a stand-in, whoever runs Loadstone adds stand-in to "+
		identityVariable+".", "This process shows its identity to no program of this machine.")
}

// entraResource is for whom Azure may make tokens: an application of the user's own. Azure's own interfaces, which
// would take such a token for the machine, have other names.
var entraResource = regexp.MustCompile(`^api://[A-Za-z0-9:/._-]{1,200}$`)

// identityAllowed is an error unless the process lets connections sign in with an identity of that provider.
func identityAllowed(provider string, env func(string) string) error {
	for one := range strings.SplitSeq(env(identityVariable), ",") {
		kind, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(one)), ":")
		switch {
		case provider == providerOIDC && (kind == "file" || kind == "env" || kind == "github"):
			return nil
		case strings.EqualFold(kind, provider) && kind != "":
			return nil
		}
	}
	return refuse("workload_identity_provider", identityHint,
		"This process lets no connection sign in with its %s identity.", provider)
}

// identityToken is the OIDC token of the machine: from a file, which Kubernetes keeps fresh, from the environment, or
// from GitHub Actions.
func identityToken(ctx context.Context, env func(string) string) (string, time.Time, error) {
	for one := range strings.SplitSeq(env(identityVariable), ",") {
		kind, where, _ := strings.Cut(strings.TrimSpace(one), ":")
		var text string
		switch strings.ToLower(kind) {
		case "file":
			b, err := os.ReadFile(where) // whoever runs the process names it
			if err != nil {
				return "", time.Time{}, refusedToken(err, identityHint, "The identity token cannot be read from its file.")
			}
			text = string(b)
		case "env":
			text = env(where)
		case "github":
			var err error
			if text, err = gitHubToken(ctx, env); err != nil {
				return "", time.Time{}, err
			}
		default:
			continue
		}
		return checkIdentityToken(strings.TrimSpace(text), time.Now())
	}
	return "", time.Time{}, identityAllowed(providerOIDC, env)
}

// gitHubToken asks for the token of a job, which needs the permission id-token: write.
func gitHubToken(ctx context.Context, env func(string) string) (string, error) {
	const hint = "The workflow's job needs permissions: id-token: write."
	address, bearer := env("ACTIONS_ID_TOKEN_REQUEST_URL"), env("ACTIONS_ID_TOKEN_REQUEST_TOKEN")
	if address == "" || bearer == "" {
		return "", refusedToken(nil, hint, "GitHub gives this process no identity token.")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"&audience="+audience, nil)
	if err != nil {
		return "", refusedToken(err, hint, "The address of GitHub's identity tokens cannot be read.")
	}
	r.Header.Set("Authorization", "Bearer "+bearer)
	var answer struct{ Value string }
	status, err := askJSON(r, nil, &answer)
	if err != nil || status != http.StatusOK || answer.Value == "" {
		return "", refusedToken(err, hint, "GitHub gives no identity token (HTTP %d).", status)
	}
	return answer.Value, nil
}

// checkIdentityToken reads when a token ends, and says what Snowflake would only refuse.
func checkIdentityToken(token string, now time.Time) (string, time.Time, error) {
	const hint = "Have a token made for the audience " + audience + "; Kubernetes renews one in a projected volume."
	var claims struct {
		Issuer   string          `json:"iss"`
		Subject  string          `json:"sub"`
		Audience json.RawMessage `json:"aud"`
		Expires  float64         `json:"exp"`
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 || len(token) > maxToken {
		return "", time.Time{}, refusedToken(nil, hint, "The identity token is not a JWT.")
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err == nil {
		err = json.Unmarshal(text, &claims)
	}
	expires := time.Unix(int64(claims.Expires), 0)
	switch {
	case err != nil || claims.Issuer == "" || claims.Subject == "":
		return "", time.Time{}, refusedToken(nil, hint, "The identity token has no issuer or no subject.")
	case !strings.Contains(string(claims.Audience), `"`+audience+`"`):
		return "", time.Time{}, refusedToken(
			nil,
			hint,
			"The identity token of %s is not made for Snowflake: its audience is %s.",
			shortStatement(claims.Subject),
			shortStatement(string(claims.Audience)),
		)
	case !now.Before(expires):
		return "", time.Time{}, refusedToken(
			nil,
			hint,
			"The identity token of %s ended at %s.",
			shortStatement(claims.Subject),
			expires.UTC().Format(time.RFC3339),
		)
	}
	return token, expires, nil
}
