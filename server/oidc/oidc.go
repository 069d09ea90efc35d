// Package oidc signs users in by an OpenID Connect provider: authorization code with PKCE. A provider says who somebody
// is and which groups it is in; which role a group has is said here, and holds anew at each sign-in.
//
// What a flow has to remember between its two requests is sealed into a cookie of its browser, for ten minutes: state,
// nonce and PKCE's verifier. So a callback that another browser began, or nobody, is refused.
package oidc

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/base/textsafe"
	"github.com/loadstone-db/loadstone/engine/store"
)

// Options say which provider signs users in, and what they may.
type Options struct {
	// Issuer is the provider's address; https, but for loopback.
	Issuer       string
	ClientID     string
	ClientSecret secret.Secret // empty for a public client
	// Name is what the button says: Sign in with Name.
	Name string
	// Roles are those of groups; of several the one that may most holds.
	Roles map[string]store.Role
	// DefaultRole is that of who is in none of them; empty refuses it.
	DefaultRole store.Role
	// GroupsClaim is where the groups stand ("groups"), in the ID token or in what userinfo says.
	GroupsClaim string
	// Scopes are asked for beside openid.
	Scopes []string
}

// Check refuses options that cannot work; the errors name the flags.
func (o Options) Check() error {
	u, err := url.Parse(o.Issuer)
	switch {
	case err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil ||
		u.Scheme != "https" && u.Scheme != "http":
		return engine.InvalidField("--oidc-issuer", "is not the address of a provider", "https://login.example.com/realm")
	case egress.IsForbiddenHost(u.Hostname()):
		return egress.InvalidFlag("--oidc-issuer", u.Hostname())
	case !isPrivate(u):
		return engine.InvalidField("--oidc-issuer", "is plain HTTP", "use https: who is between could sign in as anybody")
	case o.ClientID == "":
		return engine.InvalidField("--oidc-client-id", "is required with --oidc-issuer", "register Loadstone at the provider")
	case len(o.Roles) == 0 && o.DefaultRole == "":
		return engine.InvalidField("--oidc-role-map", "is empty: nobody could sign in",
			"for example dba=admin, once for each group")
	}
	for group, role := range o.Roles {
		if store.CheckUser("somebody", role) != nil || group == "" {
			return engine.InvalidField("--oidc-role-map", fmt.Sprintf("gives %q the role %q", group, role),
				"roles are admin, operator and viewer")
		}
	}
	if o.DefaultRole != "" && store.CheckUser("somebody", o.DefaultRole) != nil {
		return engine.InvalidField("--oidc-default-role", "is no role", "choose admin, operator or viewer, or leave it out")
	}
	return nil
}

// isPrivate reports whether nobody is between this machine and an address.
func isPrivate(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
}

// algorithms are those of ID tokens: with the provider's private key. HMAC would take the client's secret, or what an
// attacker knows, for the key.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256,
	oidc.ES384, oidc.ES512, oidc.EdDSA}

// flowTTL bounds the time between the button and the return from the provider.
const flowTTL = 10 * time.Minute

// client speaks with one provider. It is safe for concurrent use.
type client struct {
	opts Options
	http *http.Client
	seal sealer

	mu       sync.Mutex
	provider *oidc.Provider
	// used are the states of flows that came back, until they would have expired.
	used map[string]time.Time
}

func newClient(o Options) *client {
	key := sha256.Sum256([]byte("loadstone oidc flow\x00" + o.ClientID + "\x00" + o.ClientSecret.Reveal()))
	if o.ClientSecret.IsZero() {
		// What servers do not share, one has to begin and end by itself.
		_, _ = rand.Read(key[:])
	}
	return &client{
		opts: o,
		seal: newSealer(key),
		used: map[string]time.Time{},
		http: &http.Client{
			Timeout:       10 * time.Second,
			CheckRedirect: checkRedirect,
			Transport: limitedTransport{&http.Transport{
				Proxy: http.ProxyFromEnvironment, DialContext: egress.Unrestricted().Dial, TLSHandshakeTimeout: 10 * time.Second,
				TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
				IdleConnTimeout: 90 * time.Second}},
		},
	}
}

// checkRedirect says which redirects of a provider are followed: what is asked for, never what is told, and not to
// where somebody may be between.
func checkRedirect(r *http.Request, via []*http.Request) error {
	switch {
	case via[0].Method != http.MethodGet:
		return http.ErrUseLastResponse
	case len(via) >= maxRedirects || !isPrivate(r.URL):
		return fmt.Errorf("the provider leads to %s, which is not followed", r.URL.Redacted())
	}
	return nil
}

const maxRedirects = 3

// unreachable is the refusal when the provider cannot be asked.
func unreachable(err error) error {
	return &engine.Error{Code: engine.CodeUnavailable, Message: "The sign-in provider does not answer as it should.",
		Hint: "Try again in a moment, or sign in with a password or a link.", Cause: err}
}

// discover is the provider, asked for where it is once.
func (c *client) discover(ctx context.Context) (*oidc.Provider, error) {
	c.mu.Lock()
	p := c.provider
	c.mu.Unlock()
	if p != nil {
		return p, nil
	}
	// The provider keeps its context for the keys, so that it must not end with this request.
	p, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), c.http), c.opts.Issuer)
	if err != nil {
		return nil, unreachable(fmt.Errorf("asking the provider where it is: %w", err))
	}
	if err := checkEndpoints(p); err != nil {
		return nil, unreachable(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.provider = p
	return p, nil
}

// checkEndpoints refuses a provider that names addresses where somebody may be between: the client's secret goes there.
func checkEndpoints(p *oidc.Provider) error {
	var message struct {
		Auth     string `json:"authorization_endpoint"`
		Token    string `json:"token_endpoint"`
		Keys     string `json:"jwks_uri"`
		UserInfo string `json:"userinfo_endpoint"`
	}
	if err := p.Claims(&message); err != nil {
		return fmt.Errorf("reading the addresses of the provider: %w", err)
	}
	for _, at := range []string{message.Auth, message.Token, message.Keys, message.UserInfo} {
		if u, err := url.Parse(at); at != "" && (err != nil || !isPrivate(u)) {
			return fmt.Errorf("the provider names %q, which is no address of https", at)
		}
	}
	return nil
}

func (c *client) config(p *oidc.Provider, callback string) *oauth2.Config {
	scopes := append([]string{oidc.ScopeOpenID}, c.opts.Scopes...)
	slices.Sort(scopes[1:])
	return &oauth2.Config{ClientID: c.opts.ClientID, ClientSecret: c.opts.ClientSecret.Reveal(), Endpoint: p.Endpoint(),
		RedirectURL: callback, Scopes: slices.Compact(scopes)}
}

// flow is what is remembered between the two requests.
type flow struct {
	State, Nonce, Verifier, Next string
	Until                        time.Time
}

// begin returns where to send the browser, and the cookie it comes back with.
func (c *client) begin(ctx context.Context, callback, next string) (to, cookie string, err error) {
	p, err := c.discover(ctx)
	if err != nil {
		return "", "", err
	}
	f := flow{State: randomToken(), Nonce: randomToken(), Verifier: oauth2.GenerateVerifier(), Next: safeNext(next),
		Until: time.Now().Add(flowTTL)}
	to = c.config(p, callback).AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier))
	cookie, err = c.seal.seal(f)
	return to, cookie, err
}

func randomToken() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails: the runtime ends the process instead
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// rejection is the answer to a return that proves nothing; why is for the log alone.
func rejection(why string, cause error) error {
	if cause == nil {
		cause = errors.New(why)
	} else {
		cause = fmt.Errorf("%s: %w", why, cause)
	}
	return &engine.Error{Code: engine.CodeUnauthorized, Message: "The sign-in by the provider was not accepted.",
		Hint: "Begin again with the button; a sign-in works once, within 10 minutes.", Cause: cause}
}

// callbackParams is what a provider sends a browser back with.
type callbackParams struct{ Code, State, Issuer, Error string }

// userInfo is who has signed in.
type userInfo struct {
	Subject, Name string
	Role          store.Role
}

// finish takes a browser that came back, and says who it is.
func (c *client) finish(
	ctx context.Context,
	callback, cookie string,
	r callbackParams,
) (who userInfo, next string, err error) {
	f, err := c.seal.open(cookie)
	switch {
	case err != nil:
		return who, "", rejection("the cookie of the flow", err)
	case time.Now().After(f.Until):
		return who, "", rejection("the flow took too long", nil)
	case subtle.ConstantTimeCompare([]byte(f.State), []byte(r.State)) != 1:
		return who, "", rejection("another state", nil)
	case r.Issuer != "" && r.Issuer != c.opts.Issuer: // RFC 9207
		return who, "", rejection("another issuer sent the browser back", nil)
	case !c.markUsed(f):
		return who, "", rejection("the state was used before", nil)
	case r.Error != "" || r.Code == "":
		return who, "", rejection("the provider refused", nil)
	}
	p, err := c.discover(ctx)
	if err != nil {
		return who, "", err
	}
	ctx = oidc.ClientContext(ctx, c.http)
	token, err := c.config(p, callback).Exchange(ctx, r.Code, oauth2.VerifierOption(f.Verifier))
	if err != nil {
		var answered *oauth2.RetrieveError
		if errors.As(err, &answered) {
			return who, "", rejection("the code", errors.New(cmp.Or(answered.ErrorCode, answered.Response.Status)))
		}
		return who, "", unreachable(err)
	}
	who, err = c.verifyToken(ctx, p, token, f.Nonce)
	return who, f.Next, err
}

// markUsed notes that a flow came back, and tells whether it did for the first time.
func (c *client) markUsed(f flow) bool {
	const most = 10_000
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if len(c.used) >= most {
		for state, until := range c.used {
			if now.After(until) {
				delete(c.used, state)
			}
		}
	}
	if _, before := c.used[f.State]; before || len(c.used) >= most {
		return false
	}
	c.used[f.State] = f.Until
	return true
}

// verifyToken reads an ID token, when it is one for us, of this flow, of the provider's.
func (c *client) verifyToken(ctx context.Context, p *oidc.Provider, t *oauth2.Token, nonce string) (who userInfo,
	err error) {
	raw, ok := t.Extra("id_token").(string)
	if !ok {
		return who, rejection("the answer has no ID token", nil)
	}
	id, err := p.VerifierContext(ctx, &oidc.Config{ClientID: c.opts.ClientID, SupportedSigningAlgs: algorithms}).
		Verify(ctx, raw)
	if err != nil {
		return who, rejection("the ID token", err)
	}
	if subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(nonce)) != 1 {
		return who, rejection("the ID token has another nonce", nil)
	}
	claims := map[string]any{}
	if err := id.Claims(&claims); err != nil {
		return who, rejection("the claims of the ID token", err)
	}
	if azp, given := claims["azp"]; given && azp != c.opts.ClientID || !given && len(id.Audience) > 1 {
		return who, rejection("the ID token was made for another client", nil)
	}
	// The standard has 255 characters of ASCII; what is obeyed rather than shown could not be stored or told apart.
	const longest = 255
	if len(id.Subject) > longest || strings.ContainsFunc(id.Subject, textsafe.IsControl) {
		return who, rejection("the ID token names somebody by what is no subject", nil)
	}
	if id.Subject == "" || id.IssuedAt.After(time.Now().Add(5*time.Minute)) {
		return who, rejection("the ID token names nobody, or is of the future", nil)
	}
	_, grouped := claims[c.opts.GroupsClaim]
	if name := userName(claims); (!grouped || name == "") && p.UserInfoEndpoint() != "" {
		c.mergeUserInfo(ctx, p, t, id.Subject, claims)
	}
	who = userInfo{Subject: id.Subject, Name: userName(claims), Role: c.role(claims)}
	switch {
	case who.Role == "":
		return who, &engine.Error{Code: engine.CodeForbidden, Message: "None of your groups may use this server.",
			Hint: "Ask an admin of Loadstone which group may, and one of the provider to be in it."}
	case store.CheckUser(who.Name, who.Role) != nil:
		return who, &engine.Error{Code: engine.CodeForbidden,
			Message: "The provider gives you no name that can be used here.",
			Hint:    "It is read from preferred_username or email: letters, digits and . _ @ + -, 64 at most."}
	}
	return who, nil
}

// mergeUserInfo adds what userinfo says of the same person.
func (c *client) mergeUserInfo(
	ctx context.Context,
	p *oidc.Provider,
	t *oauth2.Token,
	subject string,
	claims map[string]any,
) {
	info, err := p.UserInfo(ctx, oauth2.StaticTokenSource(t))
	if err != nil || info.Subject != subject {
		return
	}
	more := map[string]any{}
	if info.Claims(&more) != nil {
		return
	}
	for _, claim := range []string{c.opts.GroupsClaim, "preferred_username", "email", "email_verified"} {
		if _, there := claims[claim]; !there && more[claim] != nil {
			claims[claim] = more[claim]
		}
	}
}

// userName is by what the user is known here. An address that nobody has verified is anybody's.
func userName(claims map[string]any) string {
	if name, _ := claims["preferred_username"].(string); name != "" {
		return name
	}
	if verified, given := claims["email_verified"]; given && verified != true {
		return ""
	}
	email, _ := claims["email"].(string)
	return email
}

// role is the one that may most of those of the groups.
func (c *client) role(claims map[string]any) store.Role {
	var groups []string
	switch v := claims[c.opts.GroupsClaim].(type) {
	case string:
		groups = []string{v}
	case []any:
		for _, g := range v {
			if text, ok := g.(string); ok {
				groups = append(groups, text)
			}
		}
	}
	for _, role := range []store.Role{store.RoleAdmin, store.RoleOperator, store.RoleViewer} {
		if slices.ContainsFunc(groups, func(g string) bool { return c.opts.Roles[g] == role }) {
			return role
		}
	}
	return c.opts.DefaultRole
}

// safeNext is where a user goes on after signing in: an address of this very page, or its start.
func safeNext(next string) string {
	odd := func(r rune) bool { return r < ' ' || r == '\\' || r == 0x7f }
	u, err := url.Parse(next)
	if err != nil || len(next) > 1000 || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") ||
		strings.ContainsFunc(next, odd) || u.Host != "" || u.Scheme != "" || strings.HasPrefix(next, "/api/") ||
		strings.HasPrefix(next, "/signin") {
		return "/"
	}
	return next
}
