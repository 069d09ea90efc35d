package api

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/auth"
)

type beginTOTPInput struct {
	Body struct {
		Password secret.Secret `json:"password" minLength:"1" maxLength:"1000" doc:"Yours: a browser that was left open gives nobody a second factor of their own."`
	}
}

type codeInput struct {
	Body struct {
		Code string `json:"code" minLength:"1" maxLength:"100" doc:"The six digits that the app shows."`
	}
}

type endTOTPInput struct {
	Body struct {
		Password secret.Secret `json:"password" minLength:"1" maxLength:"1000"`
		Code     string        `json:"code" minLength:"1" maxLength:"100" doc:"The six digits that the app shows, or a recovery code."`
	}
}

// RecoveryCodes let a user in whose app is lost, each once. They are shown this once.
type RecoveryCodes struct {
	Codes []string `json:"recovery_codes" nullable:"false"`
}

// registerSecondFactors adds the routes of second factors.
func (h *userHandlers) registerSecondFactors(k *auth.SecondFactors) {
	a := h.a
	const path = "/api/auth/totp"
	h.a.Auth.Second = func(ctx context.Context, u store.User, code string) error { return h.checkCode(ctx, k, u, code) }
	Handle(a, NewOperation(http.MethodGet, path, "get-totp", userTag, "Whether you have a second factor"),
		func(ctx context.Context, _ *struct{}) (*userBody[auth.State], error) {
			s, err := k.Status(ctx, identity(ctx).User.UserID)
			return &userBody[auth.State]{s}, err
		})
	begin := NewOperation(http.MethodPost, path, "begin-totp", userTag,
		"Make the secret of a second factor (TOTP), by the password; it counts once a code of it was confirmed",
		http.StatusConflict, http.StatusTooManyRequests)
	begin.DefaultStatus = http.StatusCreated
	Handle(a, begin, func(ctx context.Context, in *beginTOTPInput) (*userBody[auth.Begun], error) {
		u, err := h.requireLocalUser(ctx)
		if err == nil {
			err = h.requirePassword(ctx, u, in.Body.Password)
		}
		if err != nil {
			return nil, err
		}
		b, err := k.Enroll(ctx, u, issuer(a.URL()))
		return &userBody[auth.Begun]{b}, err
	})
	Handle(a, NewOperation(http.MethodPost, path+"/confirm", "confirm-totp", userTag,
		"Turn the second factor on by a code of it; the recovery codes are shown once", http.StatusConflict,
		http.StatusTooManyRequests), func(ctx context.Context, in *codeInput) (*userBody[RecoveryCodes], error) {
		u, err := h.requireLocalUser(ctx)
		if err == nil {
			err = rateLimited(h.ownCode.Wait(ctx, u.UserID), "at your code")
		}
		if err != nil {
			return nil, err
		}
		codes, err := k.Confirm(ctx, u, in.Body.Code)
		if err != nil {
			h.ownCode.RecordFailure(ctx, u.UserID)
			return nil, err
		}
		h.a.Audit(ctx, "user.totp", u.Name, "on")
		return &userBody[RecoveryCodes]{RecoveryCodes{codes}}, nil
	})
	end := NewOperation(http.MethodPost, path+"/disable", "disable-totp", userTag,
		"Turn the second factor off, by the password and a code", http.StatusTooManyRequests)
	end.DefaultStatus = http.StatusNoContent
	Handle(a, end, func(ctx context.Context, in *endTOTPInput) (*struct{}, error) { return h.endTOTP(ctx, k, in) })
	reset := NewOperation(http.MethodDelete, "/api/users/{id}/totp", "reset-totp", tagUsers,
		"Remove a user's second factor, when its app and recovery codes are lost", http.StatusForbidden, http.StatusNotFound)
	reset.DefaultStatus = http.StatusNoContent
	Handle(a, reset, func(ctx context.Context, in *IDInput) (*struct{}, error) {
		if err := a.Admin(ctx, "remove a second factor"); err != nil {
			return nil, err
		}
		u, err := h.userResponse(ctx, in.ID)
		if err == nil {
			err = k.Remove(ctx, in.ID, identity(ctx).User.Name)
		}
		if err != nil {
			return nil, err
		}
		h.a.Audit(ctx, "user.totp", u.Name, "removed by an admin")
		return &struct{}{}, nil
	})
}

// requireLocalUser is the user of a browser, who has a password here: others are let in by no code.
func (h *userHandlers) requireLocalUser(ctx context.Context) (store.User, error) {
	id := identity(ctx)
	switch {
	case id.Token.Kind != auth.KindSession:
		return id.User, &engine.Error{Code: engine.CodeForbidden, Message: "A token cannot change a second factor.",
			Hint: "Do it on the page, under Settings."}
	case id.User.External:
		return id.User, refusePassword(id.User.Name)
	}
	u, hash, err := h.a.Store.UserCredentials(ctx, id.User.Name)
	if err == nil && hash == "" {
		return u, &engine.Error{Code: engine.CodeConflict, Message: "You have no password, beside which a code is asked for.",
			Hint: "Set one first, under Settings."}
	}
	return u, err
}

// requirePassword is nil where the password is the user's own.
func (h *userHandlers) requirePassword(ctx context.Context, u store.User, password secret.Secret) error {
	if err := rateLimited(h.ownPassword.Wait(ctx, u.UserID), "at your password"); err != nil {
		return err
	}
	leave, err := h.hashing.Acquire(ctx, auth.Network(auth.PeerOf(ctx).IP))
	if err != nil {
		return err
	}
	defer leave()
	ok, err := h.a.Auth.CheckPassword(ctx, u.Name, password)
	if err != nil || ok {
		return err
	}
	return h.wrongGuess(ctx, h.ownPassword, u, "password", "is not your password")
}

// wrongGuess counts and notes a wrong guess of somebody who is signed in, and returns the refusal.
func (h *userHandlers) wrongGuess(
	ctx context.Context,
	count *auth.GuessLimiter,
	u store.User,
	field, what string,
) error {
	count.RecordFailure(ctx, u.UserID)
	h.a.AuditLog().RecordSignInFailure(ctx, auth.PeerOf(ctx).IP, u.Name)
	return engine.InvalidField(field, what, "nothing was changed")
}

// checkCode compares a code of somebody who signs in. Whoever knows the password guesses codes as slowly as passwords;
// where the user has signed in before is counted apart.
func (h *userHandlers) checkCode(ctx context.Context, k *auth.SecondFactors, u store.User, code string) error {
	account, _ := h.known.account(ctx, strings.ToLower(u.Name), auth.Network(auth.PeerOf(ctx).IP))
	if err := rateLimited(h.codes.Wait(ctx, account), "with a code"); err != nil {
		return err
	}
	err := k.Check(ctx, u, code)
	if errors.Is(err, auth.ErrWrongCode) {
		h.codes.RecordFailure(ctx, account)
	}
	return err
}

func (h *userHandlers) endTOTP(ctx context.Context, k *auth.SecondFactors, in *endTOTPInput) (*struct{}, error) {
	u, err := h.requireLocalUser(ctx)
	if err == nil {
		err = rateLimited(h.ownCode.Wait(ctx, u.UserID), "at your code")
	}
	if err == nil {
		err = h.requirePassword(ctx, u, in.Body.Password)
	}
	if err != nil {
		return nil, err
	}
	if err := k.Check(ctx, u, in.Body.Code); err != nil {
		if engine.HasCode(err, engine.CodeUnauthorized) {
			err = h.wrongGuess(ctx, h.ownCode, u, "code", "is wrong, or was used already")
		}
		return nil, err
	}
	if err := k.Remove(ctx, u.UserID, u.Name); err != nil {
		return nil, err
	}
	h.a.Audit(ctx, "user.totp", u.Name, "off")
	return &struct{}{}, nil
}

// issuer is the server as authenticator apps name it.
func issuer(address string) string {
	if u, err := url.Parse(address); err == nil && u.Hostname() != "" {
		return "Loadstone " + u.Hostname()
	}
	return "Loadstone"
}
