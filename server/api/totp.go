package api

import (
	"context"
	"net/http"
	"net/url"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/auth"
)

type codeInput struct {
	Body struct {
		Code string `json:"code" minLength:"1" maxLength:"100" doc:"The six digits that the app shows."`
	}
}

type endTOTPInput struct {
	Body struct {
		Password string `json:"password" minLength:"1" maxLength:"1000"`
		Code     string `json:"code" minLength:"1" maxLength:"100" doc:"The six digits that the app shows, or a recovery code."`
	}
}

// RecoveryCodes let a user in whose app is lost, each once. They are shown this once.
type RecoveryCodes struct {
	Codes []string `json:"recovery_codes" nullable:"false"`
}

// secondFactors adds the routes of second factors.
func (h *userHandlers) secondFactors(k *auth.Keeper) {
	a := h.a
	const path = "/api/auth/totp"
	h.a.Auth.Second = k.Check
	Handle(a, Op(http.MethodGet, path, "get-totp", userTag, "Whether you have a second factor"),
		func(ctx context.Context, _ *struct{}) (*userBody[auth.State], error) {
			s, err := k.Of(ctx, identity(ctx).User.UserID)
			return &userBody[auth.State]{s}, err
		})
	begin := Op(http.MethodPost, path, "begin-totp", userTag,
		"Make the secret of a second factor (TOTP); it counts once a code of it was confirmed", http.StatusConflict)
	begin.DefaultStatus = http.StatusCreated
	Handle(a, begin, func(ctx context.Context, _ *struct{}) (*userBody[auth.Begun], error) {
		u, err := h.ofAPerson(ctx)
		if err != nil {
			return nil, err
		}
		b, err := k.Begin(ctx, u, issuer(a.URL()))
		return &userBody[auth.Begun]{b}, err
	})
	Handle(a, Op(http.MethodPost, path+"/confirm", "confirm-totp", userTag,
		"Turn the second factor on by a code of it; the recovery codes are shown once", http.StatusConflict,
		http.StatusTooManyRequests), func(ctx context.Context, in *codeInput) (*userBody[RecoveryCodes], error) {
		u, err := h.ofAPerson(ctx)
		if err == nil {
			err = tooOften(h.own.Wait(u.UserID), "at your code")
		}
		if err != nil {
			return nil, err
		}
		codes, err := k.Confirm(ctx, u, in.Body.Code)
		if err != nil {
			h.own.Failed(u.UserID)
			return nil, err
		}
		h.a.Note(ctx, "user.totp", u.Name, "on")
		return &userBody[RecoveryCodes]{RecoveryCodes{codes}}, nil
	})
	end := Op(http.MethodPost, path+"/disable", "disable-totp", userTag,
		"Turn the second factor off, by the password and a code", http.StatusTooManyRequests)
	end.DefaultStatus = http.StatusNoContent
	Handle(a, end, func(ctx context.Context, in *endTOTPInput) (*struct{}, error) { return h.endTOTP(ctx, k, in) })
	reset := Op(http.MethodDelete, "/api/users/{id}/totp", "reset-totp", tagUsers,
		"Remove a user's second factor, when its app and recovery codes are lost", http.StatusForbidden, http.StatusNotFound)
	reset.DefaultStatus = http.StatusNoContent
	Handle(a, reset, func(ctx context.Context, in *IDInput) (*struct{}, error) {
		if err := a.Admin(ctx, "remove a second factor"); err != nil {
			return nil, err
		}
		u, err := h.user(ctx, in.ID)
		if err == nil {
			err = k.Remove(ctx, in.ID, identity(ctx).User.Name)
		}
		if err != nil {
			return nil, err
		}
		h.a.Note(ctx, "user.totp", u.Name, "removed by an admin")
		return &struct{}{}, nil
	})
}

// ofAPerson is the user of a browser, who has a password here: others are let in by no code.
func (h *userHandlers) ofAPerson(ctx context.Context) (store.User, error) {
	id := identity(ctx)
	switch {
	case id.Token.Kind != auth.KindSession:
		return id.User, &engine.Error{Code: engine.CodeForbidden, Message: "A token cannot change a second factor.",
			Hint: "Do it on the page, under Settings."}
	case id.User.External:
		return id.User, noPassword(id.User.Name)
	}
	u, hash, err := h.a.Store.PasswordOf(ctx, id.User.Name)
	if err == nil && hash == "" {
		return u, &engine.Error{Code: engine.CodeConflict, Message: "You have no password, beside which a code is asked for.",
			Hint: "Set one first, under Settings."}
	}
	return u, err
}

func (h *userHandlers) endTOTP(ctx context.Context, k *auth.Keeper, in *endTOTPInput) (*struct{}, error) {
	u, err := h.ofAPerson(ctx)
	if err == nil {
		err = tooOften(h.own.Wait(u.UserID), "at your password")
	}
	if err != nil {
		return nil, err
	}
	leave, err := h.hashing.Enter(ctx, auth.Network(auth.PeerOf(ctx).IP))
	if err != nil {
		return nil, err
	}
	defer leave()
	wrong := func(field, what string) error {
		h.own.Failed(u.UserID)
		h.a.Trail().SignInRefused(ctx, auth.PeerOf(ctx).IP, u.Name)
		return engine.InvalidField(field, what, "nothing was changed")
	}
	if ok, err := h.a.Auth.IsPassword(ctx, u.Name, in.Body.Password); err != nil || !ok {
		if err == nil {
			err = wrong("password", "is not your password")
		}
		return nil, err
	}
	if err := k.Check(ctx, u, in.Body.Code); err != nil {
		if engine.HasCode(err, engine.CodeUnauthorized) {
			err = wrong("code", "is wrong, or was used already")
		}
		return nil, err
	}
	if err := k.Remove(ctx, u.UserID, u.Name); err != nil {
		return nil, err
	}
	h.a.Note(ctx, "user.totp", u.Name, "off")
	return &struct{}{}, nil
}

// issuer is the server as authenticator apps name it.
func issuer(address string) string {
	if u, err := url.Parse(address); err == nil && u.Hostname() != "" {
		return "Loadstone " + u.Hostname()
	}
	return "Loadstone"
}
