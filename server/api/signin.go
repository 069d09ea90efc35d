package api

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/auth"
	"github.com/loadstone-db/loadstone/server/problem"
)

const signInPath = "/api/auth/signin"

// IsSignIn tells whether a request is a sign-in, the one that strangers may send.
func IsSignIn(method, path string) bool { return method == http.MethodPost && path == signInPath }

type signInInput struct {
	Body struct {
		Token string `json:"token" minLength:"1" maxLength:"200" doc:"The one-time token of a sign-in link."`
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

// TokenList is a user's API tokens.
type TokenList struct {
	Tokens []store.Token `json:"tokens"`
}

type tokenInput struct {
	Body struct {
		Name          string `json:"name" minLength:"1" maxLength:"100" doc:"What the token is for."`
		ExpiresInDays int    `json:"expires_in_days,omitempty" minimum:"1" maximum:"3650" doc:"90 without it."`
		Scope         string `json:"scope,omitempty" enum:"read,write,admin" doc:"read only reads; write, the default, does everything but make and revoke tokens and approve plugins; admin does that too."`
	}
}

// NewToken is a new API token with its secret, which is shown this once.
type NewToken struct {
	store.Token
	Secret string `json:"secret"`
}

// IDInput is the id in an address.
type IDInput struct {
	ID string `path:"id" maxLength:"200"`
}

// Resolve decodes what the router leaves as it came: %40 is @ in an address too.
func (i *IDInput) Resolve(huma.Context) []error {
	i.ID = unescaped(i.ID)
	return nil
}

func (a *API) registerAuth() {
	signIn := op(http.MethodPost, signInPath, "sign-in", tagAuth, "Exchange a one-time token for a session",
		http.StatusTooManyRequests)
	signIn.Security = []map[string][]string{{}}
	handle(a, signIn, a.signIn)
	signOut := op(http.MethodPost, "/api/auth/signout", "sign-out", tagAuth, "End the session")
	signOut.DefaultStatus = http.StatusNoContent
	handle(a, signOut, a.signOut)
	handle(a, op(http.MethodGet, "/api/auth/me", "me", tagAuth, "Who makes this request"), a.me)
	handle(a, op(http.MethodGet, "/api/auth/tokens", "list-tokens", tagAuth, "List your API tokens"), a.listTokens)
	link := op(http.MethodPost, "/api/auth/signin-links", "create-signin-link", tagAuth,
		"Make a link that signs in once, within an hour; those before it end")
	link.DefaultStatus = http.StatusCreated
	handle(a, link, a.createLink)
	create := op(http.MethodPost, "/api/auth/tokens", "create-token", tagAuth,
		"Create an API token; its secret is shown once")
	create.DefaultStatus = http.StatusCreated
	handle(a, create, a.createToken)
	remove := op(http.MethodDelete, "/api/auth/tokens/{id}", "delete-token", tagAuth, "Revoke an API token",
		http.StatusNotFound)
	remove.DefaultStatus = http.StatusNoContent
	handle(a, remove, a.deleteToken)
}

func (a *API) signIn(ctx context.Context, in *signInInput) (*signInOutput, error) {
	peer := auth.PeerOf(ctx)
	if wait := a.limiter.Wait(peer.IP); wait > 0 {
		seconds := int(math.Ceil(wait.Seconds()))
		p := problem.New(http.StatusTooManyRequests, problem.CodeRateLimited,
			"There were too many wrong attempts to sign in from your address.",
			fmt.Sprintf("Wait %d s and open the link again.", seconds))
		return nil, huma.ErrorWithHeaders(p, http.Header{"Retry-After": {strconv.Itoa(seconds)}})
	}
	secret, id, err := a.Auth.SignIn(ctx, in.Body.Token)
	if err != nil {
		if engine.HasCode(err, engine.CodeUnauthorized) {
			a.limiter.Failed(peer.IP)
			a.trail.SignInRefused(ctx, peer.IP)
		}
		return nil, err
	}
	a.trail.Note(ctx, id.User.UserID, "auth.signin", id.User.Name, peer.IP)
	return &signInOutput{SetCookie: peer.Cookie(secret).String(), Body: Signed{User: id.User}}, nil
}

func (a *API) signOut(ctx context.Context, _ *struct{}) (*signOutOutput, error) {
	id := a.identity(ctx)
	if id.Token.Kind == auth.KindSession {
		if err := a.Auth.Revoke(ctx, id.User.UserID, id.Token.TokenID); err != nil {
			return nil, err
		}
		a.trail.Note(ctx, id.User.UserID, "auth.signout", id.User.Name, "")
	}
	return &signOutOutput{SetCookie: auth.PeerOf(ctx).Cookie("").String()}, nil
}

func (a *API) me(ctx context.Context, _ *struct{}) (*body[Me], error) {
	id := a.identity(ctx)
	return &body[Me]{Me{User: id.User, Token: id.Token}}, nil
}

// Link signs a browser in.
type Link struct {
	URL       string      `json:"url"`
	ExpiresAt engine.Time `json:"expires_at"`
}

func (a *API) createLink(ctx context.Context, _ *struct{}) (*body[Link], error) {
	id := a.identity(ctx)
	if !id.MayGrant() {
		return nil, &engine.Error{Code: engine.CodeForbidden, Message: "A token cannot make sign-in links.",
			Hint: "The operator makes them: loadstone signin"}
	}
	if err := a.admin(ctx, "make a sign-in link"); err != nil {
		return nil, err
	}
	url, err := a.SignInLink(ctx)
	if err != nil {
		return nil, err
	}
	a.trail.Note(ctx, id.User.UserID, "auth.link", id.User.Name, "")
	return &body[Link]{Link{URL: url, ExpiresAt: engine.At(time.Now().Add(auth.SignInFor))}}, nil
}

func (a *API) listTokens(ctx context.Context, _ *struct{}) (*body[TokenList], error) {
	tokens, err := a.Auth.APITokens(ctx, a.identity(ctx).User.UserID)
	if err != nil {
		return nil, err
	}
	return &body[TokenList]{TokenList{Tokens: orEmpty(tokens)}}, nil
}

func (a *API) createToken(ctx context.Context, in *tokenInput) (*body[NewToken], error) {
	var expires time.Time
	if days := in.Body.ExpiresInDays; days > 0 {
		expires = time.Now().AddDate(0, 0, days)
	}
	if !a.identity(ctx).MayGrant() {
		return nil, &engine.Error{Code: engine.CodeForbidden, Message: "A token cannot make other tokens.",
			Hint: "Make it on the page under Settings, with `loadstone token`, or with a token of the scope admin."}
	}
	user := a.identity(ctx).User
	secret, t, err := a.Auth.CreateAPIToken(ctx, user.UserID, in.Body.Name, in.Body.Scope, expires)
	if err != nil {
		return nil, err
	}
	a.trail.Note(ctx, user.UserID, "token.create", t.TokenID, t.Name)
	return &body[NewToken]{NewToken{Token: t, Secret: secret}}, nil
}

func (a *API) deleteToken(ctx context.Context, in *IDInput) (*nothing, error) {
	if !wellFormedID(in.ID) {
		return nil, problem.NotFound("token", in.ID)
	}
	id := a.identity(ctx)
	if !id.MayGrant() && in.ID != id.Token.TokenID {
		return nil, &engine.Error{Code: engine.CodeForbidden, Message: "A token can revoke itself and no other.",
			Hint: "Revoke it on the page under Settings."}
	}
	user := id.User
	if err := a.Auth.Revoke(ctx, user.UserID, in.ID); err != nil {
		return nil, named(err, "token", in.ID)
	}
	a.trail.Note(ctx, user.UserID, "token.delete", in.ID, "")
	return &nothing{}, nil
}
