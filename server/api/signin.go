// This part holds the handlers of who may use the server: signing in, tokens and sessions, and, for admins, users
// with their roles and invitations.

package api

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/auth"
	"github.com/loadstone-db/loadstone/server/httpx"
)

const (
	signInPath    = "/api/auth/signin"
	providersPath = "/api/auth/ways"
	userTag       = "Sign-in"
	tagUsers      = "Users"
)

// IsSignIn tells whether a request is a sign-in, the one that strangers may send.
func IsSignIn(method, path string) bool { return method == http.MethodPost && path == signInPath }

// IsPublic tells whether a stranger may ask for an address.
func IsPublic(method, path string) bool {
	return IsSignIn(method, path) || (method == http.MethodGet || method == http.MethodHead) && path == providersPath
}

// Ways are the ways to sign in beside name and password, and links.
type Ways struct {
	Provider string `json:"provider" doc:"The name of the sign-in provider; empty when there is none."`
}

type signInInput struct {
	Body struct {
		Token      string        `json:"token,omitempty" maxLength:"200" doc:"The one-time token of a sign-in link; alone."`
		Name       string        `json:"name,omitempty" maxLength:"200" doc:"A user's name, with its password."`
		Invitation string        `json:"invitation,omitempty" maxLength:"200" doc:"The one-time token of an invitation, with the password that its user chooses."`
		Password   secret.Secret `json:"password,omitempty" maxLength:"1000"`
		Code       string        `json:"code,omitempty" maxLength:"100" doc:"The second factor: a code of the authenticator app, or a recovery code. 401 with the field code asks for it."`
	}
}

// Signed is the answer to a sign-in.
type Signed struct {
	User store.User `json:"user"`
}

type signInOutput struct {
	SetCookie string `header:"Set-Cookie" doc:"The session, HttpOnly and SameSite=Strict."`
	Body      Signed
}

type signOutOutput struct {
	SetCookie string `header:"Set-Cookie"`
}

// Me is who makes the request, and by which token.
type Me struct {
	User  store.User  `json:"user"`
	Token store.Token `json:"token"`
}

// TokenList is a user's API tokens, or its sessions.
type TokenList struct {
	Tokens []store.Token `json:"tokens" nullable:"false"`
}

type listInput struct {
	Kind string `query:"kind" enum:"api,session" default:"api" doc:"API tokens, or the sessions of browsers."`
}

type passwordInput struct {
	Body struct {
		Password    secret.Secret `json:"password,omitempty" maxLength:"1000" doc:"The current password; left out without one."`
		NewPassword secret.Secret `json:"new_password" minLength:"1" maxLength:"1000"`
	}
}

type userBody[T any] struct{ Body T }

type tokenInput struct {
	Body struct {
		Name          string `json:"name" minLength:"1" maxLength:"100" doc:"What the token is for."`
		ExpiresInDays int    `json:"expires_in_days,omitempty" minimum:"1" maximum:"3650" doc:"90 without it."`
		Scope         string `json:"scope,omitempty" enum:"read,run,metrics,write,admin" doc:"read only reads; run checks, starts and stops runs, too, as a pipeline does; metrics reads metrics and nothing else; write, the default, does everything but make and revoke tokens and what admins decide; admin does that too."`
	}
}

// NewToken is a new API token with its secret, which is shown this once.
type NewToken struct {
	store.Token
	Secret string `json:"secret"`
}

// userHandlers are the handlers with what they count.
type userHandlers struct {
	a *API
	guessLimiters
	// known are the users who have signed in from an address before: strangers who guess do not slow them down.
	known knownSignIns
	// hashing has the few places for comparing passwords, which takes memory and time: the machine may be measuring.
	// familiar has a place for users from where they have signed in before: a flood of others does not fill it.
	hashing, hashingKnown *httpx.Gate
	// factors are the users' second factors; nil where the store cannot keep them.
	factors *auth.SecondFactors
}

// guessLimiters count wrong guesses, each kind apart: who mistypes a code has not used up the tries of a password.
type guessLimiters struct {
	// addresses counts wrong passwords by where they come from, accounts by whom they are about, ownPassword those of
	// users who are signed in about their own.
	addresses, accounts, ownPassword *auth.GuessLimiter
	// links counts sign-in links and invitations that were wrong, by where they come from.
	links *auth.GuessLimiter
	// codes counts wrong codes of second factors, by whose they are; ownCode those of users who are signed in.
	codes, ownCode *auth.GuessLimiter
}

func newGuessLimiters(s auth.GuessStore) guessLimiters {
	return guessLimiters{
		addresses:   auth.NewGuessLimiter("password from", 10, 6*time.Second, s),
		accounts:    auth.NewGuessLimiter("password of", 20, 15*time.Second, s),
		ownPassword: auth.NewGuessLimiter("own password", 10, 15*time.Second, s),
		links:       auth.NewGuessLimiter("link from", 10, 6*time.Second, s),
		codes:       auth.NewGuessLimiter("code of", 10, 15*time.Second, s),
		ownCode:     auth.NewGuessLimiter("own code", 10, 15*time.Second, s),
	}
}

// RegisterUser adds the handlers to an API.
func RegisterUser(a *API) {
	guesses, _ := a.Store.(auth.GuessStore) // without it each server counts its own
	h := &userHandlers{a: a, guessLimiters: newGuessLimiters(guesses),
		hashing: httpx.NewGate(2, 32, 4), hashingKnown: httpx.NewGate(1, 16, 2)}
	h.known.readAudit = h.readSignIns
	h.registerSignIn()
	h.registerUserAdmin()
	h.registerTokenAdmin()
	if settings, ok := a.Store.(store.Settings); ok {
		h.factors = &auth.SecondFactors{Settings: settings}
		h.registerSecondFactors(h.factors)
	}
}

func (h *userHandlers) registerSignIn() {
	a := h.a
	signIn := NewOperation(http.MethodPost, signInPath, "sign-in", userTag, "Exchange a one-time token for a session",
		http.StatusTooManyRequests)
	signIn.Security = []map[string][]string{{}}
	Handle(a, signIn, h.signIn)
	paths := NewOperation(http.MethodGet, providersPath, "ways-in", userTag, "Which ways there are to sign in")
	paths.Security = []map[string][]string{{}}
	Handle(a, paths, func(context.Context, *struct{}) (*userBody[Ways], error) {
		return &userBody[Ways]{Ways{Provider: a.Provider}}, nil
	})
	signOut := NewOperation(http.MethodPost, "/api/auth/signout", "sign-out", userTag, "End the session")
	signOut.DefaultStatus = http.StatusNoContent
	Handle(a, signOut, h.signOut)
	Handle(a, NewOperation(http.MethodGet, "/api/auth/me", "me", userTag, "Who makes this request"), h.me)
	Handle(a, NewOperation(http.MethodGet, "/api/auth/tokens", "list-tokens", userTag,
		"List your API tokens, or your sessions"), h.listTokens)
	link := NewOperation(http.MethodPost, "/api/auth/signin-links", "create-signin-link", userTag,
		"Make a link that signs in once, within an hour; those before it end")
	link.DefaultStatus = http.StatusCreated
	Handle(a, link, h.createLink)
	create := NewOperation(http.MethodPost, "/api/auth/tokens", "create-token", userTag,
		"Create an API token; its secret is shown once")
	create.DefaultStatus = http.StatusCreated
	Handle(a, create, h.createToken)
	password := NewOperation(http.MethodPut, "/api/auth/password", "set-password", userTag,
		"Choose another password; your other sessions end", http.StatusTooManyRequests)
	Handle(a, password, h.setPassword)
	remove := NewOperation(http.MethodDelete, "/api/auth/tokens/{id}", "delete-token", userTag,
		"Revoke an API token, or end a session",
		http.StatusNotFound)
	remove.DefaultStatus = http.StatusNoContent
	Handle(a, remove, h.deleteToken)
}

// signIn lets a browser in: by a link, by name and password, or by an invitation.
func (h *userHandlers) signIn(ctx context.Context, in *signInInput) (*signInOutput, error) {
	peer, b := auth.PeerOf(ctx), in.Body
	address := auth.Network(peer.IP)
	account, hashing := "", h.hashing // only a name can be guessed at from many addresses; tokens cannot be guessed
	if b.Token == "" && b.Invitation == "" && store.CheckUser(b.Name, store.RoleViewer) == nil {
		var before bool
		if account, before = h.known.account(ctx, strings.ToLower(b.Name), address); before {
			hashing = h.hashingKnown
		}
	}
	byLink := b.Token != "" || b.Invitation != ""
	if err := h.checkRate(ctx, address, account, byLink); err != nil {
		return nil, err
	}
	var secret string
	var id auth.Identity
	var err error
	route := "with a password"
	switch {
	case b.Token != "" && b.Name == "" && b.Invitation == "" && b.Password.IsZero():
		route = "by a link"
		secret, id, err = h.a.Auth.SignIn(ctx, b.Token)
	case b.Token == "" && (b.Name == "") != (b.Invitation == "") && !b.Password.IsZero():
		leave, busy := hashing.Acquire(ctx, address)
		if busy != nil {
			return nil, busy
		}
		defer leave()
		if b.Name != "" {
			secret, id, err = h.a.Auth.SignInWithPassword(ctx, b.Name, b.Password, b.Code)
		} else {
			route = "by an invitation"
			secret, id, err = h.a.Auth.Accept(ctx, b.Invitation, b.Password)
		}
	default:
		return nil, engine.InvalidField("token", "is not enough to sign in",
			"send the token of a sign-in link alone, a name with its password, or an invitation with the password chosen")
	}
	if err != nil {
		// Who is asked for a code has guessed nothing wrong yet. A wrong code was counted where it was compared.
		if engine.HasCode(err, engine.CodeUnauthorized) && !errors.Is(err, auth.ErrCodeRequired) {
			if !errors.Is(err, auth.ErrWrongCode) {
				h.recordFailure(ctx, address, account, byLink)
			}
			h.a.AuditLog().RecordSignInFailure(ctx, peer.IP, h.existingUserName(ctx, b.Name))
		}
		return nil, err
	}
	if b.Name != "" {
		h.known.add(strings.ToLower(b.Name), address)
	}
	if b.Invitation != "" {
		h.a.AuditLog().Record(ctx, id.User.UserID, "user.password", id.User.Name, route)
	}
	h.a.AuditLog().Record(ctx, id.User.UserID, "auth.signin", id.User.Name, route)
	return &signInOutput{SetCookie: peer.Cookie(secret).String(), Body: Signed{User: id.User}}, nil
}

// existingUserName is a name when a user has it: what else was typed may be a password.
func (h *userHandlers) existingUserName(ctx context.Context, name string) string {
	u, _, err := h.a.Store.UserCredentials(ctx, name)
	if name == "" || err != nil {
		return ""
	}
	return u.Name
}

// checkRate refuses who has tried too often: from this address, or for this account from addresses that nobody has
// signed in from.
func (h *userHandlers) checkRate(ctx context.Context, address, account string, byLink bool) error {
	limiter := h.addresses
	if byLink {
		limiter = h.links
	}
	wait, of := limiter.Wait(ctx, address), "from your address"
	if account != "" {
		if more := h.accounts.Wait(ctx, account); more > wait {
			wait, of = more, "for this user"
		}
	}
	return rateLimited(wait, of)
}

// recordFailure counts a wrong link, or a wrong password.
func (h *userHandlers) recordFailure(ctx context.Context, address, account string, byLink bool) {
	if byLink {
		h.links.RecordFailure(ctx, address)
		return
	}
	h.addresses.RecordFailure(ctx, address)
	if account != "" {
		h.accounts.RecordFailure(ctx, account)
	}
}

// rateLimited is the refusal of who has to wait; nil for who has not.
func rateLimited(wait time.Duration, of string) error {
	if wait <= 0 {
		return nil
	}
	seconds := int(math.Ceil(wait.Seconds()))
	p := httpx.New(http.StatusTooManyRequests, engine.CodeRateLimited,
		"There were too many wrong attempts to sign in "+of+".",
		fmt.Sprintf("Wait %d s and try again.", seconds))
	return huma.ErrorWithHeaders(p, http.Header{"Retry-After": {strconv.Itoa(seconds)}})
}

func (h *userHandlers) signOut(ctx context.Context, _ *struct{}) (*signOutOutput, error) {
	id := identity(ctx)
	if id.Token.Kind == auth.KindSession {
		if err := h.a.Auth.Revoke(ctx, id.User.UserID, id.Token.TokenID); err != nil {
			return nil, err
		}
		h.a.AuditLog().Record(ctx, id.User.UserID, "auth.signout", id.User.Name, "")
	}
	return &signOutOutput{SetCookie: auth.PeerOf(ctx).Cookie("").String()}, nil
}

func (h *userHandlers) me(ctx context.Context, _ *struct{}) (*userBody[Me], error) {
	id := identity(ctx)
	return &userBody[Me]{Me{User: id.User, Token: id.Token}}, nil
}

// Link signs a browser in.
type Link struct {
	URL       string      `json:"url"`
	ExpiresAt engine.Time `json:"expires_at"`
}

func (h *userHandlers) createLink(ctx context.Context, _ *struct{}) (*userBody[Link], error) {
	id := identity(ctx)
	if !id.MayGrant() {
		return nil, &engine.Error{Code: engine.CodeForbidden, Message: "A token cannot make sign-in links.",
			Hint: "The operator makes them: loadstone signin"}
	}
	if err := h.a.Admin(ctx, "make a sign-in link"); err != nil {
		return nil, err
	}
	secret, err := h.a.Auth.CreateSignInFor(ctx, id.User.UserID)
	if err != nil {
		return nil, err
	}
	url := h.a.URL() + "/signin?token=" + secret
	h.a.AuditLog().Record(ctx, id.User.UserID, "auth.link", id.User.Name, "")
	return &userBody[Link]{Link{URL: url, ExpiresAt: engine.At(time.Now().Add(auth.SignInTTL))}}, nil
}

func (h *userHandlers) listTokens(ctx context.Context, in *listInput) (*userBody[TokenList], error) {
	tokens, err := h.a.Store.ListTokens(ctx, identity(ctx).User.UserID, in.Kind)
	if err != nil {
		return nil, err
	}
	return &userBody[TokenList]{TokenList{Tokens: append([]store.Token{}, tokens...)}}, nil
}

func (h *userHandlers) createToken(ctx context.Context, in *tokenInput) (*userBody[NewToken], error) {
	var expires time.Time
	if days := in.Body.ExpiresInDays; days > 0 {
		expires = time.Now().AddDate(0, 0, days)
	}
	if !identity(ctx).MayGrant() {
		return nil, &engine.Error{Code: engine.CodeForbidden, Message: "A token cannot make other tokens.",
			Hint: "Make it on the page under Settings, with `loadstone token`, or with a token of the scope admin."}
	}
	user, scope := identity(ctx).User, in.Body.Scope
	switch {
	case user.Role != store.RoleViewer:
	case scope == "":
		scope = auth.ScopeRead
	case scope != auth.ScopeRead && scope != auth.ScopeMetrics:
		return nil, engine.InvalidField("scope", "is more than a viewer may", "choose read or metrics")
	}
	secret, t, err := h.a.Auth.CreateAPIToken(ctx, user.UserID, in.Body.Name, scope, expires)
	if err != nil {
		return nil, err
	}
	h.a.AuditLog().Record(ctx, user.UserID, "token.create", t.TokenID, t.Name)
	return &userBody[NewToken]{NewToken{Token: t, Secret: secret}}, nil
}

func (h *userHandlers) deleteToken(ctx context.Context, in *IDInput) (*struct{}, error) {
	id := identity(ctx)
	if !id.MayGrant() && in.ID != id.Token.TokenID {
		return nil, &engine.Error{Code: engine.CodeForbidden, Message: "A token can revoke itself and no other.",
			Hint: "Revoke it on the page under Settings."}
	}
	user := id.User
	if err := h.a.Auth.Revoke(ctx, user.UserID, in.ID); err != nil {
		return nil, missing(err, "token", in.ID)
	}
	h.a.AuditLog().Record(ctx, user.UserID, "token.delete", in.ID, "")
	return &struct{}{}, nil
}

func (h *userHandlers) setPassword(ctx context.Context, in *passwordInput) (*signInOutput, error) {
	id, peer := identity(ctx), auth.PeerOf(ctx)
	if id.Token.Kind != auth.KindSession {
		return nil, &engine.Error{Code: engine.CodeForbidden, Message: "A token cannot change a password.",
			Hint: "Do it on the page, under Settings."}
	}
	if id.User.External {
		return nil, refusePassword(id.User.Name)
	}
	if err := rateLimited(h.ownPassword.Wait(ctx, id.User.UserID), "at your password"); err != nil {
		return nil, err
	}
	leave, err := h.hashing.Acquire(ctx, auth.Network(peer.IP))
	if err != nil {
		return nil, err
	}
	defer leave()
	secret, err := h.a.Auth.ChangePassword(ctx, id.User, in.Body.Password, in.Body.NewPassword)
	if err != nil {
		if engine.HasCode(err, engine.CodeInvalid) && !in.Body.Password.IsZero() {
			h.ownPassword.RecordFailure(ctx, id.User.UserID)
			h.a.AuditLog().RecordSignInFailure(ctx, peer.IP, id.User.Name)
		}
		return nil, err
	}
	h.a.Audit(ctx, "user.password", id.User.Name, peer.IP)
	id.User.HasPassword = true
	return &signInOutput{SetCookie: peer.Cookie(secret).String(), Body: Signed{User: id.User}}, nil
}

// refusePassword refuses a password of who has a provider: it would outlive what the provider says.
func refusePassword(name string) error {
	return &engine.Error{Code: engine.CodeConflict,
		Message: name + " signs in by the sign-in provider, and has no password here.",
		Hint:    "Change it there."}
}

// identity is who makes the request; the guard has seen to it that somebody does.
func identity(ctx context.Context) auth.Identity {
	id, _ := auth.IdentityOf(ctx)
	return id
}

// missing turns the store's not-found into one that says what was not found.
func missing(err error, thing, id string) error {
	var e *engine.Error
	if errors.Is(err, store.ErrNotFound) && !errors.As(err, &e) {
		return httpx.NotFound(thing, id)
	}
	return err
}
