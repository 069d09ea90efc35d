// This part holds the handlers of notifications.

package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/outbound/notify"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/auth"
	"github.com/loadstone-db/loadstone/server/httpx"
)

// Notifications are the hooks, and their last deliveries.
type Notifications struct {
	Version    int64             `json:"version" doc:"0 before anything was saved; to be sent back with a change."`
	Hooks      []notify.Hook     `json:"hooks" nullable:"false"`
	Deliveries []notify.Delivery `json:"deliveries" nullable:"false" doc:"The last attempts of this server since it started, the newest first."`
}

// GivenHook is a hook as an admin writes it.
type GivenHook struct {
	ID         string            `json:"id,omitempty" maxLength:"100" doc:"Of a hook that there is; without it a new one is made."`
	Name       string            `json:"name" maxLength:"200"`
	Kind       string            `json:"kind" enum:"webhook,slack,email"`
	URL        *secret.Secret    `json:"url,omitempty" maxLength:"2000" doc:"The address; left out, the saved one stays. Only scheme, host and port are shown again. Of an e-mail, the mail server: smtp://HOST:587 for STARTTLS, smtps://HOST:465 for TLS, smtp+plaintext://HOST:25 for neither TLS nor a password."`
	Secret     *secret.Secret    `json:"secret,omitempty" maxLength:"500" doc:"The key of the signature: X-Loadstone-Signature is sha256= and the HMAC of X-Loadstone-Timestamp, a dot and the body. Of an e-mail, the password of the mail server. Left out, the saved one stays; an empty one removes it."`
	From       string            `json:"from,omitempty" maxLength:"300" doc:"The sender of an e-mail."`
	To         []string          `json:"to,omitempty" maxItems:"50" doc:"The recipients of an e-mail."`
	User       string            `json:"user,omitempty" maxLength:"300" doc:"The user of the mail server."`
	Events     []notify.Event    `json:"events" nullable:"false" doc:"finished, regressed, threshold, failed, missed."`
	TemplateID string            `json:"template_id,omitempty" maxLength:"100" doc:"Send notifications for runs of this template only."`
	Tags       map[string]string `json:"tags,omitempty" doc:"Send notifications only for runs that have all of these tags."`
	Resume     bool              `json:"resume,omitempty" doc:"Takes over an unchanged hook: the caller owns it then, and it is no longer suspended. A changed hook is the caller's in any case."`
}

type notificationSaveInput struct {
	Body struct {
		Version int64       `json:"version" minimum:"0"`
		Hooks   []GivenHook `json:"hooks" nullable:"false"`
	}
}

type notificationBody[T any] struct{ Body T }

const (
	notificationPath = "/api/v1/notifications"
	notificationTag  = "Server"
)

// RegisterNotifications adds the routes.
func RegisterNotifications(a *API, n *notify.Notifier, s store.Settings) {
	const what = "manage notifications"
	shown := func(l notify.HookList) *notificationBody[Notifications] {
		out := &notificationBody[Notifications]{Notifications{Version: l.Version, Hooks: l.Hooks, Deliveries: n.Deliveries()}}
		if out.Body.Hooks == nil {
			out.Body.Hooks = []notify.Hook{}
		}
		if out.Body.Deliveries == nil {
			out.Body.Deliveries = []notify.Delivery{}
		}
		return out
	}
	read := NewOperation(
		http.MethodGet,
		notificationPath,
		"get-notifications",
		notificationTag,
		"Read notifications (admins)",
		http.StatusForbidden,
	)
	Handle(a, read, func(ctx context.Context, _ *struct{}) (*notificationBody[Notifications], error) {
		if err := a.Admin(ctx, what); err != nil {
			return nil, err
		}
		l, err := notify.ReadHooks(ctx, s)
		if err != nil {
			return nil, err
		}
		return shown(l), nil
	})
	save := NewOperation(
		http.MethodPut,
		notificationPath,
		"save-notifications",
		notificationTag,
		"Save notifications (admins)",
		http.StatusForbidden,
		http.StatusConflict,
	)
	Handle(a, save, func(ctx context.Context, in *notificationSaveInput) (*notificationBody[Notifications], error) {
		if err := a.Admin(ctx, what); err != nil {
			return nil, err
		}
		given := make([]notify.HookInput, 0, len(in.Body.Hooks))
		for _, h := range in.Body.Hooks {
			given = append(given, notify.HookInput{Hook: notify.Hook{
				ID:         h.ID,
				Name:       h.Name,
				Kind:       h.Kind,
				Events:     h.Events,
				TemplateID: h.TemplateID,
				Tags:       h.Tags,
				From:       h.From,
				To:         h.To,
				User:       h.User,
			}, NewURL: h.URL, NewSecret: h.Secret, Resume: h.Resume})
		}
		l, err := n.Save(ctx, in.Body.Version, given, a.User(ctx))
		if err != nil {
			return nil, err
		}
		id, _ := auth.IdentityOf(ctx)
		a.AuditLog().Record(ctx, id.User.UserID, "notifications.save", notificationPath, "")
		return shown(l), nil
	})
	try := NewOperation(http.MethodPost, notificationPath+"/{id}/test", "test-notification", notificationTag,
		"Send a test of a notification (admins)", http.StatusForbidden, http.StatusNotFound)
	Handle(a, try, func(ctx context.Context, in *IDInput) (*notificationBody[notify.Delivery], error) {
		if err := a.Admin(ctx, what); err != nil {
			return nil, err
		}
		d, err := n.SendTest(ctx, in.ID)
		if errors.Is(err, store.ErrNotFound) {
			return nil, httpx.NotFound("notification", in.ID)
		}
		if err != nil {
			return nil, err
		}
		return &notificationBody[notify.Delivery]{d}, nil
	})
}
